package panel

import (
	"context"

	"brood/runtime/event"
	"brood/runtime/view"
)

// Source provides the records of a run, from a socket of a live run or from a replay. One goroutine at a time calls its
// methods. Both may be called again after an error.
type Source interface {
	// Snapshot returns the view of the first `at` records, or of all records if there are fewer; math.MaxUint64 means
	// now. The caller owns the view.
	Snapshot(ctx context.Context, at view.Position) (*view.View, error)
	// Next waits for records after a position and returns between one and max of them, in order. It returns io.EOF if
	// there will be no more records, view.ErrKilled if the run's process ended without a final record,
	// view.ErrNoProcess if another machine reports that its process is gone, and the error of ctx if that ends first.
	// Other errors are those of the connection, which may recover.
	Next(ctx context.Context, after view.Position, max int) (view.Batch, error)
}

// Commander sends commands to a live run; a replay has none. A rejected command is a Receipt, not an error: errors are
// those of the connection.
type Commander interface {
	Command(ctx context.Context, c event.Command) (event.Receipt, error)
}

// Surveyor is an optional interface of a Source that reports the state of the workers. It may be called concurrently
// with Snapshot and Next.
type Surveyor interface {
	Fleet(ctx context.Context) (view.Fleet, error)
}

// Lessee is an optional interface of a Commander with a writer's lease: one client at a time may send commands.
type Lessee interface {
	// Lease requests or releases the writer's lease, or returns its state.
	Lease(ctx context.Context, act view.LeaseAct) (view.Lease, error)
}

// Watchers is an optional interface of a Source that reports the viewers.
type Watchers interface {
	// Watchers returns the number of viewers and the writer's lease, as last reported.
	Watchers() (n int, l view.Lease)
}
