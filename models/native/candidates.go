package native

import (
	"context"
	"math"

	"brood/models/engine"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// candidates is what a pass keeps while it evaluates perturbed parameters.
type candidates struct {
	eps        []float32    // the noise of a pair, times its scale
	theta      [2][]float32 // the pair
	base, turn []float32    // of the first layer: x*W' + b of theta for a whole batch, and of the noise for a piece of it
	task       uint64       // that base belongs to
	ids        []int32      // and the batch
	loss       [2]float64
}

// pair is one or two candidates that share noise, with opposite signs, and samples: entries [at, at+n) of the task.
type pair struct {
	key   noise.Key
	at, n int
}

// pairs groups entries that follow each other. A candidate alone is computed by the same steps as one of two, so that its
// bits do not depend on the cohort.
func pairs(t *engine.Candidates) (out []pair) {
	for i, id := range t.IDs {
		key, _ := signed(t.Key, t.Antithetic, id)
		if n := len(out); n > 0 && out[n-1].n == 1 && out[n-1].key == key && same(batch(t, i-1), batch(t, i)) {
			out[n-1].n = 2
			continue
		}
		out = append(out, pair{key, i, 1})
	}
	return out
}

func batch(t *engine.Candidates, i int) []int32 {
	if len(t.Batches) == 1 {
		return t.Batches[0]
	}
	return t.Batches[i]
}

func same(a, b []int32) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// candidates evaluates pairs in parallel. Where the model begins with a dense layer, its products with theta and with the
// noise are taken apart: x*(W + s*E)' = x*W' + s*(x*E)', of which the second serves both signs, and the perturbed
// weights of that layer, most of the model, are never made.
func (e *Engine) candidates(ctx context.Context, t engine.Candidates) error {
	if err := e.bounds.Candidates(&t); err != nil {
		return err
	}
	first, apart := e.plan.ops[0].(*dense)
	from := 0
	if apart {
		from = first.end(e)
	}
	work := pairs(&t)
	e.task++
	return e.each(ctx, len(work), func(p *pass, i int) error {
		c := &p.twin
		e.spread(p, &t, work[i], from)
		ids, size := batch(&t, work[i].at), piece
		if e.bounds.Norms {
			size = len(ids)
		}
		c.loss = [2]float64{}
		known := c.task == e.task && same(c.ids, ids)
		c.task = 0
		for lo := 0; lo < len(ids); lo += size {
			if err := p.load(e.set, ids[lo:min(len(ids), lo+size)], false); err != nil {
				return err
			}
			if apart {
				first.products(p, t.Theta.F, c, lo, len(ids), known)
			}
			for j := range work[i].n {
				p.mode, p.params, p.stats = running, c.theta[j], nil
				if apart {
					first.combine(p, c, lo, e.step(&t, t.IDs[work[i].at+j]))
				}
				loss, err := p.rest(apart)
				if err != nil {
					return err
				}
				c.loss[j] += loss
			}
		}
		c.task, c.ids = e.task, ids
		for j := range work[i].n {
			t.Fitness[work[i].at+j] = fitness(c.loss[j], len(ids))
		}
		return nil
	})
}

// step is the factor of the noise, which carries its own scale where there is one.
func (e *Engine) step(t *engine.Candidates, id engine.Member) float32 {
	_, sign := signed(t.Key, t.Antithetic, id)
	if t.Scale.Rows > 0 {
		return sign
	}
	return sign * t.Sigma
}

// spread writes the noise of a pair, and its candidates from parameter from on.
func (e *Engine) spread(p *pass, t *engine.Candidates, w pair, from int) {
	c, n := &p.twin, e.layout.Params
	if c.eps == nil {
		c.eps, c.theta[0], c.theta[1] = make([]float32, n), make([]float32, n), make([]float32, n)
	}
	normals(p.k, e.layout, c.eps, 0, w.key)
	if t.Scale.Rows > 0 {
		for i, s := range t.Scale.F[:n] {
			c.eps[i] *= s
		}
	}
	for j := range w.n {
		step := e.step(t, t.IDs[w.at+j])
		p.k.Lin(c.theta[j][from:], []float32{1, step}, [][]float32{t.Theta.F[from:n], c.eps[from:]})
	}
}

// end is where the parameters behind this layer begin.
func (o *dense) end(e *Engine) int {
	t := e.layout.Tensors[o.wide]
	if o.bias >= 0 {
		t = e.layout.Tensors[o.bias]
	}
	return t.Lo + t.Len
}

// products are those of the loaded samples, from lo on of a batch of so many, with the noise, and with theta unless they are
// known from the pair before.
func (o *dense) products(p *pass, theta []float32, c *candidates, lo, samples int, known bool) {
	c.base, c.turn = grown(c.base, samples*o.nOut), grown(c.turn, p.n*o.nOut)
	o.product(p, c.eps, c.turn)
	if !known {
		o.product(p, theta, c.base[lo*o.nOut:])
	}
}

func (o *dense) product(p *pass, params, out []float32) {
	var ep kernel.Epilogue
	if o.bias >= 0 {
		ep.Bias = tensor(params, p.plan.model, o.bias)
	}
	p.k.Gemm(kernel.NT, p.n, o.nOut, o.nIn, p.act[o.in], o.nIn, tensor(params, p.plan.model, o.wide), o.nIn, out, o.nOut, &ep)
}

// grown is s, or new memory where it is too short.
func grown(s []float32, n int) []float32 {
	if len(s) < n {
		return make([]float32, n)
	}
	return s
}

// combine is the layer's result for base + step*noise.
func (o *dense) combine(p *pass, c *candidates, lo int, step float32) {
	y := p.all(o.out)
	p.k.Lin(y, []float32{1, step}, [][]float32{c.base[lo*o.nOut:][:len(y)], c.turn[:len(y)]})
	if o.rectify {
		p.k.Relu(y, y)
	}
}

// rest is the summed loss from the present activations on: of the second op where the first was done apart.
func (p *pass) rest(apart bool) (float64, error) {
	ops := p.plan.ops
	if apart {
		ops = ops[1:]
	}
	for _, o := range ops {
		o.forward(p)
	}
	loss, _, err := p.tally(p.logits())
	return loss, err
}

// fitness is minus the mean loss, NaN when it is not finite.
func fitness(loss float64, samples int) float32 {
	f := float32(-loss / float64(samples))
	if math.IsInf(float64(f), 0) {
		return float32(math.NaN())
	}
	return f
}
