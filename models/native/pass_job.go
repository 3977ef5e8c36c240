package native

import "brood/models/native/kernel"

// job is a step of an op in units with disjoint outputs: blocks of samples, channels or strips of columns. The result
// does not depend on which thread runs which units.
type job interface {
	run(p *pass, k *kernel.Kernels, lo, hi int)
}

// jobOf is a job of a pass as a parallelBody.
type jobOf struct {
	pass *pass
	job  job
}

func (w *jobOf) do(s portion, l *thread) { w.job.run(w.pass, l.Kernels, s.lo, s.hi) }

// spread runs all units of a job, on the thread of the pass and its helpers.
func (p *pass) spread(j job, units int) {
	if len(p.helpers) == 0 {
		if units > 0 {
			j.run(p, p.k, 0, units)
		}
		return
	}
	p.job = jobOf{p, j}
	runParallel(&p.job, units, p.thread, p.helpers)
}
