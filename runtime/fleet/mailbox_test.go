package fleet

import (
	"context"
	"testing"

	"brood/runtime/message"
)

// TestAbortOvertakes: an abort voids what is queued before it and cancels what is being done; what comes after it
// stays.
func TestAbortOvertakes(t *testing.T) {
	box := NewMailbox()
	box.Post(message.Grant{From: 1})
	doing, first, ok := box.next(t.Context())
	if !ok || first.(message.Grant).From != 1 {
		t.Fatalf("%v", first)
	}
	box.Post(message.Grant{From: 2})
	box.Post(message.Abort{Epoch: 3})
	box.Post(message.Plan{})
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
	box := NewMailbox()
	box.Post(message.Grant{})
	doing, _, _ := box.next(t.Context())
	box.Post(message.Grant{})
	box.Close()
	if doing.Err() == nil {
		t.Error("what is being done goes on")
	}
	if _, m, ok := box.next(t.Context()); ok {
		t.Errorf("%v is done after the death", m)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, m, ok := NewMailbox().next(ctx); ok {
		t.Errorf("%v is done without a run", m)
	}
}
