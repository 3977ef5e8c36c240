package gpu

import (
	"math"
	"slices"

	"brood/models"
	"brood/models/engine"
	"brood/models/noise"
)

// pair is one candidate, or two candidates that share noise with opposite signs, at entries at, at+1 of the task; both
// see the same view. A single candidate takes the same steps as one of two, so its bits do not depend on the
// population.
type pair struct {
	key   noise.Key
	view  int
	at, n int
}

// pairs groups consecutive entries into pairs, and lists the views that they see.
func pairs(t *engine.Candidates) (out []pair, views []view) {
	known := map[*int32]map[noise.Key]int{}
	for i, id := range t.IDs {
		j := i
		if len(t.Batches) == 1 {
			j = 0
		}
		v := view{t.Batches[j], engine.DrawnAt(t.Drawn, j)}
		place := known[&v.ids[0]]
		if place == nil {
			place = map[noise.Key]int{}
			known[&v.ids[0]] = place
		}
		seen, ok := place[v.at]
		if !ok || len(views[seen].ids) != len(v.ids) {
			seen = len(views)
			place[v.at] = seen
			views = append(views, v)
		}
		key, _ := engine.Signed(t.Key, t.Antithetic, id)
		if n := len(out); n > 0 && out[n-1].n == 1 && out[n-1].key == key && out[n-1].view == seen &&
			slices.Equal(t.Amounts(i-1), t.Amounts(i)) {
			out[n-1].n = 2
			continue
		}
		out = append(out, pair{key, seen, i, 1})
	}
	return out, views
}

// candidates evaluates pairs, as many at a time as fit into memory. A first dense layer is split into x*(W + s*E)' =
// x*W' + s*(x*E)': all candidates with the same view share the first product, both signs of a pair share the second.
func (e *Engine) candidates(t engine.Candidates) error {
	if err := e.bounds.Candidates(&t); err != nil {
		return err
	}
	if err := e.mats("candidates", t.Theta, t.Scale, t.Axes); err != nil {
		return err
	}
	n := len(t.IDs)
	if n == 0 {
		return nil
	}
	work, views := pairs(&t)
	counts, fit := make([]int, n), t.Fitness
	for _, w := range work {
		for j := range w.n {
			counts[w.at+j] = len(views[w.view].ids)
		}
	}
	head := new(batch)
	at, err := e.sums(head, n, func(i int, loss float64, _ int64) { fit[i] = fitness(loss, counts[i]) })
	if err != nil {
		return err
	}
	if err := e.issue(head); err != nil {
		return err
	}
	most := 0
	for _, v := range views {
		most = max(most, len(v.ids))
	}
	per := 3*e.layout.Params + 3*most*e.plan.total()
	return waves(len(work), per, func(lo, hi int) error { return e.evaluatePairs(&t, work[lo:hi], views, most, at) })
}

// pairBatch is a number of pairs that are evaluated together, with the lists that the kernels need.
type pairBatch struct {
	*pass
	t     *engine.Candidates
	work  []pair
	views []view
	theta place
	from  loaded
	keys  uint32 // keys of the pairs' noise
	// For each candidate: its pair, its view, its place in the task, its noise factor.
	pairOf, viewOf, target, factors uint32
	// For each pair its view; the number of samples of each view, and of each pair.
	seen, viewSizes, pairSizes uint32
}

// evaluatePairs evaluates some of the pairs.
func (e *Engine) evaluatePairs(t *engine.Candidates, work []pair, all []view, most int, at uint64) error {
	c := &pairBatch{t: t, work: work}
	number := map[int]uint32{}
	var pairOf, viewOf, target, seen, viewSizes, pairSizes []uint32
	var steps []float32
	var counts []int
	for i, w := range work {
		size := len(all[w.view].ids)
		v, ok := number[w.view]
		if !ok {
			v = uint32(len(c.views))
			number[w.view] = v
			c.views, viewSizes = append(c.views, all[w.view]), append(viewSizes, uint32(size))
		}
		seen, pairSizes = append(seen, v), append(pairSizes, uint32(size))
		for j := range w.n {
			_, sign := engine.Signed(t.Key, t.Antithetic, t.IDs[w.at+j])
			if t.Scale.Rows == 0 {
				sign *= t.Sigma
			}
			pairOf, viewOf, target = append(pairOf, uint32(i)), append(viewOf, v), append(target, uint32(w.at+j))
			steps, counts = append(steps, sign), append(counts, size)
		}
	}
	b := new(batch)
	var err error
	if c.pass, err = e.begin(b, len(steps), len(c.views), most, counts); err != nil {
		return err
	}
	if c.from, err = e.gather(b, c.views, most, c.acts[0].m); err != nil {
		return err
	}
	c.pairOf, c.viewOf, c.target, c.factors = b.list(pairOf...), b.list(viewOf...), b.list(target...), b.floats(steps...)
	c.seen, c.viewSizes, c.pairSizes = b.list(seen...), b.list(viewSizes...), b.list(pairSizes...)
	c.keys = b.list()
	for _, w := range work {
		b.key(w.key, 0)
	}
	c.acts[0].list = c.viewOf
	m, from := behind(t.Theta)
	c.theta = place{m: m, at: from, list: none}
	if t.Noise.Rank > 0 {
		err = c.low()
	} else {
		err = c.full()
	}
	if err != nil {
		return err
	}
	sum := piece
	if e.bounds.Norms { // a batch is processed in one piece
		sum = most
	}
	if err := c.loss(c.from.ids, c.viewOf, 0, sum, at, noSums, c.target, len(t.IDs)); err != nil {
		return err
	}
	return e.issue(b)
}

// full appends the logits under full-rank noise: each pair's noise, its candidates, and the model.
func (c *pairBatch) full() error {
	e, b, t, units, params := c.e, c.b, c.t, len(c.work), c.e.layout.Params
	eps, err := e.scratchMemory("noise", 4*units*params)
	if err != nil {
		return err
	}
	c.noise(kindOf(t.Noise), eps, 0, params)
	if t.Scale.Rows > 0 {
		m, from := behind(t.Scale)
		b.launch("product", params, units, eps, uint64(0), uint64(params), eps, uint64(0), uint64(params), m, from, uint64(0),
			uint64(params))
		c.addAlongAxes(eps)
	}
	first, lo := 0, 0
	if o := &e.plan.ops[0]; o.kind == models.Dense {
		first, lo = 1, e.end(o)
		if err := c.factorFirst(o, place{m: eps, step: uint64(params), list: none}); err != nil {
			return err
		}
	}
	if rest := params - lo; rest > 0 {
		made, err := e.scratchMemory("candidates", 4*c.entries*rest)
		if err != nil {
			return err
		}
		c.spread(rest, false, made, c.theta.m, c.theta.at+uint64(lo), none, 0, eps, uint64(lo), params)
		c.params, c.lo = place{m: made, step: uint64(rest), list: none}, lo
	}
	c.forward(first, false)
	return nil
}

// addAlongAxes adds the component along the axes to the scaled noise of each pair.
func (c *pairBatch) addAlongAxes(eps Memory) {
	params := c.e.layout.Params
	for r := range c.t.Axes.Rows {
		var amounts []float32
		for _, w := range c.work {
			amounts = append(amounts, c.t.Amounts(w.at)[r])
		}
		m, at := behind(c.t.Axes)
		c.b.launch("spread", params, len(c.work), wordsHere{}, c.b.floats(amounts...), uint64(params), uint32(0), eps,
			uint64(params),
			eps, uint64(0), uint32(none), uint64(params), m, at+uint64(r*params), uint32(none), uint64(0))
	}
}

// noise appends the pairs' noise of parameters [lo, hi), a row for each pair.
func (c *pairBatch) noise(kind uint32, to Memory, lo, hi int) {
	from, n := c.e.items(lo, hi)
	c.b.launch("draw", n, len(c.work), wordsHere{}, c.keys, c.e.table, uint32(len(c.e.layout.Tensors)), uint64(from),
		uint64(n), kind, to,
		uint64(0), uint64(hi-lo), uint64(lo), uint64(hi))
}

// spread appends n columns for each candidate: a row of a, selected by a list, plus the candidate's factor times its
// pair's row of x.
func (c *pairBatch) spread(n int, rectify bool, to, a Memory, at uint64, list uint32, step int, x Memory, atx uint64,
	stepX int) {
	relu := uint32(0)
	if rectify {
		relu = 1
	}
	c.b.launch("spread", n, c.entries, wordsHere{}, c.factors, uint64(n), relu, to, uint64(n), a, at, list, uint64(step),
		x, atx, c.pairOf, uint64(stepX))
}

// end returns the column of the first parameter after a first layer.
func (e *Engine) end(o *op) int {
	t := e.layout.Tensors[o.weight]
	if o.bias >= 0 {
		t = e.layout.Tensors[o.bias]
	}
	return t.Lo + t.Len
}

// base appends x*W' + b of each view for a first dense layer.
func (c *pairBatch) base(o *op) (place, error) {
	wide := c.most * o.nOut
	m, err := c.e.scratchMemory("base", 4*len(c.views)*wide)
	y := place{m: m, step: uint64(wide), list: none, down: o.nOut, across: 1}
	x := c.acts[0]
	x.list = none
	c.dense(o, len(c.views), x, c.theta, 0, y, c.viewSizes, false)
	return y, err
}

// factorFirst appends a first dense layer: the base of each view, turn = x*E' + e of each pair, and base + step*turn of
// each candidate.
func (c *pairBatch) factorFirst(o *op, eps place) error {
	base, err := c.base(o)
	if err != nil {
		return err
	}
	wide := c.most * o.nOut
	turn, err := c.e.scratchMemory("turn", 4*len(c.work)*wide)
	if err != nil {
		return err
	}
	if c.inBytes(o) {
		err = c.bytes(o, eps, turn)
	} else {
		x := c.acts[0]
		x.list = c.seen
		c.dense(o, len(c.work), x, eps, 0, place{
			m:      turn,
			step:   uint64(wide),
			list:   none,
			down:   o.nOut,
			across: 1,
		}, c.pairSizes, false)
	}
	c.spread(wide, o.rectify, c.acts[o.out].m, base.m, 0, c.viewOf, wide, turn, 0, wide)
	return err
}

// inBytes reports whether x*E' can be computed as a product of bytes: the noise consists of integers, and the samples
// are bytes, all mapped to x by the same linear function.
func (c *pairBatch) inBytes(o *op) bool {
	return c.t.Noise.Integer && c.t.Scale.Rows == 0 && o.in == 0 && len(c.e.set.Normal()) == 1 && o.nIn < 1<<16 &&
		c.e.model.Loss == models.CrossEntropy
}

// bytes appends turn for integer noise V: x = (pixel/255 - mean)/deviation, so that x*E' = scale/(255*deviation) *
// pixels*V' - scale*mean/deviation * 1*V' for E = scale*V.
func (c *pairBatch) bytes(o *op, eps place, turn Memory) error {
	e, w := c.e, &c.e.layout.Tensors[o.weight]
	numbers, err := e.scratchMemory("whole numbers", 4*len(c.work)*w.Len)
	if err != nil {
		return err
	}
	c.noise(2, numbers, w.Lo, w.Lo+w.Len)
	bias, biased := eps, uint32(0)
	if o.bias >= 0 {
		bias, biased = c.tensor(eps, 0, o.bias), 1
	}
	mean, std := float32(e.set.Mean[0]), float32(e.set.Std[0])
	c.b.grid("byte_product", [3]int{(o.nOut + group - 1) / group, c.most, len(c.work)}, group, wordsHere{}, c.from.rows,
		c.seen, c.pairSizes, uint32(c.most),
		c.from.pixels, uint32(o.nIn), numbers, uint64(w.Len), uint32(o.nOut), bias.m, bias.at, bias.step, biased,
		noise.IntegerScale/(255*std), -noise.IntegerScale*mean/std, turn, uint64(c.most*o.nOut))
	return nil
}

// fitness returns the negative mean loss, NaN if it is not finite.
func fitness(loss float64, samples int) float32 {
	f := float32(-loss / float64(samples))
	if math.IsInf(float64(f), 0) {
		return float32(math.NaN())
	}
	return f
}
