package coordinator

import (
	"testing"
	"time"

	"brood/runtime/event"
)

// logOf returns a function that appends a record to the history of rate, at a time after its start.
func logOf(rate *FaultRate) func(at time.Duration, r event.Record) {
	return func(at time.Duration, r event.Record) {
		r.At = time.Unix(1000, 0).Add(at).UnixNano()
		rate.Take(r)
	}
}

func rollback() event.Record {
	return event.Record{Alert: &event.Alert{Level: event.LevelWarning, Kind: event.AlertRollback}}
}

func inPhase(p event.Phase) event.Record { return event.Record{State: &event.State{Phase: p}} }

// TestSavePeriod: the period between checkpoints follows the duration of a save, in both directions, and the time
// between faults.
func TestSavePeriod(t *testing.T) {
	c := &Coordinator{cfg: Config{SavePeriod: SaveByCost}}
	at := logOf(&c.faults)
	clock := func(d time.Duration) { c.now = time.Unix(1000, 0).Add(d) }
	near := func(what string, want time.Duration) {
		t.Helper()
		if got := c.savePeriod(); got < want*99/100 || got > want*101/100 {
			t.Errorf("%s: a checkpoint every %v, want %v", what, got, want)
		}
	}
	at(0, event.Record{Config: &event.Config{}})
	clock(time.Second)
	near("before the first save", FirstSave)
	c.cfg.Resume = &event.Checkpoint{}
	near("before the first save of a resumed run", shortestSavePeriod)
	clock(time.Hour)
	c.saveTook(time.Second)
	near("a save of 1 s, an hour without a fault", 85853*time.Millisecond) // 1 + sqrt(2 x 1 x 3600)
	for range 20 {
		c.saveTook(2 * time.Millisecond)
	}
	near("saves of 2 ms after a slow one", 3795*time.Millisecond)
	for range 20 {
		c.saveTook(100 * time.Millisecond)
	}
	clock(10 * time.Second)
	near("saves of 100 ms, ten seconds after the start", 6260*time.Millisecond) // 0.1 + sqrt(2 x 0.1 x sqrt(3600 x 10))
	for k := range time.Duration(10) {
		at((k+1)*10*time.Second, rollback())
		at((k+1)*10*time.Second+500*time.Millisecond, rollback()) // of the same fault
	}
	clock(100 * time.Second)
	near("saves of 100 ms, a fault every 10 s", 1518*time.Millisecond)
	clock(time.Hour)
	if got := c.savePeriod(); got < 5*time.Second {
		t.Errorf("after an hour without a fault there is still a checkpoint every %v", got)
	}
	c.cfg.SavePeriod = 40 * time.Millisecond
	near("a period that was set", 40*time.Millisecond)
}

// TestFaultRate: the end of a process is a fault, unless it ended its run.
func TestFaultRate(t *testing.T) {
	for _, c := range []struct {
		name string
		last event.Phase
		want time.Duration
	}{
		{"killed while training", event.Training, 805 * time.Second}, // sqrt(3600 x sqrt(3600 x 9))
		{"stopped", event.Stopped, faultPrior},
	} {
		var rate FaultRate
		at := logOf(&rate)
		at(0, event.Record{Config: &event.Config{}})
		resumed := event.Record{State: &event.State{Phase: event.Waiting, Reason: event.Resumed}}
		at(0, resumed)
		at(time.Second, inPhase(event.Training))
		at(5*time.Second, inPhase(event.Waiting)) // for workers
		at(6*time.Second, inPhase(event.Training))
		at(9*time.Second, inPhase(c.last))
		at(48*time.Hour, resumed)
		got := rate.Between(time.Unix(1000, 0).Add(49 * time.Hour))
		if got < c.want-time.Second || got > c.want+time.Second {
			t.Errorf("%s: a fault every %v, want %v", c.name, got, c.want)
		}
	}
}
