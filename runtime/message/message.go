// Package message is what the coordinator and the workers say to each other. Plain data; a control socket or a wire
// encodes it.
package message

import (
	"time"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
)

// To a worker. Messages of one worker arrive in order; Abort also cancels whatever the worker is doing.
type (
	// Grant lets a worker run rounds [From, To) of an epoch. Edits are those whose first round lies in them.
	Grant struct {
		Epoch     uint32       `cbor:"0,keyasint"`
		From      uint64       `cbor:"1,keyasint,omitempty"`
		To        uint64       `cbor:"2,keyasint,omitempty"`
		Committed uint64       `cbor:"3,keyasint,omitempty"` // snapshots of earlier rounds may go
		Edits     []event.Edit `cbor:"4,keyasint,omitempty"`
		Limit     event.Limit  `cbor:"5,keyasint,omitempty"`
		Hold      bool         `cbor:"6,keyasint,omitempty"` // end the grant at an evaluation: a target waits for it
		Onward    bool         `cbor:"7,keyasint,omitempty"` // keep no snapshot of From: nobody goes back to it
	}
	// Abort ends an epoch: everything granted and not committed is void.
	Abort struct{ Epoch uint32 }
	// Plan prepares a new epoch; the first grant of that epoch installs it.
	Plan struct {
		event.Plan
		Checkpoint *event.Checkpoint `cbor:"20,keyasint,omitempty"` // where From is Saved
	}
	// Save writes the hosted rows as they were after round At.
	Save struct {
		Epoch uint32 `cbor:"0,keyasint"`
		At    uint64 `cbor:"1,keyasint,omitempty"`
		Most  int64  `cbor:"-"` // bytes that the file may have: for whoever takes it in, and not told
	}
	// Stop ends the worker: the run is over, or it was let go.
	Stop struct{}
	// Away sends a worker away while the run is not over, at once.
	Away struct {
		Why   string        `cbor:"0,keyasint"`           // a sentence for whoever started the worker
		After time.Duration `cbor:"1,keyasint,omitempty"` // it may come back then; 0 is never
	}
)

// From a worker.
type (
	// Ready says that the worker holds the blocks of the plan, and what it measured where the plan leaves a knob to the
	// run.
	Ready struct {
		Worker int     `cbor:"0,keyasint"`
		Epoch  uint32  `cbor:"1,keyasint"`
		Noise  float64 `cbor:"2,keyasint,omitempty"` // see [optim.Rates]
		Bytes  float64 `cbor:"3,keyasint,omitempty"`
	}
	// Done says that a grant was run.
	Done struct {
		Worker int    `cbor:"0,keyasint"`
		Epoch  uint32 `cbor:"1,keyasint"`
		From   uint64 `cbor:"2,keyasint,omitempty"`
		To     uint64 `cbor:"3,keyasint,omitempty"`
		// a limit was reached at To, which may lie before the grant's end
		Ended      bool              `cbor:"4,keyasint,omitempty"`
		Digests    Digests           `cbor:"5,keyasint,omitzero"`
		Progress   event.Progress    `cbor:"6,keyasint,omitempty"`
		Points     []event.Points    `cbor:"7,keyasint,omitempty"`
		Tests      []Test            `cbor:"8,keyasint,omitempty"`
		Sent       collective.Ledger `cbor:"9,keyasint,omitempty"`
		Predicted  collective.Ledger `cbor:"10,keyasint,omitempty"` // by one worker, for all
		Evaluation collective.Ledger `cbor:"11,keyasint,omitempty"` // evaluation and probes
		Overhead   int64             `cbor:"12,keyasint,omitempty"`
		Nanos      int64             `cbor:"13,keyasint,omitempty"` // of the rounds
		Extra      int64             `cbor:"14,keyasint,omitempty"` // of snapshots and digests
		Notes      []Note            `cbor:"15,keyasint,omitempty"` // what a person should know of the rounds
		Waited     int64             `cbor:"16,keyasint,omitempty"` // nanoseconds of the rounds that it waited for frames
	}
	// Failed says that a grant or plan could not be done.
	Failed struct {
		Worker    int        `cbor:"0,keyasint"`
		Epoch     uint32     `cbor:"1,keyasint"`
		Err       string     `cbor:"2,keyasint,omitempty"`
		NonFinite *NonFinite `cbor:"3,keyasint,omitempty"`
		// the worker to which the connection broke, or could never be made; both may still be there
		Cut   *int `cbor:"4,keyasint,omitempty"`
		Never bool `cbor:"5,keyasint,omitempty"` // there never was one
	}
	// Saved answers Save.
	Saved struct {
		Worker int          `cbor:"0,keyasint"`
		Epoch  uint32       `cbor:"1,keyasint"`
		At     uint64       `cbor:"2,keyasint,omitempty"`
		Files  []event.File `cbor:"3,keyasint,omitempty"`
		Err    string       `cbor:"4,keyasint,omitempty"`
		Nanos  int64        `cbor:"5,keyasint,omitempty"` // that saving took
	}
)

// Note is a sentence on what an engine met that the run goes on with.
type Note struct {
	Kind event.AlertKind `cbor:"0,keyasint"`
	Text string          `cbor:"1,keyasint"`
}

// Bounds of the notes of one report.
const (
	MostNotes = 4
	MostNote  = 1 << 10 // bytes of one
)

// NonFinite names the block that blew up within rounds [From, To).
type NonFinite struct {
	Block  string        `cbor:"0,keyasint,omitempty"`
	Member engine.Member `cbor:"1,keyasint,omitempty"`
	From   uint64        `cbor:"2,keyasint,omitempty"`
	To     uint64        `cbor:"3,keyasint,omitempty"`
}

// Test is a worker's share of one test evaluation.
type Test struct {
	Round  uint64  `cbor:"0,keyasint,omitempty"`
	Centre string  `cbor:"1,keyasint,omitempty"` // digest, from the worker that hosts the lowest member
	Chunks []Chunk `cbor:"2,keyasint,omitempty"`
	// Episode is from the worker that reports Centre, if the run is in an environment.
	Episode *event.Episode `cbor:"3,keyasint,omitempty"`
}

// HasPart says that the worker has a share at all: most of thousands have no chunk of the test set.
func (t Test) HasPart() bool { return len(t.Chunks) > 0 || t.Centre != "" }

// Chunk is the score of one fixed chunk of the test set.
type Chunk struct {
	Index   int     `cbor:"0,keyasint,omitempty"`
	Loss    float64 `cbor:"1,keyasint,omitempty"` // summed
	Correct int64   `cbor:"2,keyasint,omitempty"`
	Samples int64   `cbor:"3,keyasint,omitempty"`
	Squares float64 `cbor:"4,keyasint,omitempty"` // of a regression, summed: see [optim.Scores]
}
