package coordinator

import (
	"slices"
	"strings"
	"testing"

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
		if granted := p.core.granted > p.core.committed; n != 1 || granted == want {
			t.Errorf("alerts %q; rounds are granted: %t", p.alerts(), granted)
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
