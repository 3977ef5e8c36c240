package view

import "time"

// Lease is the state of the writer's lease: only its holder may command, one viewer at a time.
type Lease struct {
	Holder string        `cbor:"0,keyasint,omitempty"` // name; "" if free: the next command takes the lease
	Mine   bool          `cbor:"1,keyasint,omitempty"` // the client that receives this state holds it
	Left   time.Duration `cbor:"2,keyasint,omitempty"` // time until it expires, unless the holder commands again
	Asks   string        `cbor:"3,keyasint,omitempty"` // name of the next holder; "" if nobody requested the lease
}

// LeaseAct is a request about the lease.
type LeaseAct string

const (
	LeaseLook  LeaseAct = "look"  // only report the state
	LeaseAsk   LeaseAct = "ask"   // take it if it is free; otherwise be the next holder
	LeaseGive  LeaseAct = "give"  // pass it to the next holder, or free it
	LeaseLeave LeaseAct = "leave" // release it: the viewer exits
)
