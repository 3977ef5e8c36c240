package native

import (
	"brood/models"
	"brood/models/native/kernel"
)

// embedding looks up a row for each byte of a window; the result of a sample is [context][out]. Its operand is the
// unscaled bytes, see [data.NewText].
type embedding struct {
	wire
	context, nOut, rows int
	table               int // tensor
}

func (p *plan) embedding(l *models.Layer, in int) int {
	w := wire{in: in, with: -1, out: p.buffer(shaped(l.Out, false)), parameters: true}
	return p.to(&embedding{w, l.In[0], l.Out[0] / l.In[0], p.model.Vocabulary, l.Weight})
}

func (o *embedding) forward(p *pass) { p.spread((*embeddingForward)(o), p.blocks()) }

// backward computes no gradient of its operand, which is the sample.
func (o *embedding) backward(p *pass, _ bool) { p.spread((*embeddingBack)(o), strips(o.rows)) }

type embeddingForward embedding

func (o *embeddingForward) run(p *pass, _ *kernel.Kernels, lo, hi int) {
	table := tensor(p.params, p.plan.model, o.table)
	lo, hi = p.rows(lo, hi)
	y := p.act[o.out][lo*o.context*o.nOut:]
	for i, b := range p.act[o.in][lo*o.context : hi*o.context] {
		copy(y[i*o.nOut:(i+1)*o.nOut], table[int(b)*o.nOut:])
	}
}

type embeddingBack embedding

// run adds up the gradients of rows [lo, hi) over the samples and their positions in order, so that a sum does not
// depend on the split of rows.
func (o *embeddingBack) run(p *pass, k *kernel.Kernels, lo, hi int) {
	lo, hi = strip*lo, min(strip*hi, o.rows)
	d := tensor(p.grad, p.plan.model, o.table)
	clear(d[lo*o.nOut : hi*o.nOut])
	for i, b := range p.act[o.in][:p.n*o.context] {
		if r := int(b); r >= lo && r < hi {
			sum := d[r*o.nOut : (r+1)*o.nOut]
			k.Add(sum, sum, p.dy[i*o.nOut:(i+1)*o.nOut])
		}
	}
}
