package host

import (
	"sync"
	"time"

	"brood/runtime/event"
)

// windDown predicts how long the run takes to finish its rounds and save, from the times of its records. Its methods
// are safe for concurrent use.
type windDown struct {
	mu         sync.Mutex
	last       int64         // time of the newest commit; 0 after a pause
	save, span time.Duration // largest recent times from a commit to its checkpoint, and between commits
	round      uint64        // of the newest commit
	commits    []committed   // some of those since the last checkpoint, by round: rounds go on during a save
	skipped    int           // commits since the last one of them
	stride     int           // every stride-th commit is one of them; 0: every one
}

// committed is a commit and its time.
type committed struct {
	round uint64
	at    int64
}

// maxCommits is the number of commits that windDown stores: beyond it, it drops every second one. The time of a save
// then counts from a slightly earlier commit.
const maxCommits = 1024

// firstSave is the predicted duration of a save before the first one.
const firstSave = 3 * time.Second

// take takes the next record of the log.
func (w *windDown) take(rec event.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case rec.State != nil:
		w.last = 0
		w.restart(nil)
	case rec.Plan != nil: // it cuts off a save in progress, and rounds may be repeated
		w.restart(nil)
	case rec.Commit != nil:
		if w.last > 0 {
			w.span = max(time.Duration(rec.At-w.last), w.span*15/16)
		}
		w.last, w.round = rec.At, rec.Commit.To
		w.store(committed{w.round, w.last})
	case rec.Checkpoint != nil:
		w.saved(rec.Checkpoint.Round, rec.At)
	}
}

// restart sets the commits.
func (w *windDown) restart(commits []committed) { w.commits, w.skipped, w.stride = commits, 0, 1 }

// store adds a commit, unless it is skipped.
func (w *windDown) store(c committed) {
	if w.skipped++; w.skipped < w.stride {
		return
	}
	w.skipped, w.commits = 0, append(w.commits, c)
	if len(w.commits) < maxCommits {
		return
	}
	for i := range maxCommits / 2 {
		w.commits[i] = w.commits[2*i]
	}
	w.commits, w.stride = w.commits[:maxCommits/2], 2*max(w.stride, 1)
}

// saved takes the time at which the checkpoint of a round was complete.
func (w *windDown) saved(round uint64, at int64) {
	i := len(w.commits) - 1
	for i >= 0 && w.commits[i].round > round {
		i--
	}
	if i >= 0 {
		w.save = max(time.Duration(at-w.commits[i].at), w.save*3/4)
	}
	if round == w.round {
		w.last = 0 // the next commit may have waited for the save
	}
	w.restart(w.commits[i+1:])
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
