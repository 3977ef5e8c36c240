package native

import (
	"math"

	"brood/models"
	"brood/models/native/kernel"
)

// norm is batch normalisation over the samples, and over the pixels of a channel (Ioffe & Szegedy 2015): the biased
// variance normalises, the unbiased one updates the running value, as in PyTorch. Sums are taken lane by lane over
// pixels and blocks, then over the lanes. A flat activation has channels of one pixel.
type norm struct {
	wire
	index          int
	image          buffer
	rectify        bool         // a ReLU follows and is fused in both passes
	pool           *kernel.Pool // max pooling that follows and is fused in both passes; nil: none
	scale, shift   int          // tensors
	mean, variance int          // offsets in the statistics
}

func (p *plan) norm(l *models.Layer, in int) int {
	image := p.buffers[in]
	w := wire{in: in, with: -1, out: p.buffer(image), over: true, parameters: true}
	return p.to(&norm{
		wire:     w,
		index:    len(p.ops),
		image:    image,
		scale:    l.Weight,
		shift:    l.Bias,
		mean:     l.Mean,
		variance: l.Var,
	})
}

// Saved values of each channel: the mean and the inverse deviation used by the forward pass, its factors in y = a*x +
// b, and the factors of the backward pass.
const (
	keepMean = iota
	keepInverse
	keepA
	keepB
	keepK
	keepC
	keepD
	kept
)

func (o *norm) saves(int) int { return kept * o.image.channels }

// takePool fuses max pooling that follows into the normalisation, whose result becomes the pooling's. The backward pass
// recomputes the pooled values in the memory of the operand's gradient.
func (p *plan) takePool(in int, w *kernel.Pool, out buffer) bool {
	o, ok := p.before(in).(*norm)
	if !ok || o.pool != nil || !w.Tiles() || len(p.ops) < 2 {
		return false
	}
	if before := p.ops[len(p.ops)-2].wiring(); before.out != o.in || !before.parameters {
		return false
	}
	o.pool, o.over, p.buffers[in] = w, false, out
	return true
}

// keeps returns one kind of saved values, of channels [lo, hi).
func (o *norm) keeps(p *pass, kind, lo, hi int) []float32 {
	return p.saved[o.index][kind*o.image.channels:][lo:hi]
}

func (o *norm) forward(p *pass) {
	p.sums(o.image.channels)
	p.spread((*normForward)(o), o.image.channels)
}

func (o *norm) backward(p *pass, _ bool) {
	p.sums(2 * o.image.channels)
	p.spread((*normBack)(o), o.image.channels)
}

// near limits the input that is processed at a time in bytes: sums and results read it again from the second-level
// cache.
const near = 1 << 18

// channelsAtOnce returns the number of channels within that limit.
func (o *norm) channelsAtOnce(p *pass) int {
	return max(1, near/(4*kernel.Lanes*p.blocks()*o.image.plane()))
}

// at returns the offset of channels [lo, hi) of block b, and the kernels' view of them.
func (o *norm) at(p *pass, b, lo, hi int) (int, kernel.Norm) {
	n := kernel.Norm{
		Channels: hi - lo,
		Rows:     o.image.h * o.image.w,
		Plane:    o.image.plane(),
		Live:     p.live(b),
		ReLU:     o.rectify,
		Mean:     o.keeps(p, keepMean, lo, hi),
		A:        o.keeps(p, keepA, lo, hi),
		B:        o.keeps(p, keepB, lo, hi),
	}
	return (b*o.image.channels + lo) * o.image.plane() * kernel.Lanes, n
}

// pooled returns the offset of channel lo of block b after the pooling.
func (o *norm) pooled(b, lo int) int {
	return b*o.pool.Outputs() + lo*kernel.Plane(o.pool.OutH, o.pool.OutW)*kernel.Lanes
}

// count returns the number of values in a channel's statistics.
func (o *norm) count(p *pass) float64 { return float64(p.n * o.image.h * o.image.w) }

type normForward norm

func (f *normForward) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o := (*norm)(f)
	for step := o.channelsAtOnce(p); lo < hi; lo += step {
		o.apply(p, k, lo, min(lo+step, hi))
	}
}

// apply computes the forward pass of channels [lo, hi).
func (o *norm) apply(p *pass, k *kernel.Kernels, lo, hi int) {
	mean, inverse := o.keeps(p, keepMean, lo, hi), o.keeps(p, keepInverse, lo, hi)
	if p.mode == running && p.stats != nil {
		s := p.plan.model.Layout.StatTensors
		copy(mean, part(p.stats, &s[o.mean])[lo:hi])
		for c, v := range part(p.stats, &s[o.variance])[lo:hi] {
			inverse[c] = float32(1 / math.Sqrt(float64(v)+models.NormEpsilon))
		}
	} else {
		o.measure(p, k, lo, hi)
	}
	scale, shift := tensor(p.params, p.plan.model, o.scale)[lo:hi], tensor(p.params, p.plan.model, o.shift)[lo:hi]
	a, b := o.keeps(p, keepA, lo, hi), o.keeps(p, keepB, lo, hi)
	for c := range a {
		a[c] = scale[c] * inverse[c]
		b[c] = shift[c] - float32(a[c]*mean[c])
	}
	for b := range p.blocks() {
		at, n := o.at(p, b, lo, hi)
		if o.pool == nil {
			k.NormApply(&n, p.act[o.out][at:], p.act[o.in][at:])
		} else {
			k.NormMaxPool(&n, o.pool, p.act[o.out][o.pooled(b, lo):], p.act[o.in][at:])
		}
	}
}

// measure computes the batch's own statistics of channels [lo, hi), and updates the running ones.
func (o *norm) measure(p *pass, k *kernel.Kernels, lo, hi int) {
	x, total, count := p.act[o.in], p.laneSums[lo:hi], o.count(p)
	mean, inverse := o.keeps(p, keepMean, lo, hi), o.keeps(p, keepInverse, lo, hi)
	for b := range p.blocks() {
		at, n := o.at(p, b, lo, hi)
		k.NormSums(&n, total, x[at:])
	}
	for c := range mean {
		mean[c] = float32(fold(&total[c]) / count)
	}
	clear(total)
	for b := range p.blocks() {
		at, n := o.at(p, b, lo, hi)
		k.NormSquares(&n, total, x[at:])
	}
	s := p.plan.model.Layout.StatTensors
	for c := range inverse {
		square := fold(&total[c])
		inverse[c] = float32(1 / math.Sqrt(square/count+models.NormEpsilon))
		if p.stats == nil {
			continue
		}
		m, v := &part(p.stats, &s[o.mean])[lo+c], &part(p.stats, &s[o.variance])[lo+c]
		momentum := float32(models.NormMomentum)
		if p.mode == batchStats {
			momentum = 1
		}
		unbiased := float32(square / (count - 1))
		*m = float32((1-momentum)**m) + float32(momentum*mean[c])
		*v = float32((1-momentum)**v) + float32(momentum*unbiased)
	}
}

type normBack norm

func (f *normBack) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o := (*norm)(f)
	for step := o.channelsAtOnce(p); lo < hi; lo += step {
		o.back(p, k, lo, min(lo+step, hi))
	}
}

// back computes the backward pass of channels [lo, hi). With g = dy*scale, n values and xhat = (x-mean)*inverse,
//
//	dx = inverse*(g - mean(g) - xhat*mean(g*xhat)).
func (o *norm) back(p *pass, kn *kernel.Kernels, lo, hi int) {
	m, dy := p.plan.model, p.dy
	if o.pool != nil {
		dy = p.dx
	}
	shift, scale := p.laneSums[lo:hi], p.laneSums[o.image.channels+lo:o.image.channels+hi]
	for b := range p.blocks() {
		at, n := o.at(p, b, lo, hi)
		if o.pool != nil {
			out := o.pooled(b, lo)
			kn.NormMaxPoolBack(&n, o.pool, dy[at:], p.dy[out:], p.act[o.out][out:], p.act[o.in][at:])
		}
		kn.NormBackSums(&n, shift, scale, dy[at:], p.act[o.in][at:])
	}
	inverse, weight := o.keeps(p, keepInverse, lo, hi), tensor(p.params, m, o.scale)[lo:hi]
	dScale, dShift, count := tensor(p.grad, m, o.scale)[lo:hi], tensor(p.grad, m, o.shift)[lo:hi], o.count(p)
	k, c, d := o.keeps(p, keepK, lo, hi), o.keeps(p, keepC, lo, hi), o.keeps(p, keepD, lo, hi)
	for i := range inverse {
		sd, sx := fold(&shift[i]), fold(&scale[i])*float64(inverse[i])
		dShift[i], dScale[i] = float32(sd), float32(sx)
		// dx = k*dy + c*(x-mean) + d
		factor := float64(weight[i]) * float64(inverse[i])
		k[i] = weight[i] * inverse[i]
		c[i] = float32(-factor * float64(inverse[i]) * sx / count)
		d[i] = float32(-factor * sd / count)
	}
	if p.dx == nil {
		return
	}
	for b := range p.blocks() {
		at, n := o.at(p, b, lo, hi)
		kn.NormBack(&n, p.dx[at:], dy[at:], p.act[o.in][at:], k, c, d)
	}
}

// sums clears p.laneSums, with at least n sums of Lanes lanes.
func (p *pass) sums(n int) {
	if len(p.laneSums) < n {
		p.laneSums = make([][kernel.Lanes]float32, n)
	}
	clear(p.laneSums[:n])
}

func fold(s *[kernel.Lanes]float32) (t float64) {
	for _, v := range s {
		t += float64(v)
	}
	return t
}
