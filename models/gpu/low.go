package gpu

import (
	"brood/models"
	"brood/models/engine"
)

// few is the largest rank for which products with single columns use sums of sixteen.
const few = 4

// cut is the number of steps of k after which a product with accumulation is added to its result.
const cut = 1024

// The length of such a product is a multiple of lanes.
const lanes = 32

// low appends the logits under noise of rank r. A dense layer is x*(W + s*E)' + b + s*e = x*W' + b + s*(x*B')*A', with
// the bias's noise e as an extra row of A, multiplied by a column of ones. All other parameters are computed
// explicitly.
func (c *pairBatch) low() error {
	e, rank := c.e, c.t.Noise.Rank
	if err := c.rest(); err != nil {
		return err
	}
	for i := range e.plan.ops {
		o := &e.plan.ops[i]
		if !e.lowRank(o, c.t.Noise) {
			c.step(o, false)
			continue
		}
		if i > 0 {
			c.dense(o, c.entries, c.acts[o.in], c.theta, 0, c.acts[o.out], c.sizes, false)
		} else {
			base, err := c.base(o)
			if err != nil {
				return err
			}
			base.list = c.viewOf
			c.each("rows", o, base, c.acts[o.out])
		}
		if err := c.factored(o, i == 0, rank); err != nil {
			return err
		}
	}
	return nil
}

// lowRank reports whether a layer's products are split into low-rank factors.
func (e *Engine) lowRank(o *op, n engine.Noise) bool {
	return o.kind == models.Dense && o.rows == 1 && n.Low(&e.layout.Tensors[o.weight])
}

// rest computes the candidates' parameters if some tensor does not belong to a layer with low-rank products.
func (c *pairBatch) rest() error {
	e, held := c.e, map[int]bool{}
	for i := range e.plan.ops {
		if o := &e.plan.ops[i]; e.lowRank(o, c.t.Noise) {
			held[o.weight], held[o.bias] = true, true
		}
	}
	params := e.layout.Params
	for i := range e.layout.Tensors {
		if held[i] {
			continue
		}
		eps, err := e.scratchMemory("noise", 4*len(c.work)*params)
		if err != nil {
			return err
		}
		made, err := e.scratchMemory("candidates", 4*c.entries*params)
		if err != nil {
			return err
		}
		c.noise(0, eps, 0, params)
		if err := c.expand(held, eps); err != nil {
			return err
		}
		c.spread(params, false, made, c.theta.m, c.theta.at, none, 0, eps, 0, params)
		c.params, c.lo = place{m: made, step: uint64(params), list: none}, 0
		return nil
	}
	return nil
}

// expand computes the low-rank noise of tensors that are not in held, and replaces their full-rank noise by it.
func (c *pairBatch) expand(held map[int]bool, eps Memory) error {
	e, rank, units := c.e, c.t.Noise.Rank, len(c.work)
	for i := range e.layout.Tensors {
		t := &e.layout.Tensors[i]
		if held[i] || !c.t.Noise.Low(t) {
			continue
		}
		rows := t.Len / t.Cols
		a, err := e.scratchMemory("A of "+t.Name, 4*units*rank*rows)
		if err != nil {
			return err
		}
		x, err := e.scratchMemory("B of "+t.Name, 4*units*rank*t.Cols)
		if err != nil {
			return err
		}
		e.factors(c.b, i, rank, c.keys, units, false, a, rank*rows, x, rank*t.Cols)
		c.b.launch("outer", t.Len, units, a, uint64(rank*rows), x, uint64(rank*t.Cols), uint32(rank), uint32(rows),
			uint32(t.Cols),
			eps, uint64(t.Lo), uint64(e.layout.Params))
	}
	return nil
}

// factored appends y = fma(step, (x*B')*A', y) of each candidate, and the rectifier. In the first layer both signs of a
// pair share x*B'.
func (c *pairBatch) factored(o *op, first bool, drawn int) error {
	e, b, units, rank := c.e, c.b, len(c.work), drawn
	if o.bias >= 0 {
		rank++
	}
	name := e.layout.Tensors[o.weight].Name
	a, err := e.scratchMemory("A of "+name, 4*units*rank*o.nOut)
	if err != nil {
		return err
	}
	x, err := e.scratchMemory("B of "+name, 4*units*rank*o.nIn)
	if err != nil {
		return err
	}
	b.launch("zeros", units*rank*o.nIn, 1, x, uint64(0), uint64(units*rank*o.nIn))
	e.factors(b, o.weight, drawn, c.keys, units, false, a, rank*o.nOut, x, rank*o.nIn)
	ones := make([]float32, rank)
	if o.bias >= 0 {
		ones[drawn] = 1
		t := &e.layout.Tensors[o.bias]
		from, n := e.items(t.Lo, t.Lo+t.Len)
		b.launch("draw", n, units, wordsHere{}, c.keys, e.table, uint32(len(e.layout.Tensors)), uint64(from), uint64(n),
			uint32(0), a,
			uint64(drawn*o.nOut), uint64(rank*o.nOut), uint64(t.Lo), uint64(t.Lo+t.Len))
	}
	entries, in, sizes, pairs := c.entries, c.acts[o.in], c.sizes, c.pairOf
	if first {
		entries, sizes, pairs = units, c.pairSizes, none
		in.list = c.seen
	}
	scratch, err := e.scratchMemory("x*B of "+name, 4*entries*c.most*rank)
	if err != nil {
		return err
	}
	inner := place{m: scratch, step: uint64(c.most * rank), list: none, down: rank, across: 1}
	column := place{words: true, at: uint64(b.floats(ones...))}
	right := place{m: x, step: uint64(rank * o.nIn), list: pairs, down: 1, across: o.nIn}
	g := product{m: c.most, n: rank, k: o.nIn, sizes: sizes, sized: 1, a: in, b: right, c: inner, bias: &column}
	if !first && drawn <= few { // a product that is added to its result, and therefore cut
		g.k = min(o.nIn, cut)
	}
	b.gemm(entries, g)
	for k := g.k; k < o.nIn; k += cut {
		b.gemm(entries, product{
			m:       c.most,
			n:       rank,
			k:       min(cut, o.nIn-k),
			sizes:   sizes,
			sized:   1,
			add:     true,
			factors: none,
			a:       in.shift(k),
			b:       right.shift(k),
			c:       inner,
		})
	}
	if !first && drawn <= few && o.nIn%lanes == 0 {
		b.grid("row_dots", [3]int{(c.most + group - 1) / group, drawn, entries}, group, wordsHere{}, sizes, uint32(o.nIn),
			c.pairOf, in.m, in.step,
			x, uint64(rank*o.nIn), scratch, inner.step, uint32(rank))
	}
	if first {
		inner.list = c.pairOf
	}
	b.gemm(c.entries, product{
		m:       c.most,
		n:       o.nOut,
		k:       rank,
		sizes:   c.sizes,
		sized:   1,
		relu:    o.rectify,
		add:     true,
		factors: c.factors,
		a:       inner,
		b:       place{m: a, step: uint64(rank * o.nOut), list: c.pairOf, down: o.nOut, across: 1},
		c:       c.acts[o.out],
	})
	return nil
}
