// Package message is what the coordinator and the workers say to each other. Plain data; a door or a wire encodes it.
package message

import (
	"brood/optim"
	"brood/runtime/event"
)

// To a worker. Messages of one worker arrive in order; Abort also cancels whatever the worker is doing.
type (
	// Grant lets a worker run rounds [From, To) of an epoch. Edits are those whose first round lies in them.
	Grant struct {
		Epoch     uint32
		From, To  uint64
		Committed uint64 // snapshots of earlier rounds may go
		Edits     []event.Edit
		Limit     event.Limit
		Hold      bool // end the grant at an evaluation: a target waits for it
	}
	// Abort ends an epoch: everything granted and not committed is void.
	Abort struct{ Epoch uint32 }
	// Plan prepares a new epoch; the first grant of that epoch installs it.
	Plan struct {
		event.Plan
		Checkpoint *event.Checkpoint // where From is Saved
	}
	// Save writes the hosted rows as they were after round At.
	Save struct {
		Epoch uint32
		At    uint64
	}
	// Stop ends the worker.
	Stop struct{}
)

// From a worker.
type (
	// Ready says that the worker holds the blocks of the plan.
	Ready struct {
		Worker int
		Epoch  uint32
	}
	// Done says that a grant was run.
	Done struct {
		Worker    int
		Epoch     uint32
		From, To  uint64
		Ended     bool // a limit was reached at To, which may lie before the grant's end
		Digests   map[string][32]byte
		Progress  event.Progress
		Points    []event.Points
		Tests     []Test
		Sent      optim.Ledger
		Predicted optim.Ledger // by one worker, for all
		Apart     optim.Ledger // evaluation and probes
		Overhead  int64
		Nanos     int64 // of the rounds
		Extra     int64 // of snapshots and digests
	}
	// Failed says that a grant or plan could not be done.
	Failed struct {
		Worker    int
		Epoch     uint32
		Err       string
		NonFinite *NonFinite
	}
	// Saved answers Save.
	Saved struct {
		Worker int
		Epoch  uint32
		At     uint64
		Files  []event.File
		Err    string
	}
)

// NonFinite names the block that blew up within rounds [From, To).
type NonFinite struct {
	Block    string
	Member   optim.Member
	From, To uint64
}

// Test is a worker's share of one test evaluation.
type Test struct {
	Round  uint64
	Centre string // digest, from the worker that hosts the lowest member
	Chunks []Chunk
}

// Chunk is the score of one fixed chunk of the test set.
type Chunk struct {
	Index            int
	Loss             float64 // summed
	Correct, Samples int64
}
