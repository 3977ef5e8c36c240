package worker

import (
	"context"

	"brood/optim/collective"
	"brood/runtime/message"
)

// Holds returns the digests of a committed state, if this worker holds it: nil, nil if it does not. It returns to that
// state and forgets newer plans and grants, which no coordinator will commit.
func (w *Worker) Holds(ctx context.Context, at message.Committed) (*message.Held, error) {
	w.install(at.Epoch)
	s := w.now
	if s == nil || s.epoch != at.Epoch || s.restore(ctx, at.Round) != nil {
		return nil, nil
	}
	if w.next != nil {
		w.next.free()
		w.next = nil
	}
	w.epoch = at.Epoch
	digests, bad, err := s.digests(ctx)
	if err != nil || bad != nil {
		return nil, err
	}
	h := &message.Held{Committed: at, Digests: digests}
	h.Mirrored, err = s.mirroredDigests(ctx, at.Round)
	return h, err
}

// mirroredDigests returns the digests of the copies that this worker holds as a mirror of a round; nil if it holds
// none.
func (s *epochState) mirroredDigests(ctx context.Context, round uint64) (d message.Digests, err error) {
	if copies, ok := s.mirrors.at[round]; ok {
		d, _, err = s.digestsOf(ctx, copies, s.env.Roster.Mirrors().Hosted(s.env.Self), nil)
	}
	return d, err
}

// Reconnect gives the worker what it uses in its next session with a coordinator.
func (w *Worker) Reconnect(link collective.Link, store Store, overhead func() int64) {
	w.link.Link, w.cfg.Store, w.cfg.Overhead = link, store, overhead
}
