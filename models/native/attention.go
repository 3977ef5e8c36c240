package native

import (
	"math"

	"brood/models"
	"brood/models/native/kernel"
)

// attention computes softmax(q k')v for each sample and head, with q, k and v from the first projection, and applies a
// second projection to the concatenated results of the heads. q is divided by sqrt(d), d being the channels per head,
// before its products. A position attends to itself and to earlier ones.
type attention struct {
	wire
	index                           int
	steps, queries, channels, heads int // queries: the number of last positions that the result contains
	scale                           float32
	before, behind                  projection
}

func (p *plan) attention(l *models.Layer, in int) int {
	steps := p.model.Features
	c := l.In[0] / steps
	w := wire{in: in, with: -1, out: p.buffer(shaped(l.Out, false)), parameters: true}
	return p.to(&attention{
		wire:     w,
		index:    len(p.ops),
		steps:    steps,
		queries:  l.Queries(p.model),
		channels: c,
		heads:    l.Heads,
		scale:    float32(1 / math.Sqrt(float64(c/l.Heads))),
		before:   projection{c, 3 * c, l.Weight, l.Bias},
		behind:   projection{c, c, l.Project[0], l.Project[1]},
	})
}

// saves counts q, k and v, the heads' results, their weights, and scratch memory for the gradients of one head's
// weights per sample.
func (o *attention) saves(samples int) int {
	return samples * (o.steps*3*o.channels + o.queries*o.channels + (o.heads+1)*o.queries*o.steps)
}

// kept returns the saved data of the current samples: q, k and v as [sample][position][3*channels], the heads' results
// as [sample][query][channels], weights as [sample][head][query][position], scratch memory as
// [sample][query][position].
func (o *attention) kept(p *pass) (qkv, given, weights, temp []float32) {
	rest := p.saved[o.index]
	take := func(floats int) (x []float32) {
		x, rest = rest[:p.n*floats], rest[p.n*floats:]
		return x
	}
	return take(o.steps * 3 * o.channels), take(o.queries * o.channels), take(o.heads * o.queries * o.steps),
		take(o.queries * o.steps)
}

func (o *attention) gemmScratch(k *kernel.Kernels, samples int, gradients bool) kernel.Scratch {
	n, a, c := o.steps, o.queries, o.channels
	d := c / o.heads
	r := o.before.gemmScratch(k, samples*n, gradients).Max(o.behind.gemmScratch(k, samples*a, gradients))
	r = r.Max(k.GemmScratch(kernel.NT, a, n, d, 3*c, 3*c)).Max(k.GemmScratch(kernel.NN, a, d, n, n, 3*c))
	if gradients {
		r = r.Max(k.GemmScratch(kernel.NT, a, n, d, c, 3*c)).
			Max(k.GemmScratch(kernel.TN, n, d, a, n, c)).
			Max(k.GemmScratch(kernel.TN, n, d, a, n, 3*c))
	}
	return r
}

func (o *attention) forward(p *pass) {
	p.spread((*attentionBefore)(o), strips(o.before.nOut))
	p.spread((*attentionHeads)(o), p.blocks())
	p.spread((*attentionBehind)(o), strips(o.behind.nOut))
}

func (o *attention) backward(p *pass, input bool) {
	p.spread((*attentionBehindWeights)(o), strips(o.behind.nOut))
	p.spread((*attentionBehindData)(o), strips(o.behind.nIn))
	p.spread((*attentionBack)(o), p.blocks())
	p.spread((*attentionBeforeWeights)(o), strips(o.before.nOut))
	if input {
		p.spread((*attentionBeforeData)(o), strips(o.before.nIn))
	}
}

type attentionBefore attention

func (f *attentionBefore) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o := (*attention)(f)
	qkv, _, _, _ := o.kept(p)
	o.before.forward(p, k, p.n*o.steps, qkv, p.act[o.in], lo, hi)
}

type attentionBehind attention

func (f *attentionBehind) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o := (*attention)(f)
	_, given, _, _ := o.kept(p)
	o.behind.forward(p, k, p.n*o.queries, p.act[o.out], given, lo, hi)
}

type attentionBehindWeights attention

func (f *attentionBehindWeights) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o := (*attention)(f)
	_, given, _, _ := o.kept(p)
	o.behind.weights(p, k, p.n*o.queries, p.dy, given, lo, hi)
}

type attentionBehindData attention

// run overwrites the heads' results with their gradient.
func (f *attentionBehindData) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o := (*attention)(f)
	_, given, _, _ := o.kept(p)
	o.behind.data(p, k, p.n*o.queries, given, p.dy, lo, hi)
}

type attentionBeforeWeights attention

func (f *attentionBeforeWeights) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o := (*attention)(f)
	qkv, _, _, _ := o.kept(p)
	o.before.weights(p, k, p.n*o.steps, qkv, p.act[o.in], lo, hi)
}

type attentionBeforeData attention

func (f *attentionBeforeData) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o := (*attention)(f)
	qkv, _, _, _ := o.kept(p)
	o.before.data(p, k, p.n*o.steps, p.dx, qkv, lo, hi)
}

// head is the data of head h of sample s: q of the query positions and k and v of all, with stride 3*channels, its
// result, with stride channels, and its weights.
type head struct{ q, k, v, given, weights []float32 }

func (o *attention) head(s, h int, qkv, given, weights []float32) head {
	c, d := o.channels, o.channels/o.heads
	at := s*o.steps*3*c + h*d
	return head{qkv[at+(o.steps-o.queries)*3*c:], qkv[at+c:], qkv[at+2*c:], given[s*o.queries*c+h*d:],
		weights[(s*o.heads+h)*o.queries*o.steps:][:o.queries*o.steps]}
}

// query returns the vector of query i of sample s, for all heads.
func (o *attention) query(qkv []float32, s, i int) []float32 {
	return qkv[(s*o.steps+o.steps-o.queries+i)*3*o.channels:][:o.channels]
}

type attentionHeads attention

func (f *attentionHeads) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o := (*attention)(f)
	qkv, given, weights, _ := o.kept(p)
	c, d := o.channels, o.channels/o.heads
	lo, hi = p.rows(lo, hi)
	for s := lo; s < hi; s++ {
		for i := range o.queries {
			k.Scale(o.query(qkv, s, i), o.scale)
		}
		for h := range o.heads {
			x := o.head(s, h, qkv, given, weights)
			k.Gemm(kernel.NT, o.queries, o.steps, d, x.q, 3*c, x.k, 3*c, x.weights, o.steps, nil)
			k.CausalSoftmax(x.weights, o.queries, o.steps)
			k.Gemm(kernel.NN, o.queries, d, o.steps, x.weights, o.steps, x.v, 3*c, x.given, c, nil)
		}
	}
}

type attentionBack attention

// run overwrites q, k and v with their gradients. With g the gradient of a head's result, w its weights and e the
// gradient of its scores,
//
//	v: w' g,  e = softmax's gradient of g v',  q: e k * scale,  k: e' (q * scale)
//
// in an order in which nothing that is still needed is overwritten: the gradient of q is built in the memory of g.
func (f *attentionBack) run(p *pass, k *kernel.Kernels, lo, hi int) {
	o := (*attention)(f)
	qkv, given, weights, temp := o.kept(p)
	n, a, c, d := o.steps, o.queries, o.channels, o.channels/o.heads
	lo, hi = p.rows(lo, hi)
	for s := lo; s < hi; s++ {
		e := temp[s*a*n : (s+1)*a*n]
		for h := range o.heads {
			x := o.head(s, h, qkv, given, weights)
			k.Gemm(kernel.NT, a, n, d, x.given, c, x.v, 3*c, e, n, nil)
			k.Gemm(kernel.TN, n, d, a, x.weights, n, x.given, c, x.v, 3*c, nil)
			k.CausalSoftmaxBack(e, x.weights, a, n)
			k.Gemm(kernel.NN, a, d, n, e, n, x.k, 3*c, x.given, c, nil)
			k.Gemm(kernel.TN, n, d, a, e, n, x.q, 3*c, x.k, 3*c, nil)
		}
		for t := range n - a {
			clear(qkv[(s*n+t)*3*c:][:c])
		}
		for i := range a {
			q := o.query(qkv, s, i)
			copy(q, given[(s*a+i)*c:])
			k.Scale(q, o.scale)
		}
	}
}
