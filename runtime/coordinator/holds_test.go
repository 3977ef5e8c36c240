package coordinator

import (
	"fmt"
	"reflect"
	"slices"

	"brood/models/engine"
	"brood/runtime/event"
)

// holds asks for what the parts of the state promise.
func (c *Coordinator) holds() error {
	if c.over {
		return c.life.holds()
	}
	there := func(w int) bool { return slices.Contains(c.alive, w) }
	for _, p := range []func() error{
		func() error { return c.life.holds() },
		func() error { return c.membership.holds(c.roster.Has) },
		func() error { return c.epochs.holds(there) },
		func() error { return c.knobs.holds() },
		func() error { return c.rounds.holds(c.cfg.Ahead, c.base, c.plan != nil) },
		func() error { return c.saves.holds(c.committed) },
	} {
		if err := p(); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) holds() error {
	switch {
	case l.over && l.ending == nil:
		return fmt.Errorf("it is over and has no ending")
	case l.phase == event.Training && l.began.IsZero():
		return fmt.Errorf("it trains and has not begun")
	}
	return nil
}

func (c *membership) holds(of func(engine.Member) bool) error {
	if !slices.IsSorted(c.alive) || len(slices.Compact(slices.Clone(c.alive))) != len(c.alive) {
		return fmt.Errorf("workers %v are there", c.alive)
	}
	for w := range c.excluded {
		if !slices.Contains(c.alive, w) {
			return fmt.Errorf("worker %d rests and is gone", w)
		}
	}
	for w := range c.keys {
		if !slices.Contains(c.alive, w) {
			return fmt.Errorf("worker %d has a key and is gone", w)
		}
	}
	for pair := range c.breaks {
		if pair[0] >= pair[1] || !slices.Contains(c.alive, pair[0]) || !slices.Contains(c.alive, pair[1]) {
			return fmt.Errorf("a connection of %v broke, and %v are there", pair, c.alive)
		}
	}
	for m := range c.lost {
		if !of(m) {
			return fmt.Errorf("member %d is lost, and is not of the roster", m)
		}
	}
	return nil
}

func (e *epochs) holds(there func(int) bool) error {
	switch {
	case !reflect.DeepEqual(e.hosting, e.roster.Hosting()):
		return fmt.Errorf("by its workers the roster is %v, and by its members %v", e.hosting, e.roster)
	case e.base > e.epoch:
		return fmt.Errorf("epoch %d is in force, and the newest is %d", e.base, e.epoch)
	case e.plan == nil:
		return nil
	case e.plan.Epoch != e.epoch || e.epoch == e.base:
		return fmt.Errorf("the plan of epoch %d is out; %d is in force, the newest is %d",
			e.plan.Epoch, e.base, e.epoch)
	case !slices.ContainsFunc(e.pending, there):
		return fmt.Errorf("nobody is to be ready for the plan that is out: %v", e.pending)
	}
	return nil
}

func (k *knobs) holds() error {
	for _, l := range k.loose {
		if !slices.ContainsFunc(k.edits, l.Same) {
			return fmt.Errorf("edit %+v is loose, and is none of those that are known", l)
		}
	}
	return nil
}

func (r *rounds) holds(ahead int, base uint32, planned bool) error {
	if r.committed > r.granted || len(r.done) > ahead || planned && len(r.done) > 0 {
		return fmt.Errorf("committed %d, granted %d, %d grants outstanding, a plan is out: %t",
			r.committed, r.granted, len(r.done), planned)
	}
	at := r.committed
	for range r.done {
		o := r.done[at]
		if o == nil || o.From != at || o.Epoch != base {
			return fmt.Errorf("no grant of epoch %d is out from round %d on: %+v", base, at, o)
		}
		at = o.To
	}
	if len(r.done) > 0 && at != r.granted {
		return fmt.Errorf("grants are out to round %d, granted is %d", at, r.granted)
	}
	return nil
}

func (s *saves) holds(committed uint64) error {
	switch {
	case s.checkpoint != nil && s.checkpoint.Round > committed:
		return fmt.Errorf("the checkpoint is of round %d, and %d is committed", s.checkpoint.Round, committed)
	case s.saving != nil && s.saving.at > committed:
		return fmt.Errorf("round %d is being saved, and %d is committed", s.saving.at, committed)
	case s.tries > backTries:
		return fmt.Errorf("it went back %d times by itself", s.tries)
	}
	return nil
}
