package host

import (
	"testing"
	"time"

	"brood/runtime/event"
)

// TestWindDown: a run is given twice the time of its slowest recent rounds and save; pauses do not count, and one slow
// save does not count for good.
func TestWindDown(t *testing.T) {
	var w windDown
	var now time.Duration
	at := func(d time.Duration, rec event.Record) {
		now += d
		rec.At = int64(now) + 1
		w.take(rec)
	}
	round := uint64(0)
	commit := func(d time.Duration) {
		round++
		at(d, event.Record{Commit: &event.Commit{To: round}})
	}
	save := func(d time.Duration) { at(d, event.Record{Checkpoint: &event.Checkpoint{Round: round}}) }
	want := func(what string, rounds, saving time.Duration) {
		t.Helper()
		if got := w.time(); got != time.Second+2*(rounds+saving) {
			t.Errorf("%s: %v", what, got)
		}
	}
	want("at the start", 0, firstSave)
	at(time.Hour, event.Record{State: &event.State{Phase: event.Training}})
	commit(time.Minute)
	commit(2 * time.Second)
	want("before a save", 2*time.Second, firstSave)
	save(20 * time.Second)
	commit(time.Second)
	want("after a save", 2*time.Second, 20*time.Second)
	at(time.Hour, event.Record{State: &event.State{Phase: event.Paused}})
	at(time.Hour, event.Record{State: &event.State{Phase: event.Training}})
	commit(time.Second)
	want("after a pause", 2*time.Second, 20*time.Second)
	for range 100 {
		commit(time.Second)
		commit(time.Second)
		save(5 * time.Second)
	}
	want("later", time.Second, 5*time.Second)
	for range 5000 { // rounds go on while a checkpoint of this one is saved
		commit(10 * time.Millisecond)
	}
	saving := round
	for range 5000 {
		commit(10 * time.Millisecond)
	}
	at(0, event.Record{Checkpoint: &event.Checkpoint{Round: saving}})
	if got := w.time(); got < 2*50*time.Second || got > 2*60*time.Second {
		t.Errorf("after a save of 50 seconds during other rounds: %v", got)
	}
	if len(w.commits) > maxCommits {
		t.Errorf("it has %d commits", len(w.commits))
	}
}
