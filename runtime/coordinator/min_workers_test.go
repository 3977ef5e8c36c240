package coordinator

import (
	"slices"
	"testing"

	"brood/runtime/event"
	"brood/runtime/message"
)

// TestMinWorkers: a run with fewer workers than it needs waits, with the state of the others, until one joins: after a
// death it makes no plan, after a worker that left it grants no rounds. It says so once.
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
	if p.core.plan != nil {
		t.Errorf("a plan with %d workers: %+v", len(p.core.plan.New.Workers()), p.core.plan.Plan)
	}
	waits(p, true)
	p.step(Joined{Worker: 3})
	if p.core.plan == nil || !slices.Equal(p.core.plan.New.Workers(), []int{0, 2, 3}) || len(p.core.plan.Mirrored) == 0 {
		t.Fatalf("after a worker joined: %+v", p.core.plan)
	}
	p.ready()
	waits(p, false)

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
	p.step(Interrupt{})
	if p.ready(); p.core.phase == event.Paused || p.core.ending == nil {
		t.Error("a run that waits does not end")
	}
	if n := len(p.core.roster.Workers()); n != 2 {
		t.Errorf("to save, the run needs a plan of the others: %d workers", n)
	}
}
