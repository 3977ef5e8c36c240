package native

import (
	"context"
	"math"
	"slices"

	"brood/models/data"
	"brood/models/engine"
	"brood/models/noise"
)

// candidates is the scratch memory of a pass that evaluates perturbed parameters.
type candidates struct {
	eps   []float32    // scaled noise of a pair
	theta [2][]float32 // parameters of the two candidates
	first firstDense
	loss  [][2]float64

	low      []lowLayer // layers with low-rank noise
	lowNoise engine.Noise
	group    int    // number of pairs that fit low
	turned   uint64 // task whose theta low contains; 0: none
	rest     []int  // tensors outside low
}

// pair is one or two candidates, entries [at, at+n) of the task, that share samples and noise, with opposite signs.
type pair struct {
	key   noise.Key
	at, n int
}

// pairs groups consecutive entries. A single candidate is computed by the same steps as one of a pair, so that its bits
// do not depend on the other candidates.
func pairs(t *engine.Candidates) (out []pair) {
	for i, id := range t.IDs {
		key, _ := engine.Signed(t.Key, t.Antithetic, id)
		if n := len(out); n > 0 && out[n-1].n == 1 && out[n-1].key == key &&
			sameBatch(t, i-1, i) && slices.Equal(t.Amounts(i-1), t.Amounts(i)) {
			out[n-1].n = 2
			continue
		}
		out = append(out, pair{key, i, 1})
	}
	return out
}

// batch returns the batch of entry i and the address at which it was drawn.
func batch(t *engine.Candidates, i int) ([]int32, noise.Key) {
	if len(t.Batches) == 1 {
		i = 0
	}
	return t.Batches[i], engine.DrawnAt(t.Drawn, i)
}

// sameBatch reports whether two entries use the same samples.
func sameBatch(t *engine.Candidates, i, j int) bool {
	a, from := batch(t, i)
	b, at := batch(t, j)
	return same(a, b) && from == at
}

func same(a, b []int32) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// candidates evaluates pairs in parallel. If the first layer of the model is dense, its products with theta and with
// the noise are computed separately, so that the perturbed weights of that layer, most of the model, are never
// computed.
func (e *Engine) candidates(ctx context.Context, t engine.Candidates) error {
	if e.whole != nil {
		return e.wholeCandidates(ctx, t)
	}
	if err := e.bounds.Candidates(&t); err != nil {
		return err
	}
	e.task++
	work := pairs(&t)
	if t.Noise.Rank > 0 {
		return e.lowCandidates(ctx, &t, work)
	}
	first, shared := e.plan.ops[0].(*dense) // only for the first op: elsewhere separate products would change the bits
	from, outputs := 0, 0
	if shared {
		from, outputs = first.end(e), first.nOut
	}
	inBytes := shared && e.inBytes(&t, first)
	return e.each(ctx, len(work), func(p *pass, i int) error {
		c, w := &p.variant, work[i]
		p.bf16, p.order = e.bf16, e.order
		defer func() { p.bf16 = false }()
		ids, at := batch(&t, w.at)
		known := c.first.starts(e.task, ids, at, outputs)
		if inBytes {
			e.spread(p, &t, w, from, from)
			c.first.drawBytes(p, first, w.key, e.set, ids, at, known)
		} else {
			e.spread(p, &t, w, 0, from)
		}
		loss := c.losses(1)
		err := e.inPieces(p, ids, at, inBytes && known, func(lo int) error {
			if shared && !known {
				first.product(p, flat(t.Theta), c.first.base[lo*outputs:])
			}
			switch {
			case inBytes:
				c.first.byteProduct(p, first, e.set, lo)
			case shared:
				c.first.turn = grown(c.first.turn, p.n*outputs)
				first.product(p, c.eps, c.first.turn)
			}
			for j := range w.n {
				p.mode, p.params, p.stats = running, c.theta[j], nil
				ops := p.plan.ops[p.plan.lead:]
				if shared {
					first.combine(p, &c.first, lo, e.step(&t, t.IDs[w.at+j]))
					ops = ops[1:]
				}
				for _, o := range ops {
					o.forward(p)
				}
				l, err := p.lossOf(p.logits())
				if err != nil {
					return err
				}
				loss[0][j] += l
			}
			return nil
		})
		if err != nil {
			return err
		}
		c.first.ended(e.task, ids, at)
		for j := range w.n {
			t.Fitness[w.at+j] = fitness(loss[0][j], len(ids))
		}
		t.Report(w.n)
		return nil
	})
}

// inPieces loads a batch, or only its labels, in parts, runs the ops before the first one with parameters on each, and
// calls f with the index of the part's first sample.
func (e *Engine) inPieces(p *pass, ids []int32, at noise.Key, labels bool, f func(lo int) error) error {
	size := e.candidateSamples(len(ids))
	load := p.load
	if labels {
		load = func(set *data.Set, ids []int32, _ noise.Key, gradients bool) error {
			return p.label(set, ids, gradients)
		}
	}
	for lo := 0; lo < len(ids); lo += size {
		if err := load(e.set, ids[lo:min(len(ids), lo+size)], at, false); err != nil {
			return err
		}
		at.Round += uint64(size)
		p.mode = running
		for _, o := range e.plan.ops[:e.plan.lead] {
			o.forward(p)
		}
		if err := f(lo); err != nil {
			return err
		}
	}
	return nil
}

// losses returns zeroed memory for the losses of that many pairs.
func (c *candidates) losses(n int) [][2]float64 {
	if len(c.loss) < n {
		c.loss = make([][2]float64, n)
	}
	clear(c.loss[:n])
	return c.loss[:n]
}

// step returns the signed factor of the noise of candidate id: its sign, times Sigma unless Scale already scales the
// noise.
func (e *Engine) step(t *engine.Candidates, id engine.Member) float32 {
	_, sign := engine.Signed(t.Key, t.Antithetic, id)
	if t.Scale.Rows > 0 {
		return sign
	}
	return sign * t.Sigma
}

// reserve allocates memory for the noise and the parameters of a pair.
func (c *candidates) reserve(n int) {
	if c.eps == nil {
		c.eps, c.theta[0], c.theta[1] = make([]float32, n), make([]float32, n), make([]float32, n)
	}
}

// spread writes the noise of a pair from parameter lo on, and its candidates' parameters from parameter from on.
func (e *Engine) spread(p *pass, t *engine.Candidates, w pair, lo, from int) {
	c, n := &p.variant, e.layout.Params
	c.reserve(n)
	p.thread.draw(t.Noise, e.layout, c.eps[lo:], lo, w.key)
	if t.Scale.Rows > 0 {
		for i, s := range flat(t.Scale)[lo:n] {
			c.eps[lo+i] *= s
		}
		p.thread.addAxes(c.eps[lo:n], t, w.at, lo)
	}
	e.perturb(p, t, w, from, n)
}

// perturb writes parameters [lo, hi) of the candidates of a pair from their noise.
func (e *Engine) perturb(p *pass, t *engine.Candidates, w pair, lo, hi int) {
	c := &p.variant
	for j := range w.n {
		step := e.step(t, t.IDs[w.at+j])
		p.k.Lin(c.theta[j][lo:hi], []float32{1, step}, [][]float32{flat(t.Theta)[lo:hi], c.eps[lo:hi]})
	}
}

// grown returns s, or new memory if s is too short.
func grown[T any](s []T, n int) []T {
	if len(s) < n {
		return make([]T, n)
	}
	return s
}

// fitness returns minus the mean loss, or NaN if it is not finite.
func fitness(loss float64, samples int) float32 {
	f := float32(-loss / float64(samples))
	if math.IsInf(float64(f), 0) {
		return float32(math.NaN())
	}
	return f
}
