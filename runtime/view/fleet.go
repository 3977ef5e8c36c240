package view

import (
	"time"

	"brood/models/engine"
	"brood/runtime/event"
)

// Fleet is the current state of the workers of a run. Only its machines are recorded in the log, see [View.Machines]; a
// replay has no Fleet.
type Fleet struct {
	Workers  []Worker        `cbor:"0,keyasint,omitempty"` // ids ascend
	Links    []Link          `cbor:"1,keyasint,omitempty"` // by From, then To; none within a process
	Machines []event.Machine `cbor:"2,keyasint,omitempty"` // the coordinator's, then those of other processes by worker
	Wait     int             `cbor:"3,keyasint,omitempty"` // number of workers that the first round waits for
	Doing    *Doing          `cbor:"4,keyasint,omitempty"` // of the workers; nil: all are idle
}

// Stage is a phase of the work of workers that may take long.
type Stage string

const (
	StageMemory  Stage = "memory"  // they allocate the memory of members
	StageMembers Stage = "members" // they initialise members
	StageRound   Stage = "round"   // they execute a round
)

// Doing is the current activity of workers.
type Doing struct {
	Stage   Stage         `cbor:"0,keyasint"`
	For     time.Duration `cbor:"1,keyasint,omitempty"`
	Round   uint64        `cbor:"2,keyasint,omitempty"` // round that they execute, from 1; 0 before the first one
	Done    int           `cbor:"3,keyasint,omitempty"` // completed parts out of Of; 0 if unknown
	Of      int           `cbor:"4,keyasint,omitempty"`
	Members int           `cbor:"5,keyasint,omitempty"` // number of members that the workers host
}

// Worker is the state of a worker. The fields from Name on are empty for a worker in the coordinator's process.
type Worker struct {
	ID      int               `cbor:"0,keyasint"`
	State   event.WorkerState `cbor:"1,keyasint"`
	Members []engine.Member   `cbor:"2,keyasint,omitempty"` // members that it hosts, ascending

	Name     string        `cbor:"3,keyasint,omitempty"` // name of its machine
	Address  string        `cbor:"4,keyasint,omitempty"` // network address of its packets
	Kernels  string        `cbor:"5,keyasint,omitempty"` // kernels that it computes with
	Software string        `cbor:"6,keyasint,omitempty"`
	Since    time.Duration `cbor:"7,keyasint,omitempty"`  // time since it joined
	RTT      time.Duration `cbor:"8,keyasint,omitempty"`  // round-trip time to the coordinator, of the last heartbeat
	Silent   time.Duration `cbor:"9,keyasint,omitempty"`  // time since its last message
	Sent     float64       `cbor:"10,keyasint,omitempty"` // bytes per second to the other workers
	Received float64       `cbor:"11,keyasint,omitempty"`
	Key      string        `cbor:"12,keyasint,omitempty"` // beginning of its key's hash, for brood revoke
	Device   string        `cbor:"13,keyasint,omitempty"` // its device, with the memory; "" for the processor
}

// Link is the state of the link from one worker to another.
type Link struct {
	From  int           `cbor:"0,keyasint"`
	To    int           `cbor:"1,keyasint"`
	Sent  float64       `cbor:"2,keyasint,omitempty"` // bytes per second
	RTT   time.Duration `cbor:"3,keyasint,omitempty"`
	Lost  float64       `cbor:"4,keyasint,omitempty"` // share of lost packets
	Shape *event.Link   `cbor:"5,keyasint,omitempty"` // how it is slowed down; nil if it is not
	Bytes int64         `cbor:"6,keyasint,omitempty"` // sent since the first report of the link
	// Relayed reports that the two workers cannot reach each other: the link goes through the coordinator.
	Relayed bool `cbor:"7,keyasint,omitempty"`
}
