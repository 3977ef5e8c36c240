package coordinator

import (
	"fmt"
	"reflect"
	"slices"

	"brood/models/engine"
	"brood/runtime/event"
)

// checkInvariants checks the invariants that state.go lists.
func (c *Coordinator) checkInvariants() error {
	if c.over {
		return c.life.checkInvariants()
	}
	there := func(w int) bool { return slices.Contains(c.alive, w) }
	for _, p := range []func() error{
		func() error { return c.life.checkInvariants() },
		c.checkWaiting,
		func() error { return c.membership.checkInvariants(c.roster.Has) },
		func() error { return c.epochs.checkInvariants(there) },
		func() error { return c.knobs.checkInvariants() },
		func() error { return c.rounds.checkInvariants(c.cfg.Ahead, c.base, c.plan != nil) },
		func() error { return c.saves.checkInvariants(c.committed) },
	} {
		if err := p(); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) checkInvariants() error {
	switch {
	case l.over && l.ending == nil:
		return fmt.Errorf("the run is over but has no ending")
	case l.phase == event.Training && l.since.IsZero():
		return fmt.Errorf("the run trains but since is not set")
	}
	return nil
}

// checkWaiting checks that a run waits only until a plan is ready, or while it has too few workers, and that it trains
// only with workers.
func (c *Coordinator) checkWaiting() error {
	settled := c.plan == nil && c.change == nil && c.base != c.cfg.Epoch && c.ending == nil
	switch {
	case settled && c.phase == event.Waiting && !c.short():
		return fmt.Errorf("the run waits, but has the workers %v", c.hosts())
	case c.phase == event.Training && len(c.alive) == 0:
		return fmt.Errorf("the run trains without workers")
	case settled && c.phase == event.Training && c.short():
		return fmt.Errorf("the run trains with %d workers", len(c.hosts()))
	}
	return nil
}

func (c *membership) checkInvariants(of func(engine.Member) bool) error {
	if !slices.IsSorted(c.alive) || len(slices.Compact(slices.Clone(c.alive))) != len(c.alive) {
		return fmt.Errorf("alive is not sorted: %v", c.alive)
	}
	for w := range c.excluded {
		if !slices.Contains(c.alive, w) {
			return fmt.Errorf("worker %d is excluded but not present", w)
		}
	}
	for w := range c.keys {
		if !slices.Contains(c.alive, w) {
			return fmt.Errorf("worker %d has a key but is not present", w)
		}
	}
	for pair := range c.breaks {
		if pair[0] >= pair[1] || !slices.Contains(c.alive, pair[0]) || !slices.Contains(c.alive, pair[1]) {
			return fmt.Errorf("a broken connection of %v, but the workers are %v", pair, c.alive)
		}
	}
	for m := range c.lost {
		if !of(m) {
			return fmt.Errorf("member %d is lost but not in the roster", m)
		}
	}
	return nil
}

func (e *epochs) checkInvariants(there func(int) bool) error {
	switch {
	case !reflect.DeepEqual(e.hosting, e.roster.Hosting()):
		return fmt.Errorf("hosting is %v, but the roster is %v", e.hosting, e.roster)
	case e.base > e.epoch:
		return fmt.Errorf("base is epoch %d, after the newest epoch %d", e.base, e.epoch)
	case e.plan == nil:
		return nil
	case e.plan.Epoch != e.epoch || e.epoch == e.base:
		return fmt.Errorf("the plan in progress has epoch %d, base is %d, the newest epoch is %d",
			e.plan.Epoch, e.base, e.epoch)
	case !slices.ContainsFunc(e.pending, there):
		return fmt.Errorf("a plan is in progress, but no worker is pending: %v", e.pending)
	}
	return nil
}

func (k *knobs) checkInvariants() error {
	for _, l := range k.loose {
		if !slices.ContainsFunc(k.edits, l.Same) {
			return fmt.Errorf("loose edit %+v is not in edits", l)
		}
	}
	return nil
}

func (r *rounds) checkInvariants(ahead int, base uint32, planned bool) error {
	if r.committed > r.granted || len(r.done) > ahead || planned && len(r.done) > 0 {
		return fmt.Errorf("committed %d, granted %d, %d grants outstanding, plan in progress: %t",
			r.committed, r.granted, len(r.done), planned)
	}
	at := r.committed
	for range r.done {
		o := r.done[at]
		if o == nil || o.From != at || o.Epoch != base {
			return fmt.Errorf("no outstanding grant of epoch %d starts at round %d: %+v", base, at, o)
		}
		at = o.To
	}
	if len(r.done) > 0 && at != r.granted {
		return fmt.Errorf("grants are outstanding to round %d, granted is %d", at, r.granted)
	}
	return nil
}

func (s *saves) checkInvariants(committed uint64) error {
	switch {
	case s.checkpoint != nil && s.checkpoint.Round > committed:
		return fmt.Errorf("the checkpoint is of round %d, but only %d is committed", s.checkpoint.Round, committed)
	case s.saving != nil && s.saving.at > committed:
		return fmt.Errorf("round %d is being saved, but only %d is committed", s.saving.at, committed)
	case s.tries > backTries:
		return fmt.Errorf("the run returned automatically %d times", s.tries)
	}
	return nil
}
