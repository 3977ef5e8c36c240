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

func (m *Host) Frozen() bool { return m.Shown != m.Live }

// Lost is a live run that does not answer. It is asked again, after ever longer waits, until the person leaves: whoever
// resumes it finds this screen following.
type Lost struct {
	Err    error
	Tries  int
	Again  time.Time // when it is asked again
	Asking bool
}
