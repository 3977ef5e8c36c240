package coordinator

import (
	"fmt"
	"slices"

	"brood/runtime/event"
	"brood/runtime/message"
)

// drawLeaves lets some workers leave politely, and an operator cordon, drain and let in others. It has dice of its own:
// what a seed draws otherwise stays as it was.
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

// leave is a worker's wish to go.
func (s *sim) leave(id int) error {
	if id >= len(s.workers) || s.workers[id].dead || !s.workers[id].here {
		return nil
	}
	s.note("worker %d wants to leave", id)
	s.check.count["leaving"]++
	s.reply(id, message.Leaving{Worker: id})
	return nil
}

// dismiss lets a worker go: it ends when it hears of it, and then the coordinator of that.
func (s *sim) dismiss(id int) error {
	w := s.workers[id]
	if err := s.check.dismissed(id); err != nil {
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

// dismissed holds that nothing is lost with a worker that leaves: its members have moved on, or are in a checkpoint.
func (c *checker) dismissed(id int) error {
	c.count["dismissed"]++
	if slices.Contains(c.s.core.alive, id) {
		return fmt.Errorf("worker %d is dismissed and still counted on", id)
	}
	if len(c.roster.Hosted(id)) == 0 || !c.begun {
		return nil
	}
	c.count["abandoned"]++
	for i, m := range c.roster.Members {
		if w := c.s.workers[c.roster.Owner[i]]; slices.Contains(c.s.core.alive, w.id) {
			return fmt.Errorf("worker %d is dismissed with its members while worker %d hosts member %d", id, w.id, m)
		}
	}
	whole := !slices.ContainsFunc(c.roster.Workers(), func(w int) bool { return c.s.workers[w].dead || c.s.workers[w].faulty })
	if whole && c.count["disk"] == 0 && (c.newest == nil || c.newest.Round != c.at || c.newest.Epoch != c.epoch) {
		return fmt.Errorf("worker %d is dismissed with the members %v, and no checkpoint holds round %d", id, c.roster.Hosted(id), c.at)
	}
	return nil
}
