package panel

import (
	"context"
	"time"
)

// Feed is the state of reading the source. One read command is active at a time. A seek begins a new generation;
// messages of older ones are dropped.
type Feed struct {
	Gen    int
	Cancel context.CancelFunc
	Ctx    context.Context
	Ended  bool      // no more records will arrive
	Err    error     // read error of a recording
	Lost   *Lost     // set while a live run does not answer
	Loaded bool      // a snapshot has arrived
	Asking bool      // a request whether an ended run was resumed is pending
	Again  time.Time // when to send the next such request
}

// Frozen reports whether the display is frozen.
func (m *Host) Frozen() bool { return m.Shown != m.Live }

// Lost is the state of a live run that does not answer. The workbench retries with growing waits until the user leaves.
type Lost struct {
	Err    error     // of the last request
	Tries  int       // failed requests
	Again  time.Time // time of the next request
	Asking bool      // a request is pending
}
