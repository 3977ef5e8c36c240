package native

import (
	"math"

	"brood/models"
	"brood/models/native/kernel"
)

// layerNorm normalises all values of a sample, or of a position of a text, by their mean and biased variance, and
// applies a scale and a shift to each value (Ba et al. 2016). Samples are independent, so there are no running
// statistics.
type layerNorm struct {
	wire
	index, each, features int // each: rows per sample, of this many features
	scale, shift          int // tensors
}

func (p *plan) layerNorm(l *models.Layer, in int) int {
	w := wire{in: in, with: -1, out: p.buffer(shaped(l.Out, false)), over: true, parameters: true}
	return p.to(&layerNorm{w, len(p.ops), l.Rows, models.Size(l.In) / l.Rows, l.Weight, l.Bias})
}

// saves counts the mean and the inverse deviation of each row.
func (o *layerNorm) saves(samples int) int { return 2 * samples * o.each }

// row returns columns [lo, hi) of row s, counted over all samples, with its saved mean and inverse deviation.
func (o *layerNorm) row(p *pass, s, lo, hi int) kernel.Layer {
	kept := p.saved[o.index][2*s:]
	return kernel.Layer{X: p.act[o.in][s*o.features:][lo:hi], Mean: kept[0], Inverse: kept[1]}
}

// of returns columns [lo, hi) of row s in a matrix of rows.
func (o *layerNorm) of(x []float32, s, lo, hi int) []float32 { return x[s*o.features:][lo:hi] }

// rows returns the samples of blocks [lo, hi).
func (p *pass) rows(lo, hi int) (int, int) {
	return lo * kernel.Lanes, min(hi*kernel.Lanes, p.n)
}

func (o *layerNorm) forward(p *pass) { p.spread((*layerNormForward)(o), p.blocks()) }

func (o *layerNorm) backward(p *pass, input bool) {
	p.spread((*layerNormWeights)(o), strips(o.features))
	if input {
		p.spread((*layerNormBack)(o), p.blocks())
	}
}

type layerNormForward layerNorm

func (f *layerNormForward) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o, n := (*layerNorm)(f), float64(f.features)
	scale, shift := tensor(p.params, p.plan.model, o.scale), tensor(p.params, p.plan.model, o.shift)
	lo, hi = p.rows(lo, hi)
	for s := lo * o.each; s < hi*o.each; s++ {
		r := o.row(p, s, 0, o.features)
		r.Mean = float32(float64(k.LayerSum(&r)) / n)
		r.Inverse = float32(1 / math.Sqrt(float64(k.LayerSquares(&r))/n+models.NormEpsilon))
		p.saved[o.index][2*s], p.saved[o.index][2*s+1] = r.Mean, r.Inverse
		k.LayerApply(o.of(p.act[o.out], s, 0, o.features), &r, scale, shift)
	}
}

type layerNormWeights layerNorm

// run adds up the gradients of scale and shift over the rows in order.
func (f *layerNormWeights) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o := (*layerNorm)(f)
	lo, hi = strip*lo, min(strip*hi, o.features)
	k.ColSum(tensor(p.grad, p.plan.model, o.shift)[lo:hi], 0, p.dy[lo:], o.features, p.n*o.each, 1)
	d := tensor(p.grad, p.plan.model, o.scale)[lo:hi]
	clear(d)
	for s := range p.n * o.each {
		r := o.row(p, s, lo, hi)
		k.LayerScale(d, &r, o.of(p.dy, s, lo, hi))
	}
}

type layerNormBack layerNorm

func (f *layerNormBack) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o, n := (*layerNorm)(f), float64(f.features)
	scale := tensor(p.params, p.plan.model, o.scale)
	lo, hi = p.rows(lo, hi)
	for s := lo * o.each; s < hi*o.each; s++ {
		r, dy := o.row(p, s, 0, o.features), o.of(p.dy, s, 0, o.features)
		sum, product := k.LayerBackSums(&r, dy, scale)
		k.LayerBack(o.of(p.dx, s, 0, o.features), &r, dy, scale, float32(float64(sum)/n), float32(float64(product)/n))
	}
}
