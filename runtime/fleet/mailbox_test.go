package fleet

import (
	"context"
	"testing"

	"brood/runtime/message"
)

// TestAbortOvertakes: an abort removes the orders queued before it and cancels the current order; later orders stay.
func TestAbortOvertakes(t *testing.T) {
	box := NewMailbox()
	box.Post(message.Grant{From: 1})
	current, first, ok := box.next(t.Context())
	if !ok || first.(message.Grant).From != 1 {
		t.Fatalf("%v", first)
	}
	box.Post(message.Grant{From: 2})
	box.Post(message.Abort{Epoch: 3})
	box.Post(message.Plan{})
	if current.Err() == nil {
		t.Error("the current order is not canceled")
	}
	for _, want := range []any{message.Abort{Epoch: 3}, message.Plan{}} {
		ctx, got, ok := box.next(t.Context())
		if !ok || ctx.Err() != nil {
			t.Fatalf("%T: ok %v, %v", want, ok, ctx.Err())
		}
		switch got.(type) {
		case message.Abort, message.Plan:
		default:
			t.Errorf("%T was not removed", got)
		}
	}
}

// TestMailboxCloses: a closed mailbox cancels the current order and returns no queued one.
func TestMailboxCloses(t *testing.T) {
	box := NewMailbox()
	box.Post(message.Grant{})
	current, _, _ := box.next(t.Context())
	box.Post(message.Grant{})
	box.Close()
	if current.Err() == nil {
		t.Error("the current order is not canceled")
	}
	if _, m, ok := box.next(t.Context()); ok {
		t.Errorf("%v is returned after Close", m)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, m, ok := NewMailbox().next(ctx); ok {
		t.Errorf("%v is returned after the end of the context", m)
	}
}
