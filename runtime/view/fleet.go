package view

import (
	"time"

	"brood/models/engine"
	"brood/runtime/event"
)

// Fleet is what is known of a run's workers now. It is measured and not recorded, but for the machines, see
// [View.Machines]: a replay has none.
type Fleet struct {
	Workers  []Worker        `cbor:"0,keyasint,omitempty"` // ids ascend
	Links    []Link          `cbor:"1,keyasint,omitempty"` // by From, then To; none within a process
	Machines []event.Machine `cbor:"2,keyasint,omitempty"` // the coordinator's, then those of other processes by worker
	Wait     int             `cbor:"3,keyasint,omitempty"` // workers that there must be before the first round
	Doing    *Doing          `cbor:"4,keyasint,omitempty"` // of the workers in the coordinator's process; nil: nothing
}

// Stage is a part of the work of workers that may take long.
type Stage string

const (
	StageMemory  Stage = "memory"  // they allocate what members need
	StageMembers Stage = "members" // they initialise members
	StageRound   Stage = "round"   // they execute a round
)

// Doing is what workers do now.
type Doing struct {
	Stage   Stage         `cbor:"0,keyasint"`
	For     time.Duration `cbor:"1,keyasint,omitempty"`
	Round   uint64        `cbor:"2,keyasint,omitempty"` // that is executed, from 1; 0 before the first round
	Done    int           `cbor:"3,keyasint,omitempty"` // of Of parts; 0 where nothing counts
	Of      int           `cbor:"4,keyasint,omitempty"`
	Members int           `cbor:"5,keyasint,omitempty"` // that the workers host
}

// Worker is one worker. Fields from Name on are empty for one of the coordinator's own process.
type Worker struct {
	ID      int               `cbor:"0,keyasint"`
	State   event.WorkerState `cbor:"1,keyasint"`
	Members []engine.Member   `cbor:"2,keyasint,omitempty"` // that it hosts, ascending

	Name     string        `cbor:"3,keyasint,omitempty"` // of its machine
	Address  string        `cbor:"4,keyasint,omitempty"` // where its packets come from
	Kernels  string        `cbor:"5,keyasint,omitempty"` // that it computes with
	Software string        `cbor:"6,keyasint,omitempty"`
	Since    time.Duration `cbor:"7,keyasint,omitempty"`  // it came in
	RTT      time.Duration `cbor:"8,keyasint,omitempty"`  // to the coordinator and back, of the last heartbeat
	Silent   time.Duration `cbor:"9,keyasint,omitempty"`  // since its last sign of life
	Sent     float64       `cbor:"10,keyasint,omitempty"` // bytes a second, to the other workers
	Received float64       `cbor:"11,keyasint,omitempty"`
	Key      string        `cbor:"12,keyasint,omitempty"` // beginning of its key's hash, for brood revoke
	Device   string        `cbor:"13,keyasint,omitempty"` // that it computes on, and its memory; "" the processor
}

// Link is what one worker sends to another.
type Link struct {
	From  int           `cbor:"0,keyasint"`
	To    int           `cbor:"1,keyasint"`
	Sent  float64       `cbor:"2,keyasint,omitempty"` // bytes a second
	RTT   time.Duration `cbor:"3,keyasint,omitempty"`
	Lost  float64       `cbor:"4,keyasint,omitempty"` // share of packets
	Shape *event.Link   `cbor:"5,keyasint,omitempty"` // how it is slowed down; nil: not
	Bytes int64         `cbor:"6,keyasint,omitempty"` // sent since the first report of the link
}
