package native

import (
	"sync"
	"sync/atomic"

	"brood/models/native/kernel"
)

// job is a step of an op in units that do not touch each other: blocks of samples, channels, strips of columns. Which
// thread takes which units shows in no bit.
type job interface {
	run(p *pass, k *kernel.Kernels, lo, hi int)
}

// team is the threads that help a pass while there are fewer members than threads. Its goroutines end with close.
type team struct {
	helpers []*helper
	ended   sync.WaitGroup
}

// helper is one of them. A share of a job is offered to it; the leader does itself what the helper has not begun when
// the leader is through with its own, so that a helper without a processor delays nothing.
type helper struct {
	state atomic.Int32
	_     [64]byte // whoever looks at the state does not hold up the writing of the share
	share portion
	wake  chan struct{} // to a helper that sleeps
	done  chan struct{} // to a leader that sleeps
}

// The states of a helper.
const (
	idle    int32 = iota // looks for a share
	asleep               // until it is woken
	offered              // a share waits
	taken                // runs it
	awaited              // runs it, and the leader sleeps
	ended
)

// A thread looks so often for what the other does before it sleeps: waking takes longer than a small job. A helper
// looks for some 70 microseconds, since jobs follow each other sooner; a leader for longer, since it waits for what
// runs.
const (
	patience = 100_000
	trust    = 4 * patience
)

// portion is a helper's share of a job.
type portion struct {
	job    job
	pass   *pass
	lo, hi int
}

// newTeam starts a helper on each of the kernels.
func newTeam(kernels []*kernel.Kernels) *team {
	t := &team{}
	for _, k := range kernels {
		h := &helper{wake: make(chan struct{}, 1), done: make(chan struct{}, 1)}
		t.helpers = append(t.helpers, h)
		t.ended.Go(func() { h.work(k) })
	}
	return t
}

// close waits until the helpers have ended.
func (t *team) close() {
	for _, h := range t.helpers {
		if h.state.Swap(ended) == asleep {
			h.wake <- struct{}{}
		}
	}
	t.ended.Wait()
}

// soon says whether f came true within so many looks.
func soon(looks int, f func() bool) bool {
	for range looks {
		if f() {
			return true
		}
	}
	return false
}

// work runs the shares that are offered.
func (h *helper) work(k *kernel.Kernels) {
	stirred := func() bool { return h.state.Load() != idle }
	for {
		if !soon(patience, stirred) && h.state.CompareAndSwap(idle, asleep) {
			<-h.wake
		}
		if h.state.Load() == ended {
			return
		}
		if !h.state.CompareAndSwap(offered, taken) {
			continue // the leader took it back
		}
		s := &h.share
		s.job.run(s.pass, k, s.lo, s.hi)
		if h.state.Swap(idle) == awaited {
			h.done <- struct{}{}
		}
	}
}

// offer gives the helper, who has none, a share.
func (h *helper) offer(s portion) {
	h.share = s
	if h.state.Swap(offered) == asleep {
		h.wake <- struct{}{}
	}
}

// finish returns once the share is done, by the leader on kernels k where the helper has not begun.
func (h *helper) finish(k *kernel.Kernels) {
	if h.state.CompareAndSwap(offered, idle) {
		h.share.job.run(h.share.pass, k, h.share.lo, h.share.hi)
		return
	}
	through := func() bool { return h.state.Load() != taken }
	if !soon(trust, through) && h.state.CompareAndSwap(taken, awaited) {
		<-h.done
	}
}

// spread runs all units of a job, on as many threads as the pass has.
func (p *pass) spread(j job, units int) {
	if p.team == nil || units < 2 {
		if units > 0 {
			j.run(p, p.k, 0, units)
		}
		return
	}
	n := min(units, 1+len(p.team.helpers))
	helpers := p.team.helpers[:n-1]
	for i, h := range helpers {
		h.offer(portion{j, p, (i + 1) * units / n, (i + 2) * units / n})
	}
	j.run(p, p.k, 0, units/n)
	for _, h := range helpers {
		h.finish(p.k)
	}
}
