package coordinator

import (
	"slices"

	"brood/runtime/message"
)

// drawCuts lets connections between workers break. It has dice of its own: what a seed draws otherwise stays as it was.
func drawCuts(s *sim, seed uint64) {
	s.odds = dice{seed ^ 0xc0de}
	if s.odds.one(2) {
		s.severs = 2 + s.odds.n(20)
	}
}

// drawCut breaks the connection of a worker to one of those that it meets, now and then.
func (s *sim) drawCut(id int, peers []int) {
	if len(peers) < 2 || !spend(&s.severs, &s.odds, 2) {
		return
	}
	other := peers[s.odds.n(len(peers))]
	if other == id {
		return
	}
	s.at(int64(s.odds.n(8)), func() error {
		s.note("workers %d and %d lose each other", id, other)
		if err := s.workers[id].sever(other); err != nil {
			return err
		}
		return s.workers[other].sever(id)
	})
}

// fresh says whether a worker was in no membership epoch yet.
func (w *simWorker) fresh() bool { return w.now == nil && w.next == nil }

// sever is the end of a connection, which who waits for the other notices.
func (w *simWorker) sever(other int) error {
	if w.dead || w.at == nil || !slices.Contains(w.peers, other) {
		return nil
	}
	w.cancel()
	w.cuts++
	w.sim.workers[other].cuts++
	w.sim.reply(w.id, message.Failed{Worker: w.id, Epoch: w.epoch, Err: "it is silent", Cut: &other})
	return w.work()
}
