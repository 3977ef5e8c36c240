package coordinator

import (
	"fmt"
	"slices"

	"brood/runtime/message"
)

// drawCuts lets connections between workers break. It has dice of its own: what a seed draws otherwise stays as it was.
func drawCuts(s *sim, seed uint64) {
	s.odds, s.nevers = dice{seed ^ 0xc0de}, dice{seed ^ 0xdead}
	if s.odds.one(2) {
		s.severs = 2 + s.odds.n(20)
	}
}

// drawCut breaks the connection of a worker to one of those that it meets, now and then. Where one of the two was in no
// membership epoch yet, there may never have been one.
func (s *sim) drawCut(id int, peers []int) {
	if len(peers) < 2 || !spend(&s.severs, &s.odds, 2) {
		return
	}
	other := peers[s.odds.n(len(peers))]
	if other == id {
		return
	}
	s.at(int64(s.odds.n(8)), func() error {
		never := (s.workers[id].fresh() || s.workers[other].fresh()) && s.nevers.one(2)
		s.note("workers %d and %d lose each other, never met %v", id, other, never)
		if err := s.workers[id].sever(other, never); err != nil {
			return err
		}
		return s.workers[other].sever(id, never)
	})
}

// fresh says whether a worker was in no membership epoch yet.
func (w *simWorker) fresh() bool { return w.now == nil && w.next == nil }

// sever is the end of a connection, which who waits for the other notices.
func (w *simWorker) sever(other int, never bool) error {
	if w.dead || w.at == nil || !slices.Contains(w.peers, other) {
		return nil
	}
	w.cancel()
	w.cuts++
	w.sim.workers[other].cuts++
	w.sim.reply(w.id, message.Failed{Worker: w.id, Epoch: w.epoch, Err: "it is silent", Cut: &other, Never: never})
	return w.work()
}

// sentAway holds who is put out against what was said last. Of two that never met the one that hosts no member goes,
// which is for good at most by its own word; otherwise nobody goes for good because of lost links.
func (c *checker) sentAway(w int, m message.Evict) error {
	f := c.cut
	if f == nil || !f.Never {
		if m.After == 0 {
			return fmt.Errorf("worker %d is put out for good, and only lost others", w)
		}
		return nil
	}
	hosts := func(w int) bool { return len(c.roster.Hosted(w)) > 0 }
	if hosts(w) && hosts(f.Worker) != hosts(*f.Cut) {
		return fmt.Errorf("workers %d and %d never met, and %d is put out, which hosts members", f.Worker, *f.Cut, w)
	}
	if w != f.Worker && m.After == 0 {
		return fmt.Errorf("worker %d is put out for good by the word of worker %d", w, f.Worker)
	}
	c.count["never"]++
	if w != f.Worker {
		c.count["by another's word"]++
	}
	return nil
}
