package coordinator

import (
	"fmt"
	"slices"

	"brood/runtime/event"
	"brood/runtime/message"
)

// drawLeaves lets some workers leave, and an operator cordon, drain and uncordon workers. It has its own dice, so that
// the other decisions of a seed do not change.
func drawLeaves(s *sim, seed uint64) {
	d := dice{seed ^ 0x1ea7}
	for d.one(3) {
		at, id := int64(d.n(400)), d.n(s.scene.workers+2)
		s.at(at, func() error { return s.leave(id) })
	}
	for d.one(2) {
		at, id := int64(d.n(400)), d.n(s.scene.workers+1)
		a := []event.Action{event.Cordon, event.Drain, event.Drain, event.Uncordon}[d.n(4)]
		s.at(at, func() error { return s.command(event.Command{Action: a, Worker: id}) })
	}
}

// leave sends a worker's request to leave.
func (s *sim) leave(id int) error {
	if id >= len(s.workers) || s.workers[id].dead || !s.workers[id].here {
		return nil
	}
	s.note("worker %d wants to leave", id)
	s.check.count["leaving"]++
	s.reply(id, message.Leaving{Worker: id})
	return nil
}

// release carries out Release: the worker ends when the message arrives, and then the core receives Lost.
func (s *sim) release(id int) error {
	w := s.workers[id]
	if err := s.check.released(id); err != nil {
		return err
	}
	s.channel(id, 0, func() error {
		if w.dead {
			return nil
		}
		w.dead = true
		w.cancel()
		s.reply(id, Lost{id, "the run is over"})
		return nil
	})
	return nil
}

// released checks that no member is lost with a released worker: its members have moved, or are in a checkpoint.
func (c *checker) released(id int) error {
	c.count["released"]++
	if slices.Contains(c.s.core.alive, id) {
		return fmt.Errorf("worker %d is released but still in alive", id)
	}
	if len(c.roster.Hosted(id)) == 0 || !c.begun {
		return nil
	}
	c.count["abandoned"]++
	for i, m := range c.roster.Members {
		if w := c.s.workers[c.roster.Owner[i]]; slices.Contains(c.s.core.alive, w.id) {
			return fmt.Errorf("worker %d is released with its members, although worker %d is present and hosts member %d",
				id, w.id, m)
		}
	}
	whole := !slices.ContainsFunc(c.roster.Workers(),
		func(w int) bool { return c.s.workers[w].dead || c.s.workers[w].faulty })
	if whole && c.count["disk"] == 0 && (c.newest == nil || c.newest.Round != c.at || c.newest.Epoch != c.epoch) {
		return fmt.Errorf("worker %d is released with the members %v, but no checkpoint has round %d", id,
			c.roster.Hosted(id), c.at)
	}
	return nil
}
