package view

import "time"

// Lease is who may turn knobs now: one operator at a time.
type Lease struct {
	Holder string        `cbor:"0,keyasint,omitempty"` // "": nobody, and who commands next takes it
	Mine   bool          `cbor:"1,keyasint,omitempty"` // it is held by who was told this
	Left   time.Duration `cbor:"2,keyasint,omitempty"` // until it ends, unless the holder commands again
	Asks   string        `cbor:"3,keyasint,omitempty"` // who is to have it next, "" for nobody
}

// LeaseAct is what is done about a lease.
type LeaseAct string

const (
	LeaseLook  LeaseAct = "look"
	LeaseAsk   LeaseAct = "ask"   // have it at once where nobody holds it, else when the holder gives it or it ends
	LeaseGive  LeaseAct = "give"  // to who asks, or to whoever commands next
	LeaseLeave LeaseAct = "leave" // the viewer will not come back
)
