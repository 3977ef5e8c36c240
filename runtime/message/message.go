// Package message defines the messages between the coordinator and the workers, and their encoding.
package message

import (
	"time"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
)

// Orders to a worker. They arrive in order; Abort also cancels the current order of the worker.
type (
	// Grant allows a worker to execute rounds [From, To) of an epoch. Edits holds the edits that take effect in them.
	Grant struct {
		Epoch     uint32       `cbor:"0,keyasint"`
		From      uint64       `cbor:"1,keyasint,omitempty"`
		To        uint64       `cbor:"2,keyasint,omitempty"`
		Committed uint64       `cbor:"3,keyasint,omitempty"` // snapshots of earlier rounds may be freed
		Edits     []event.Edit `cbor:"4,keyasint,omitempty"`
		Limit     event.Limit  `cbor:"5,keyasint,omitempty"`
		Hold      bool         `cbor:"6,keyasint,omitempty"` // end the grant at an evaluation of the target
		Onward    bool         `cbor:"7,keyasint,omitempty"` // store no snapshot of From: no rollback to it is possible
	}
	// Abort ends an epoch: granted rounds that are not committed are void.
	Abort struct{ Epoch uint32 }
	// Plan prepares a new epoch; the first grant of that epoch installs it.
	Plan struct {
		event.Plan
		Checkpoint *event.Checkpoint `cbor:"20,keyasint,omitempty"` // set if From is event.Saved
		Mirror     bool              `cbor:"21,keyasint,omitempty"` // workers mirror each other's rows in this epoch
		Witness    bool              `cbor:"22,keyasint,omitempty"` // workers report Frames and keep what an Audit needs
	}
	// Audit lets workers execute a grant again, each in the place of another one. They report the results; the
	// coordinator compares them. It follows the reports of the grant, whose snapshots and received frames are kept.
	Audit struct {
		Epoch uint32      `cbor:"0,keyasint"`
		From  uint64      `cbor:"1,keyasint,omitempty"`
		Pairs []AuditPair `cbor:"2,keyasint"` // a worker audits at most one other
	}
	// Save stores the hosted rows of the state after round At.
	Save struct {
		Epoch uint32 `cbor:"0,keyasint"`
		At    uint64 `cbor:"1,keyasint,omitempty"`
		Hash  string `cbor:"2,keyasint,omitempty"` // of that state, which the worker signs with its file
		// largest size of the file in bytes, for the receiver of the file; not sent
		Most int64 `cbor:"-"`
	}
	// Stop ends the worker: the run is over, or the worker is released.
	Stop struct{}
	// Evict removes a worker from the run immediately.
	Evict struct {
		Why   string        `cbor:"0,keyasint"`           // reason, for the user of the worker
		After time.Duration `cbor:"1,keyasint,omitempty"` // time after which it may rejoin; 0: never
	}
)

// Reports of a worker.
type (
	// Ready reports that the worker has prepared the blocks of the plan. Noise and Bytes are measured rates, if the
	// plan leaves the choice of a knob to the run.
	Ready struct {
		Worker int     `cbor:"0,keyasint"`
		Epoch  uint32  `cbor:"1,keyasint"`
		Noise  float64 `cbor:"2,keyasint,omitempty"` // see [optim.Rates]
		Bytes  float64 `cbor:"3,keyasint,omitempty"`
		// only of a worker that joins, in reply to Setup.Committed, or of a plan with Witness
		Held *Held `cbor:"4,keyasint,omitempty"`
		// frames of the last order before a plan with Witness; nil: unknown
		Last *Exchanged `cbor:"6,keyasint,omitempty"`
		// only of a worker that joins: equal for workers of one machine, see machine.Identity; "": it shares none
		Machine string `cbor:"5,keyasint,omitempty"`
	}
	// Done reports that a grant was executed.
	Done struct {
		Worker int    `cbor:"0,keyasint"`
		Epoch  uint32 `cbor:"1,keyasint"`
		From   uint64 `cbor:"2,keyasint,omitempty"`
		To     uint64 `cbor:"3,keyasint,omitempty"`
		// a limit was reached at To, which may be before the end of the grant
		Ended      bool              `cbor:"4,keyasint,omitempty"`
		Digests    Digests           `cbor:"5,keyasint,omitzero"`
		Progress   event.Progress    `cbor:"6,keyasint,omitempty"`
		Points     []event.Points    `cbor:"7,keyasint,omitempty"`
		Tests      []Test            `cbor:"8,keyasint,omitempty"`
		Sent       collective.Ledger `cbor:"9,keyasint,omitempty"`
		Predicted  collective.Ledger `cbor:"10,keyasint,omitempty"` // for all workers, reported by one of them
		Evaluation collective.Ledger `cbor:"11,keyasint,omitempty"` // evaluation and probes
		Overhead   int64             `cbor:"12,keyasint,omitempty"`
		Nanos      int64             `cbor:"13,keyasint,omitempty"` // time of the rounds
		Extra      int64             `cbor:"14,keyasint,omitempty"` // time of snapshots and digests, in nanoseconds
		Notes      []Note            `cbor:"15,keyasint,omitempty"` // notes for the user about the rounds
		Waited     int64             `cbor:"16,keyasint,omitempty"` // part of Nanos spent waiting for frames

		Frames   []collective.FrameSums `cbor:"17,keyasint,omitempty"` // of the rounds, by peer; see Plan.Witness
		Mirrored Digests                `cbor:"18,keyasint,omitzero"`  // of the rows whose mirror it is; see Plan.Witness
	}
	// Audited is the reply of an auditor to an Audit.
	Audited struct {
		Worker  int                    `cbor:"0,keyasint"`
		Epoch   uint32                 `cbor:"1,keyasint"`
		From    uint64                 `cbor:"2,keyasint,omitempty"`
		Of      int                    `cbor:"3,keyasint,omitempty"`
		Start   Digests                `cbor:"4,keyasint,omitzero"`  // of the rows after round From
		Digests Digests                `cbor:"5,keyasint,omitzero"`  // of the rows after the grant
		Frames  []collective.FrameSums `cbor:"6,keyasint,omitempty"` // of the frames that it received and sent
		Err     string                 `cbor:"7,keyasint,omitempty"` // why the grant could not be executed again
		Bytes   int64                  `cbor:"8,keyasint,omitempty"` // payload that it received for the audit
		// a block is not finite after the grant; Digests is empty then
		NonFinite bool           `cbor:"9,keyasint,omitempty"`
		To        uint64         `cbor:"10,keyasint,omitempty"` // as in Done
		Ended     bool           `cbor:"11,keyasint,omitempty"`
		Progress  event.Progress `cbor:"12,keyasint,omitempty"`
		// the auditor itself failed, for the reason Err: the audit decides nothing
		Unable bool `cbor:"13,keyasint,omitempty"`
	}
	// Failed reports that a grant or plan failed.
	Failed struct {
		Worker    int        `cbor:"0,keyasint"`
		Epoch     uint32     `cbor:"1,keyasint"`
		Err       string     `cbor:"2,keyasint,omitempty"`
		NonFinite *NonFinite `cbor:"3,keyasint,omitempty"`
		// worker to which the connection failed; nil for other causes. Both workers may still be alive.
		Cut   *int `cbor:"4,keyasint,omitempty"`
		Never bool `cbor:"5,keyasint,omitempty"` // the connection was never established
		// worker that sent a frame other than the expected one; nil for other causes
		Faulty *int `cbor:"6,keyasint,omitempty"`
		// of the rounds of NonFinite, see Plan.Witness
		Frames []collective.FrameSums `cbor:"7,keyasint,omitempty"`
	}
	// Saved is the reply to Save.
	Saved struct {
		Worker int          `cbor:"0,keyasint"`
		Epoch  uint32       `cbor:"1,keyasint"`
		At     uint64       `cbor:"2,keyasint,omitempty"`
		Files  []event.File `cbor:"3,keyasint,omitempty"`
		Err    string       `cbor:"4,keyasint,omitempty"`
		Nanos  int64        `cbor:"5,keyasint,omitempty"` // duration of the save
		// under the file, of a worker of another process, see [event.Statement]
		Signature event.Signature `cbor:"6,keyasint,omitzero"`
		Hash      string          `cbor:"-"` // of the order
	}
)

// Exchanged is what a worker exchanged with others in an order that may have been interrupted.
type Exchanged struct {
	Order OrderName             `cbor:"0,keyasint"`
	With  []collective.Exchange `cbor:"1,keyasint,omitempty"`
}

// OrderName identifies a grant of an epoch by its first round, or the plan of an epoch.
type OrderName struct {
	Epoch uint32 `cbor:"0,keyasint"`
	From  uint64 `cbor:"1,keyasint,omitempty"`
	Plan  bool   `cbor:"2,keyasint,omitempty"`
}

// Committed names the state after a committed round.
type Committed struct {
	Epoch uint32 `cbor:"0,keyasint"`
	Round uint64 `cbor:"1,keyasint,omitempty"`
}

// Held reports what a worker holds of a committed state.
type Held struct {
	Committed
	Digests  Digests `cbor:"2,keyasint,omitzero"` // of its own rows and the shared ones
	Mirrored Digests `cbor:"3,keyasint,omitzero"` // of the rows whose mirror it is
}

// AuditPair is a worker and its auditor. Bytes is the payload that Of received in the grant.
type AuditPair struct {
	Of    int   `cbor:"0,keyasint"`
	By    int   `cbor:"1,keyasint"`
	Bytes int64 `cbor:"2,keyasint,omitempty"`
	// Frames is the number of frames that Of received.
	Frames int `cbor:"3,keyasint,omitempty"`
}

// Note is a note of an engine about an event that does not stop the run.
type Note struct {
	Kind event.AlertKind `cbor:"0,keyasint"`
	Text string          `cbor:"1,keyasint"`
}

// Bounds of the notes of one report.
const (
	MostNotes = 4
	MostNote  = 1 << 10 // bytes of one
)

// NonFinite names a block that got NaN or infinite values within rounds [From, To).
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
	// Validation is the worker's share of the validation samples, which are evaluated with the test set.
	Validation []Chunk `cbor:"4,keyasint,omitempty"`
}

// HasPart reports whether the worker has a share of the test. In a large fleet most workers have none.
func (t Test) HasPart() bool { return len(t.Chunks)+len(t.Validation) > 0 || t.Centre != "" }

// Chunk is the score of a chunk of the test set, or of the validation samples.
type Chunk struct {
	Index   int     `cbor:"0,keyasint,omitempty"`
	Loss    float64 `cbor:"1,keyasint,omitempty"` // summed
	Correct int64   `cbor:"2,keyasint,omitempty"`
	Samples int64   `cbor:"3,keyasint,omitempty"`
	Squares float64 `cbor:"4,keyasint,omitempty"` // of a regression, summed: see [optim.Scores]
}
