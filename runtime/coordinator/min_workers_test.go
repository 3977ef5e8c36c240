package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/message"
)

// TestMinWorkers: a run with fewer workers than it needs waits until one joins: it places the members, and grants no
// rounds. It reports this once. Reports of rounds that the death ended evict no worker.
func TestMinWorkers(t *testing.T) {
	newRun := func() *testRun {
		p := newTestRun(t, 3, func(c *Config) { c.MinWorkers, c.Wait, c.OnLoss = 3, 1, OnLossMirror })
		p.round(nil)
		return p
	}
	waits := func(p *testRun, want bool) {
		t.Helper()
		p.step(Tick{})
		p.step(Tick{})
		n := 0
		for _, a := range p.alerts() {
			if a == "error lost-worker: the run waits: it needs 3 workers, and has 2" {
				n++
			}
		}
		phase := event.Training
		if want {
			phase = event.Waiting
		}
		if granted := p.core.granted > p.core.committed; n != 1 || granted == want || p.core.Phase() != phase {
			t.Errorf("alerts %q; rounds are granted: %t; %s", p.alerts(), granted, p.core.Phase())
		}
	}
	p := newRun()
	p.step(Lost{Worker: 1, Reason: "it is silent"})
	cut := 1
	p.step(message.Failed{Worker: 0, Epoch: p.core.base, Err: "the connection was cut", Cut: &cut})
	p.step(message.Failed{Worker: 2, Epoch: p.core.base, Err: "worker 1 left the roster"})
	p.ready()
	waits(p, true)
	p.step(Joined{Worker: 3})
	if p.core.plan == nil || !slices.Equal(p.core.plan.New.Workers(), []int{0, 2, 3}) || len(p.evicted) > 0 {
		t.Fatalf("after a worker joined: evicted %v, %+v", p.evicted, p.core.plan)
	}
	p.ready()
	waits(p, false)
	p.step(message.Leaving{Worker: 0}) // the run waits again, and reports this again
	for p.core.granted > p.core.committed {
		p.round(nil)
	}
	p.ready()
	if n := len(p.alerts()); p.core.granted > p.core.committed || !strings.Contains(p.alerts()[n-1], "the run waits") {
		t.Errorf("after a worker left again: %q", p.alerts())
	}

	p = newRun()
	p.step(message.Leaving{Worker: 1})
	for p.core.granted > p.core.committed {
		p.round(nil)
	}
	p.ready()
	waits(p, true)
	p.step(Joined{Worker: 3})
	p.ready()
	waits(p, false)

	p = newRun()
	p.step(Lost{Worker: 1, Reason: "it is silent"})
	p.ready()
	p.step(Interrupt{})
	p.answerSave()
	if p.exit == nil || p.exit.Phase != event.Stopped {
		t.Errorf("a run that waits does not end: %+v", p.exit)
	}
}

// TestStillShort: each plan on fewer workers than the run needs is followed by an alert with their number, since the
// plan resolves the alert before it.
func TestStillShort(t *testing.T) {
	p := newTestRun(t, 3, func(c *Config) { c.MinWorkers = 3 })
	p.step(Lost{Worker: 1, Reason: "it is silent"})
	p.step(Lost{Worker: 2, Reason: "it is silent"})
	p.ready()
	for _, has := range []int{1, 2} {
		want := fmt.Sprintf("error lost-worker: the run waits: it needs 3 workers, and has %d", has)
		if a := p.alerts(); a[len(a)-1] != want || p.core.Phase() != event.Waiting {
			t.Errorf("with %d workers: %q, %s", has, a, p.core.Phase())
		}
		p.step(Joined{Worker: 2 + has})
		p.ready()
	}
	if p.core.Phase() != event.Training {
		t.Errorf("with 3 workers the run is %s", p.core.Phase())
	}
}

// TestTimeLimitCountsTraining: time in which the run is paused or lacks workers does not count towards a limit in
// seconds.
func TestTimeLimitCountsTraining(t *testing.T) {
	for name, halt := range map[string][2]any{
		"paused":            {event.Command{Action: event.Pause}, event.Command{Action: event.Resume}},
		"no worker left":    {Lost{Worker: 0, Reason: "it is silent"}, Joined{Worker: 1}},
		"the last one left": {message.Leaving{Worker: 0}, Joined{Worker: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestRun(t, 1, func(c *Config) { c.Limit = event.Limit{Seconds: 10} })
			p.now = p.now.Add(4 * time.Second)
			p.step(halt[0])
			for p.core.granted > p.core.committed {
				p.round(nil)
			}
			p.ready()
			if p.core.saving != nil {
				p.answerSave()
			}
			if ph := p.core.Phase(); ph == event.Training {
				t.Errorf("the run is %s", ph)
			}
			p.now = p.now.Add(time.Hour)
			p.step(Tick{})
			p.step(halt[1])
			p.ready()
			p.now = p.now.Add(5 * time.Second)
			if p.step(Tick{}); p.core.Phase() != event.Training || p.core.ending != nil {
				t.Errorf("after 9 s of training: %s, %+v", p.core.Phase(), p.core.ending)
			}
			p.now = p.now.Add(2 * time.Second)
			if p.step(Tick{}); p.core.ending == nil {
				t.Error("after 11 s of training the run has not ended")
			}
		})
	}
}

// TestResumeWithoutWorkers: a run that was paused and has lost its workers waits for one when it is resumed.
func TestResumeWithoutWorkers(t *testing.T) {
	p := newTestRun(t, 1, nil)
	p.step(event.Command{Action: event.Pause})
	p.step(Lost{Worker: 0, Reason: "it is silent"})
	if p.step(event.Command{Action: event.Resume}); p.core.Phase() != event.Waiting {
		t.Errorf("without workers the run is %s", p.core.Phase())
	}
	p.step(Joined{Worker: 1})
	if p.ready(); p.core.Phase() != event.Training {
		t.Errorf("with a worker the run is %s", p.core.Phase())
	}
}

// TestFateOfLostMembers: the note of the plan after a loss says what becomes of the members.
func TestFateOfLostMembers(t *testing.T) {
	for policy, want := range map[LossPolicy]string{
		OnLossReseed:   "worker 1 is lost; 2 members start again from the centre",
		OnLossShrink:   "worker 1 is lost; 2 members leave the population",
		OnLossRollback: "worker 1 is lost",
		OnLossMirror:   "worker 1 is lost; the rows of lost members come from mirrors",
	} {
		p := newTestRun(t, 2, func(c *Config) { c.OnLoss = policy })
		p.round(nil)
		if p.step(Lost{Worker: 1, Reason: "it left"}); p.core.plan.Note != want {
			t.Errorf("%s: %q", policy, p.core.plan.Note)
		}
	}
}
