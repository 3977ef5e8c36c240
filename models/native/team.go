package native

import (
	goruntime "runtime"
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
	helpers []chan portion
	busy    atomic.Int32 // helpers with a share of the present job
	ended   sync.WaitGroup
}

// patience is how often a helper looks for the next job before it sleeps: jobs follow each other within microseconds, and
// waking takes as long as a small one.
const patience = 2000

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
		work := make(chan portion, 1)
		t.helpers = append(t.helpers, work)
		t.ended.Go(func() {
			for {
				w, ok := await(work)
				if !ok {
					return
				}
				w.job.run(w.pass, k, w.lo, w.hi)
				t.busy.Add(-1)
			}
		})
	}
	return t
}

// await is the next share of a job; false says that there are no more.
func await(work <-chan portion) (portion, bool) {
	for range patience {
		select {
		case w, ok := <-work:
			return w, ok
		default:
		}
	}
	w, ok := <-work
	return w, ok
}

// close waits until the helpers have ended.
func (t *team) close() {
	for _, work := range t.helpers {
		close(work)
	}
	t.ended.Wait()
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
	p.team.busy.Add(int32(n - 1))
	for i := 1; i < n; i++ {
		p.team.helpers[i-1] <- portion{j, p, i * units / n, (i + 1) * units / n}
	}
	j.run(p, p.k, 0, units/n)
	for p.team.busy.Load() > 0 {
		goruntime.Gosched()
	}
}
