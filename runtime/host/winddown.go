package host

import (
	"sync"
	"time"

	"brood/runtime/event"
)

// windDown predicts how long the run takes to finish its rounds and save, from the times of its records. Its methods are
// safe for concurrent use.
type windDown struct {
	mu         sync.Mutex
	last       int64 // time of the newest commit; 0 after a pause
	round      uint64
	save, span time.Duration // largest recent times from a commit to its checkpoint, and between commits
}

// firstSave is the predicted duration of a save before the first one.
const firstSave = 3 * time.Second

// take takes the next record of the log.
func (w *windDown) take(rec event.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case rec.State != nil:
		w.last = 0
	case rec.Commit != nil:
		if w.last > 0 {
			w.span = max(time.Duration(rec.At-w.last), w.span*15/16)
		}
		w.last, w.round = rec.At, rec.Commit.To
	case rec.Checkpoint != nil && rec.Checkpoint.Round == w.round && w.last > 0:
		w.save = max(time.Duration(rec.At-w.last), w.save*3/4)
		w.last = 0 // the next commit waited for the save
	}
}

// time returns twice the predicted time: of the rounds that are granted, and of a save.
func (w *windDown) time() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	save := w.save
	if save == 0 {
		save = firstSave
	}
	return time.Second + 2*(w.span+save)
}

// WindDown predicts how long the run takes to end after [Run.Interrupt], generously.
func (r *Run) WindDown() time.Duration { return r.windDown.time() }
