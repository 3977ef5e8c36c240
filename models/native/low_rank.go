package native

import (
	"context"

	"brood/models/engine"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// lowLayer is a dense layer under noise of rank r, for a group of pairs: x*(W + s*E)' + b + s*e = x*W' + b +
// s*(x*B')*A', with the bias's noise e as an extra row of A, multiplied by a column of ones. The perturbed weights are
// never computed.
type lowLayer struct {
	o     *dense
	dots  bool      // x*B is computed column by column, by RowDots
	drawn int       // rank of the noise
	rank  int       // rows of A and B for a pair: drawn, plus one for the bias
	a, b  []float32 // rank rows of nOut, and of nIn, for each pair
	ones  []float32 // added to x*B: 1 in the column of the bias's noise
	theta []float32 // W' for all candidates of a task
	inner []float32 // x*B: rank columns for each pair; of the whole group for the first layer, else of one pair
}

// lowLayers returns the dense layers with low-rank noise; the other parameters are perturbed individually.
func (e *Engine) lowLayers(n engine.Noise, group int) (out []lowLayer) {
	for at, op := range e.plan.ops {
		o, ok := op.(*dense)
		if !ok || !n.Low(&e.layout.Tensors[o.wide]) {
			continue
		}
		w := lowLayer{o: o, dots: at > 0 && n.Rank <= few, drawn: n.Rank, rank: n.Rank}
		if o.bias >= 0 {
			w.rank++
		}
		w.a, w.b, w.ones = make([]float32, group*w.rank*o.nOut), make([]float32, group*w.rank*o.nIn),
			make([]float32, group*w.rank)
		if o.bias >= 0 {
			for i := range group {
				w.ones[(i+1)*w.rank-1] = 1
			}
		}
		out = append(out, w)
	}
	return out
}

// draw draws the factors of pair i of the group.
func (w *lowLayer) draw(e *Engine, k *thread, key noise.Key, i int, n engine.Noise) {
	o, s := w.o, key.Schedule()
	a, b := w.a[i*w.rank*o.nOut:], w.b[i*w.rank*o.nIn:]
	t := &e.layout.Tensors[o.wide]
	key.Stream = uint32(o.wide)
	k.factors.draw(k.Kernels, kernel.Field{Key: key, Schedule: s, Cols: t.Cols}, t.Len, n.Rank)
	copy(a, k.factors.a[:n.Rank*o.nOut])
	copy(b, k.factors.b[:n.Rank*o.nIn])
	if o.bias >= 0 {
		key.Stream = uint32(o.bias)
		k.Normals(a[n.Rank*o.nOut:w.rank*o.nOut], kernel.Field{Key: key, Schedule: s, Cols: e.layout.Tensors[o.bias].Cols}, 0)
	}
}

// together is the number of columns of x*B that a group of pairs shares: the columns of a tile.
const together = 32

// lowCandidates evaluates groups of pairs; the first layer multiplies the samples with all B of a group at once.
func (e *Engine) lowCandidates(ctx context.Context, t *engine.Candidates, work []pair) error {
	group, shared := e.grouping(t.Noise, len(work))
	var groups [][]pair
	for len(work) > 0 {
		n := 1
		for n < min(group, len(work)) && sameBatch(t, work[n].at, work[0].at) {
			n++
		}
		groups, work = append(groups, work[:n]), work[n:]
	}
	return e.each(ctx, len(groups), func(p *pass, i int) error { return e.lowGroup(p, t, groups[i], group, shared) })
}

// grouping returns the number of pairs in a group, and whether they share the products of the first layer.
func (e *Engine) grouping(n engine.Noise, pairs int) (group int, shared bool) {
	if o, ok := e.plan.first(); ok && n.Low(&e.layout.Tensors[o.wide]) {
		return max(1, min(together/(n.Rank+1), (pairs+len(e.passes)-1)/len(e.passes))), true
	}
	return 1, false
}

// lowGroup evaluates pairs that use the same batch.
func (e *Engine) lowGroup(p *pass, t *engine.Candidates, pairs []pair, group int, shared bool) error {
	c := &p.variant
	ids, at := batch(t, pairs[0].at)
	if c.lowNoise != t.Noise || c.group < group {
		c.low, c.lowNoise, c.group, c.turned = e.lowLayers(t.Noise, group), t.Noise, group, 0
		if c.rest = e.rest(t.Noise); len(c.rest) > 0 {
			c.reserve(e.layout.Params)
		}
	}
	outputs := 0
	if shared {
		outputs = c.low[0].o.nOut
	}
	known := c.first.starts(e.task, ids, at, outputs)
	if c.turned != e.task {
		for j := range c.low {
			c.low[j].turn(p, flat(t.Theta))
		}
		c.turned = e.task
	}
	for i, w := range pairs {
		for j := range c.low {
			c.low[j].draw(e, p.thread, w.key, i, t.Noise)
		}
	}
	loss := c.losses(len(pairs))
	err := e.inPieces(p, ids, at, false, func(lo int) error {
		base := c.first.base[lo*outputs:]
		if shared {
			if !known {
				c.low[0].product(p, flat(t.Theta), base)
			}
			c.low[0].multiply(p, 0, len(pairs))
		}
		for i, w := range pairs {
			e.spreadRest(p, t, w)
			for j := range w.n {
				p.mode, p.params, p.stats = running, c.theta[j], nil
				c.lowForward(p, flat(t.Theta), base, i, len(pairs), e.step(t, t.IDs[w.at+j]), shared)
				l, err := p.lossOf(p.logits())
				if err != nil {
					return err
				}
				loss[i][j] += l
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.first.ended(e.task, ids, at)
	for i, w := range pairs {
		for j := range w.n {
			t.Fitness[w.at+j] = fitness(loss[i][j], len(ids))
		}
		t.Report(w.n)
	}
	return nil
}

// spreadRest computes a pair's candidates for the tensors in rest.
func (e *Engine) spreadRest(p *pass, t *engine.Candidates, w pair) {
	for _, i := range p.variant.rest {
		x := &e.layout.Tensors[i]
		p.thread.draw(t.Noise, e.layout, part(p.variant.eps, x), x.Lo, w.key)
		e.perturb(p, t, w, x.Lo, x.Lo+x.Len)
	}
}

// rest returns the tensors whose perturbed parameters are computed, since they belong to no layer with low-rank noise.
func (e *Engine) rest(n engine.Noise) (out []int) {
	held := map[int]bool{}
	for _, op := range e.plan.ops {
		if o, ok := op.(*dense); ok && n.Low(&e.layout.Tensors[o.wide]) {
			held[o.wide], held[o.bias] = true, true
		}
	}
	for i := range e.layout.Tensors {
		if !held[i] {
			out = append(out, i)
		}
	}
	return out
}

// turn transposes the layer's part of theta.
func (w *lowLayer) turn(p *pass, theta []float32) {
	o := w.o
	w.theta = grown(w.theta, o.nIn*o.nOut)
	p.k.Transpose(w.theta, o.nOut, tensor(theta, p.plan.model, o.wide), o.nIn, o.nOut, o.nIn)
}

// product writes x*W' + b.
func (w *lowLayer) product(p *pass, theta, y []float32) {
	o := w.o
	var ep kernel.Epilogue
	if o.bias >= 0 {
		ep.Bias = tensor(theta, p.plan.model, o.bias)
	}
	p.k.Gemm(kernel.NN, p.n, o.nOut, o.nIn, p.act[o.in], o.nIn, w.theta, o.nOut, y, o.nOut, &ep)
}

// few is the largest rank for which products with single columns are faster.
const few = 4

// multiply writes x*B of n pairs, from index first on, and the ones.
func (w *lowLayer) multiply(p *pass, first, n int) {
	o, cols := w.o, n*w.rank
	w.inner = grown(w.inner, p.n*cols)
	x, b := p.act[o.in], w.b[first*w.rank*o.nIn:]
	if !w.dots {
		p.k.Gemm(kernel.NT, p.n, cols, o.nIn, x, o.nIn, b, o.nIn, w.inner, cols, &kernel.Epilogue{Bias: w.ones})
		return
	}
	for i := range p.n {
		copy(w.inner[i*cols:(i+1)*cols], w.ones)
	}
	if n > 1 && o.nIn%kernel.Lanes != 0 { // RowDots would compute each column this way
		p.k.Gemm(kernel.NT, p.n, cols, o.nIn, x, o.nIn, b, o.nIn, w.inner, cols, &kernel.Epilogue{Add: true, Alpha: 1})
		return
	}
	for i := range cols {
		if i%w.rank < w.drawn {
			p.k.RowDots(w.inner[i:], cols, p.n, o.nIn, x, o.nIn, b[i*o.nIn:])
		}
	}
}

// lowForward runs a pass with pair i of n. With shared, both products of the first layer are already computed.
func (c *candidates) lowForward(p *pass, theta, base []float32, i, n int, step float32, shared bool) {
	next := 0
	for at, op := range p.plan.ops[p.plan.lead:] {
		o, ok := op.(*dense)
		if !ok || next == len(c.low) || c.low[next].o != o {
			op.forward(p)
			continue
		}
		w, y := &c.low[next], p.all(o.out)
		next++
		inner, cols := w.inner, w.rank
		if at == 0 && shared {
			copy(y, base)
			inner, cols = inner[i*w.rank:], n*w.rank
		} else {
			w.product(p, theta, y)
			w.multiply(p, i, 1)
			inner = w.inner
		}
		p.k.Gemm(kernel.NN, p.n, o.nOut, w.rank, inner, cols, w.a[i*w.rank*o.nOut:], o.nOut, y, o.nOut,
			&kernel.Epilogue{Add: true, Alpha: step, ReLU: o.rectify})
	}
}
