package fleet

import (
	"context"
	"testing"

	"brood/runtime/message"
)

// TestAbortOvertakes: an abort voids what is queued before it and cancels what is being done; what comes after it stays.
func TestAbortOvertakes(t *testing.T) {
	box := newMailbox()
	box.post(message.Grant{From: 1})
	doing, first, ok := box.next(t.Context())
	if !ok || first.(message.Grant).From != 1 {
		t.Fatalf("%v", first)
	}
	box.post(message.Grant{From: 2})
	box.post(message.Abort{Epoch: 3})
	box.post(message.Plan{})
	if doing.Err() == nil {
		t.Error("what is being done goes on")
	}
	for _, want := range []any{message.Abort{Epoch: 3}, message.Plan{}} {
		ctx, got, ok := box.next(t.Context())
		if !ok || ctx.Err() != nil {
			t.Fatalf("%T: ok %v, %v", want, ok, ctx.Err())
		}
		switch got.(type) {
		case message.Abort, message.Plan:
		default:
			t.Errorf("%T was not voided", got)
		}
	}
}

// TestMailboxCloses: a death leaves what is queued.
func TestMailboxCloses(t *testing.T) {
	box := newMailbox()
	box.post(message.Grant{})
	doing, _, _ := box.next(t.Context())
	box.post(message.Grant{})
	box.close()
	if doing.Err() == nil {
		t.Error("what is being done goes on")
	}
	if _, m, ok := box.next(t.Context()); ok {
		t.Errorf("%v is done after the death", m)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, m, ok := newMailbox().next(ctx); ok {
		t.Errorf("%v is done without a run", m)
	}
}
