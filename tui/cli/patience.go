package cli

import (
	"sync"
	"time"

	"brood/runtime/event"
)

// patience is how long a run in the foreground stays paused: there may be nobody to resume it.
func patience() time.Duration { return time.Minute }

// idler watches for a pause that nobody ends. In a process of its own a run waits for ever.
type idler struct {
	printer
	leave func() // asks the run to end; nil to wait for ever
	wait  func() time.Duration

	mu     sync.Mutex
	timer  *time.Timer
	reason string // of the pause that was not ended
}

func newPatience(p printer, wait func() time.Duration) *idler { return &idler{printer: p, wait: wait} }

// record passes the record on.
func (i *idler) record(r event.Record) {
	i.printer.record(r)
	if r.State == nil {
		return
	}
	i.stop()
	if r.State.Phase == event.Paused {
		reason := r.State.Reason
		i.mu.Lock()
		defer i.mu.Unlock()
		i.timer = time.AfterFunc(i.wait(), func() {
			if i.leave != nil {
				i.mu.Lock()
				i.reason = reason
				i.mu.Unlock()
				i.leave()
			}
		})
	}
}

func (i *idler) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.timer != nil {
		i.timer.Stop()
	}
}

// left is why the run paused before it was given up; "" if it was not.
func (i *idler) left() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.reason
}
