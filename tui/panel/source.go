package panel

import (
	"context"

	"brood/runtime/event"
	"brood/runtime/view"
)

// Source is where a workbench learns what a run does: a socket to a live run, or a replay. Both methods may be called
// again after an error; they are called by one goroutine at a time.
type Source interface {
	// Snapshot is the view of the first `at` records, or of all there are when that is fewer: math.MaxUint64 is now. The
	// view is the caller's.
	Snapshot(ctx context.Context, at view.Position) (*view.View, error)
	// Next waits for records after a position and returns between one and max of them in order. It returns io.EOF once
	// there will never be another one, view.ErrKilled where nobody records the run any more and it did not say that it
	// ends, view.ErrNoProcess where a machine elsewhere says the first of it, and the context's error when that ends
	// first. Other errors are of the way to the run, which may come back.
	Next(ctx context.Context, after view.Position, max int) (view.Batch, error)
}

// Commander passes a person's commands on to a live run; a replay has none. A refusal is a Receipt, not an error:
// errors are of the connection.
type Commander interface {
	Command(ctx context.Context, c event.Command) (event.Receipt, error)
}

// Surveyor is an optional power of a Source: what is known of the workers now. It is called beside Snapshot and Next.
type Surveyor interface {
	Fleet(ctx context.Context) (view.Fleet, error)
}

// Lessee is an optional power of a Commander: one person at a time writes, and another may ask for it.
type Lessee interface {
	// Lease asks for the writer's lease, gives it away or looks who holds it.
	Lease(ctx context.Context, act view.LeaseAct) (view.Lease, error)
}

// Watchers is an optional power of a Source: who is looking.
type Watchers interface {
	// Watchers counts the viewers and says who writes, as far as was heard.
	Watchers() (n int, l view.Lease)
}
