package native

import "brood/models/native/kernel"

// job is a step of an op in units that do not touch each other: blocks of samples, channels, strips of columns. Which
// thread takes which units shows in no bit.
type job interface {
	run(p *pass, k *kernel.Kernels, lo, hi int)
}

// jobOf is a pass' job, as a body.
type jobOf struct {
	pass *pass
	job  job
}

func (w *jobOf) do(s portion, l *lane) { w.job.run(w.pass, l.Kernels, s.lo, s.hi) }

// spread runs all units of a job, on as many threads as the pass has.
func (p *pass) spread(j job, units int) {
	if len(p.helpers) == 0 {
		if units > 0 {
			j.run(p, p.k, 0, units)
		}
		return
	}
	p.job = jobOf{p, j}
	jointly(&p.job, units, p.lane, p.helpers)
}
