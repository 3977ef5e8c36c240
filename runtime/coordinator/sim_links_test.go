package coordinator

import (
	"fmt"
	"slices"

	"brood/runtime/message"
)

// drawCuts lets connections between workers break. It has its own dice, so that the other decisions of a seed do not
// change.
func drawCuts(s *sim, seed uint64) {
	s.odds, s.nevers = dice{seed ^ 0xc0de}, dice{seed ^ 0xdead}
	if s.odds.one(2) {
		s.severs = 2 + s.odds.n(20)
	}
}

// drawCut sometimes breaks the connection of a worker to one of its peers. If one of the two has not been in any
// membership epoch yet, the connection may never have existed.
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
		s.note("the connection of workers %d and %d breaks, never existed: %v", id, other, never)
		if err := s.workers[id].sever(other, never); err != nil {
			return err
		}
		return s.workers[other].sever(id, never)
	})
}

// fresh reports whether a worker has not been in any membership epoch yet.
func (w *simWorker) fresh() bool { return w.now == nil && w.next == nil }

// sever ends a connection. A worker that waits for the other end reports it.
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

// evicted checks an eviction against the last report. Of two workers that never connected, the one without members is
// evicted, for good only by its own report; otherwise no worker is evicted for good because of broken connections.
func (c *checker) evicted(w int, m message.Evict) error {
	f := c.cut
	if f == nil || !f.Never {
		if m.After == 0 {
			return fmt.Errorf("worker %d is evicted for good, but only lost connections", w)
		}
		return nil
	}
	hosts := func(w int) bool { return len(c.roster.Hosted(w)) > 0 }
	if hosts(w) && hosts(f.Worker) != hosts(*f.Cut) {
		return fmt.Errorf("workers %d and %d never connected, and %d is evicted although it hosts members", f.Worker,
			*f.Cut, w)
	}
	if w != f.Worker && m.After == 0 {
		return fmt.Errorf("worker %d is evicted for good by the report of worker %d", w, f.Worker)
	}
	c.count["never"]++
	if w != f.Worker {
		c.count["reported by another"]++
	}
	return nil
}
