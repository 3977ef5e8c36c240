package native

import (
	"brood/models"
	"brood/models/native/kernel"
)

// dropout multiplies by 0 or 1/(1-rate), as element sample*features+feature of the noise stream with the layer's number
// decides.
type dropout struct {
	wire
	index, layer int
	image        buffer
	rate         float64
}

func (p *plan) dropout(i int, l *models.Layer, in int) int {
	b := p.buffers[in]
	return p.to(&dropout{wire{in: in, with: -1, out: p.buffer(b), over: true}, len(p.ops), i, b, l.Rate})
}

func (o *dropout) saves(samples int) int { return samples * o.image.floats() }

func (o *dropout) forward(p *pass) {
	if p.mode != training {
		copy(p.all(o.out), p.all(o.in))
		return
	}
	p.schedule()
	p.spread((*dropoutForward)(o), p.blocks())
}

func (o *dropout) backward(p *pass, input bool) {
	if input {
		p.spread((*dropoutBack)(o), p.blocks())
	}
}

type dropoutForward dropout

// run draws the masks of blocks of samples, whose elements are contiguous in the stream.
func (o *dropoutForward) run(p *pass, k *kernel.Kernels, lo, hi int) {
	key := p.mask
	key.Stream = uint32(o.layer)
	features := o.image.channels * o.image.h * o.image.w
	for b := lo; b < hi; b++ {
		from, to := p.span(o.in, b, b+1)
		y, mask := p.act[o.out][from:to], p.saved[o.index][from:to]
		flat, first := mask, b*kernel.Lanes*features
		if o.image.block { // the result's memory is written last and serves as scratch until then
			flat = y[:p.live(b)*features]
		}
		k.Drop(flat, key, p.keys, first, o.rate)
		if o.image.block {
			k.ToBlock(mask, flat, features, p.live(b), o.image.channels, o.image.h, o.image.w)
		}
		k.Mul(y, p.act[o.in][from:to], mask)
	}
}

type dropoutBack dropout

func (o *dropoutBack) run(p *pass, k *kernel.Kernels, lo, hi int) {
	lo, hi = p.span(o.in, lo, hi)
	k.Mul(p.dx[lo:hi], p.dy[lo:hi], p.saved[o.index][lo:hi])
}

// schedule expands the key of the mask; all rounds below 2^32 of a run share it.
func (p *pass) schedule() {
	k := p.mask
	k.Round, k.Member, k.Stream = k.Round>>32<<32, 0, 0
	if p.keys == nil || k != p.keyed {
		p.keys, p.keyed = k.Schedule(), k
	}
}
