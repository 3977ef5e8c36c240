package native

import (
	"math"

	"brood/models"
	"brood/models/native/kernel"
)

// norm is batch normalisation over the samples, and over the pixels of a channel (Ioffe & Szegedy 2015): the biased
// variance normalises, the unbiased one goes into the running value, as in PyTorch. Sums run lane by lane over pixels and
// blocks, and over the lanes at the end.
type norm struct {
	index, in        int
	channels, pixels int // pixels is 0 for a flat activation
	plane            int // rows from channel to channel
	scale, shift     int // tensors
	mean, variance   int // of the statistics
}

func (p *plan) norm(l *models.Layer) {
	o := &norm{channels: l.In[0], scale: l.Weight, shift: l.Bias, mean: l.Mean, variance: l.Var}
	if len(l.In) == 3 {
		p.form(true)
		o.pixels, o.plane = l.In[1]*l.In[2], kernel.Plane(l.In[1], l.In[2])
	}
	o.index, o.in = len(p.ops), p.last()
	p.to(o, true, p.buffers[p.last()])
}

// saves the means and the inverse deviations that the forward pass used, and room for two more values a channel.
func (o *norm) saves(int) int { return 4 * o.channels }

func (o *norm) forward(p *pass) {
	mean, inverse := p.saved[o.index][:o.channels], p.saved[o.index][o.channels:2*o.channels]
	if p.mode == running && p.stats != nil {
		s := p.plan.model.Layout.StatTensors
		for c, v := range part(p.stats, &s[o.variance]) {
			mean[c], inverse[c] = part(p.stats, &s[o.mean])[c], float32(1/math.Sqrt(float64(v)+models.NormEpsilon))
		}
	} else {
		o.measure(p, mean, inverse)
	}
	scale, shift := tensor(p.params, p.plan.model, o.scale), tensor(p.params, p.plan.model, o.shift)
	a, b := p.saved[o.index][2*o.channels:3*o.channels], p.saved[o.index][3*o.channels:]
	for c := range a {
		a[c] = scale[c] * inverse[c]
		b[c] = shift[c] - float32(a[c]*mean[c])
	}
	x, y := p.all(o.in), p.all(o.in+1)
	o.each(p, func(c, lo, n, _ int) {
		ac, bc := a[c], b[c]
		out := y[lo : lo+n]
		for i, v := range x[lo : lo+n] {
			out[i] = float32(ac*v) + bc
		}
	}, func(lo int) {
		for c, ac := range a {
			y[lo+c] = float32(ac*x[lo+c]) + b[c]
		}
	})
}

// each visits all of an activation: channel by channel of every block, or sample by sample of a flat one. live is the
// lanes of the block that hold a sample.
func (o *norm) each(p *pass, channel func(c, lo, n, live int), sample func(lo int)) {
	if o.pixels == 0 {
		for s := range p.n {
			sample(s * o.channels)
		}
		return
	}
	n := o.pixels * kernel.Lanes
	for b := range p.blocks() {
		for c := range o.channels {
			channel(c, (b*o.channels+c)*o.plane*kernel.Lanes, n, p.live(b))
		}
	}
}

// count is the values that a channel's statistics are taken of.
func (o *norm) count(p *pass) float64 { return float64(p.n * max(1, o.pixels)) }

// measure takes the batch's own statistics, and brings them into the running ones.
func (o *norm) measure(p *pass, mean, inverse []float32) {
	x, count := p.all(o.in), o.count(p)
	total := p.sums(o.channels)
	o.each(p, func(c, lo, _, live int) {
		p.k.ColSum(total[c][:live], 1, x[lo:], kernel.Lanes, o.pixels, 1)
	}, func(lo int) {
		for c := range total {
			total[c][0] += x[lo+c]
		}
	})
	for c := range mean {
		mean[c] = float32(fold(&total[c]) / count)
	}
	clear(total)
	o.each(p, func(c, lo, n, live int) {
		m := mean[c]
		t := &total[c]
		for i := lo; i < lo+n; i += kernel.Lanes {
			v := (*[kernel.Lanes]float32)(x[i:])
			for l := range live {
				d := v[l&(kernel.Lanes-1)] - m
				t[l&(kernel.Lanes-1)] += float32(d * d)
			}
		}
	}, func(lo int) {
		for c, m := range mean {
			d := x[lo+c] - m
			total[c][0] += float32(d * d)
		}
	})
	s := p.plan.model.Layout.StatTensors
	for c := range inverse {
		square := fold(&total[c])
		inverse[c] = float32(1 / math.Sqrt(square/count+models.NormEpsilon))
		if p.stats == nil {
			continue
		}
		m, v := &part(p.stats, &s[o.mean])[c], &part(p.stats, &s[o.variance])[c]
		momentum := float32(models.NormMomentum)
		if p.mode == batchStats {
			momentum = 1
		}
		unbiased := float32(square / (count - 1))
		*m = float32((1-momentum)**m) + float32(momentum*mean[c])
		*v = float32((1-momentum)**v) + float32(momentum*unbiased)
	}
}

// backward: with g = dy*scale, n values and xhat = (x-mean)*inverse, dx = inverse*(g - mean(g) - xhat*mean(g*xhat)).
func (o *norm) backward(p *pass, input bool) {
	m := p.plan.model
	mean, inverse := p.saved[o.index][:o.channels], p.saved[o.index][o.channels:2*o.channels]
	x, dy := p.all(o.in), p.dy
	both := p.sums(2 * o.channels)
	shift, scale := both[:o.channels], both[o.channels:]
	o.each(p, func(c, lo, n, live int) {
		mc, sc, sh := mean[c], &scale[c], &shift[c]
		for i := lo; i < lo+n; i += kernel.Lanes {
			v, d := (*[kernel.Lanes]float32)(x[i:]), (*[kernel.Lanes]float32)(dy[i:])
			for l := range live {
				l &= kernel.Lanes - 1
				sh[l] += d[l]
				sc[l] += float32(d[l] * (v[l] - mc))
			}
		}
	}, func(lo int) {
		for c, mc := range mean {
			d := dy[lo+c]
			shift[c][0] += d
			scale[c][0] += float32(d * (x[lo+c] - mc))
		}
	})
	dScale, dShift, count := tensor(p.grad, m, o.scale), tensor(p.grad, m, o.shift), o.count(p)
	a, b, e := p.saved[o.index][2*o.channels:3*o.channels], p.saved[o.index][3*o.channels:], tensor(p.params, m, o.scale)
	for c := range mean {
		sd, sx := fold(&shift[c]), fold(&scale[c])*float64(inverse[c])
		dShift[c], dScale[c] = float32(sd), float32(sx)
		// dx = k*dy + a*(x-mean) + b
		k := float64(e[c]) * float64(inverse[c])
		a[c] = float32(-k * float64(inverse[c]) * sx / count)
		b[c] = float32(-k * sd / count)
	}
	if !input {
		return
	}
	o.each(p, func(c, lo, n, live int) {
		k, ac, bc, mc := e[c]*inverse[c], a[c], b[c], mean[c]
		for i := lo; i < lo+n; i += kernel.Lanes {
			v, d := (*[kernel.Lanes]float32)(x[i:]), (*[kernel.Lanes]float32)(dy[i:])
			for l := range live {
				l &= kernel.Lanes - 1
				d[l] = float32(k*d[l]) + float32(ac*(v[l]-mc)) + bc
			}
			clear(dy[i+live : i+kernel.Lanes])
		}
	}, func(lo int) {
		for c, ac := range a {
			dy[lo+c] = float32(float32(e[c]*inverse[c])*dy[lo+c]) + float32(ac*(x[lo+c]-mean[c])) + b[c]
		}
	})
}

// sums is cleared room for so many sums of Lanes lanes.
func (p *pass) sums(n int) [][kernel.Lanes]float32 {
	if len(p.lanes) < n {
		p.lanes = make([][kernel.Lanes]float32, n)
	}
	clear(p.lanes[:n])
	return p.lanes[:n]
}

func fold(s *[kernel.Lanes]float32) (t float64) {
	for _, v := range s {
		t += float64(v)
	}
	return t
}
