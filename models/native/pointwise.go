package native

import (
	"math"

	"brood/models"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// relu is max(0, x) in place. A product before it does the forward half on its way, a product behind it the backward half.
type relu struct {
	at             int
	fused, without bool // forward is done by the op before; backward by the op behind
}

func (p *plan) rectifier() {
	o := &relu{at: p.last()}
	if n := len(p.ops); n > 0 {
		switch before := p.ops[n-1].(type) {
		case *dense:
			before.rectify, o.fused = true, true
		case *conv:
			before.rectify, o.fused = true, true
		}
	}
	p.to(o, false)
	p.open = o
}

// takeOver says whether the newest activation comes straight from a rectifier, whose gradient the caller then does.
func (p *plan) takeOver() bool {
	if p.open == nil {
		return false
	}
	p.open.without = true
	return true
}

func (o *relu) forward(p *pass) {
	if o.fused {
		return
	}
	x := p.all(o.at)
	for i, v := range x {
		x[i] = max(0, v)
	}
}

func (o *relu) backward(p *pass, input bool) {
	if o.without || !input {
		return
	}
	y := p.all(o.at)
	dy := p.dy[:len(y)]
	for i, v := range y { // without a branch, which would be guessed wrong half of the time: v is at least 0, or NaN
		above := uint32(-int32(math.Float32bits(v)) >> 31)
		dy[i] = math.Float32frombits(math.Float32bits(dy[i]) & above)
	}
}

// all is activation i of the present samples.
func (p *pass) all(i int) []float32 {
	b, n := p.plan.buffers[i], p.n
	if b.block {
		n = whole(n)
	}
	return p.act[i][:n*b.floats()]
}

// dropout multiplies by 0 or 1/(1-rate). Element sample*features+feature of stream layer decides.
type dropout struct {
	index, in, layer int
	image            buffer
	rate             float64
}

func (p *plan) dropout(i int, l *models.Layer) {
	if l.Rate == 0 {
		return
	}
	b := p.buffers[p.last()]
	p.to(&dropout{len(p.ops), p.last(), i, b, l.Rate}, false, b)
}

func (o *dropout) saves(samples int) int { return samples * o.image.floats() }

func (o *dropout) forward(p *pass) {
	x, y := p.all(o.in), p.all(o.in+1)
	if p.mode != training {
		copy(y, x)
		return
	}
	mask := p.saved[o.index][:len(x)]
	o.draw(p, mask)
	for i, m := range mask {
		y[i] = x[i] * m
	}
}

func (o *dropout) backward(p *pass, input bool) {
	if !input {
		return
	}
	for i, m := range p.saved[o.index][:len(p.all(o.in))] {
		p.dy[i] *= m
	}
}

// draw writes the mask in the form of the activation; lanes without a sample get zero.
func (o *dropout) draw(p *pass, mask []float32) {
	key := p.mask
	key.Stream = uint32(o.layer)
	s, keep, limit := p.schedule(), 1/(1-float32(o.rate)), uint32(o.rate*(1<<24))
	lanes := 1
	if o.image.block {
		clear(mask)
		lanes = kernel.Lanes
	}
	var words [4]uint32
	pixels, plane := o.image.h*o.image.w, o.image.plane()
	e := 0
	for sample := range p.n {
		at := sample/lanes*lanes*o.image.floats() + sample%lanes
		for c := range o.image.channels {
			for q := range pixels {
				if e%4 == 0 {
					words = s.Block(key.Counter(uint32(e / 4)))
				}
				m := keep
				if words[e%4]>>8 < limit {
					m = 0
				}
				mask[at+(c*plane+q)*lanes] = m
				e++
			}
		}
	}
}

// schedule expands the key of the mask; all rounds of a run share it as long as they are below 2^32.
func (p *pass) schedule() *noise.Schedule {
	k := p.mask
	k.Round, k.Member, k.Stream = k.Round>>32<<32, 0, 0
	if p.keys == nil || k != p.keyed {
		p.keys, p.keyed = k.Schedule(), k
	}
	return p.keys
}
