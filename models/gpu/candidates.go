package gpu

import (
	"math"

	"brood/models"
	"brood/models/engine"
	"brood/models/noise"
)

// pair is one or two candidates that share noise, with opposite signs, and a view: entries at, ... of the task. A candidate alone is
// computed by the same steps as one of two, so that its bits do not depend on the cohort.
type pair struct {
	key   noise.Key
	view  int
	at, n int
}

// pairs groups entries that follow each other, and lists the views that they see.
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
		key, _ := signed(t.Key, t.Antithetic, id)
		if n := len(out); n > 0 && out[n-1].n == 1 && out[n-1].key == key && out[n-1].view == seen {
			out[n-1].n = 2
			continue
		}
		out = append(out, pair{key, seen, i, 1})
	}
	return out, views
}

// candidates evaluates pairs, as many at once as fit. Where the model begins with a dense layer, its products with theta and with the noise
// are taken apart, x*(W + s*E)' = x*W' + s*(x*E)': the first serves all candidates that see the view, the second both signs of a pair.
func (e *Engine) candidates(t engine.Candidates) error {
	if err := e.bounds.Candidates(&t); err != nil {
		return err
	}
	if err := e.mats("candidates", t.Theta, t.Scale); err != nil {
		return err
	}
	if err := fullRank("candidates", t.Noise); err != nil {
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
	return waves(len(work), per, func(lo, hi int) error { return e.some(&t, work[lo:hi], views, most, at) })
}

// some evaluates some pairs.
func (e *Engine) some(t *engine.Candidates, work []pair, all []view, most int, at uint64) error {
	b := new(batch)
	// The views that these pairs see, and of each candidate its pair, its view, its place in the task and the factor of its noise.
	views, number := []view(nil), map[int]uint32{}
	var pairOf, viewOf, target, ofPair []uint32
	var steps []float32
	var counts, shared []int
	for i, w := range work {
		v, ok := number[w.view]
		if !ok {
			v = uint32(len(views))
			number[w.view] = v
			views = append(views, all[w.view])
			shared = append(shared, len(all[w.view].ids))
		}
		ofPair = append(ofPair, v)
		for j := range w.n {
			_, sign := signed(t.Key, t.Antithetic, t.IDs[w.at+j])
			if t.Scale.Rows == 0 {
				sign *= t.Sigma
			}
			pairOf, viewOf, target = append(pairOf, uint32(i)), append(viewOf, v), append(target, uint32(w.at+j))
			steps, counts = append(steps, sign), append(counts, len(all[w.view].ids))
		}
	}
	p, err := e.begin(b, len(steps), len(views), most, counts)
	if err != nil {
		return err
	}
	ids, err := e.gather(b, views, most, p.acts[0].m)
	if err != nil {
		return err
	}
	units, params := len(work), e.layout.Params
	eps, err := e.room("noise", 4*units*params)
	if err != nil {
		return err
	}
	keys := b.list()
	for _, w := range work {
		b.key(w.key, 0)
	}
	_, items := e.items(0, params)
	b.launch("draw", items, units, wordsHere{}, keys, e.table, uint32(len(e.layout.Tensors)), uint64(0), uint64(items), kindOf(t.Noise), eps, uint64(0), uint64(params), uint64(0))
	if t.Scale.Rows > 0 {
		m, from := behind(t.Scale)
		b.launch("product", params, units, eps, uint64(0), uint64(params), eps, uint64(0), uint64(params), m, from, uint64(0), uint64(params))
	}
	theta, from := behind(t.Theta)
	lists := struct{ pairs, views, ofPair, factors uint32 }{b.list(pairOf...), b.list(viewOf...), b.list(ofPair...), b.floats(steps...)}
	p.acts[0].list = lists.views
	centre := place{m: theta, at: from, list: none}
	first, lo := 0, 0
	if o := &e.plan.ops[0]; o.kind == models.Dense {
		first, lo = 1, e.end(o)
		if err := e.apart(p, t, o, views, shared, centre, place{m: eps, step: uint64(params), list: none}, lists.ofPair, units, lists.views, lists.pairs, lists.factors); err != nil {
			return err
		}
	}
	if rest := params - lo; rest > 0 {
		made, err := e.room("candidates", 4*len(steps)*rest)
		if err != nil {
			return err
		}
		b.launch("spread", rest, len(steps), wordsHere{}, lists.factors, uint64(rest), uint32(0), made, uint64(rest),
			theta, from+uint64(lo), uint32(none), uint64(0), eps, uint64(lo), lists.pairs, uint64(params))
		p.params, p.lo = place{m: made, step: uint64(rest), list: none}, lo
	}
	p.forward(first, false)
	if err := p.loss(ids, lists.views, 0, piece, at, b.list(target...), len(t.IDs)); err != nil {
		return err
	}
	return e.issue(b)
}

// end is where the parameters behind a first layer begin.
func (e *Engine) end(o *op) int {
	t := e.layout.Tensors[o.weight]
	if o.bias >= 0 {
		t = e.layout.Tensors[o.bias]
	}
	return t.Lo + t.Len
}

// apart appends a first dense layer: base = x*W' + b of each view, turn = x*E' + e of each pair, and y = base + step*turn of each candidate.
func (e *Engine) apart(p *pass, t *engine.Candidates, o *op, views []view, shared []int, centre, eps place, ofPair uint32, units int, viewList, pairList, factors uint32) error {
	b, wide := p.b, p.most*o.nOut
	base, err := e.room("base", 4*len(views)*wide)
	if err != nil {
		return err
	}
	turn, err := e.room("turn", 4*units*wide)
	if err != nil {
		return err
	}
	viewSizes, pairSizes := b.list(), uint32(0)
	for _, n := range shared {
		b.words = append(b.words, uint32(n))
	}
	of := append([]uint32(nil), b.words[ofPair:int(ofPair)+units]...)
	pairSizes = b.list()
	for _, v := range of {
		b.words = append(b.words, uint32(shared[v]))
	}
	x := p.acts[0]
	x.list = none
	y := place{m: base, step: uint64(wide), list: none, down: o.nOut, across: 1}
	p.dense(o, len(views), x, centre, 0, y, viewSizes, false)
	x.list, y.m = ofPair, turn
	p.dense(o, units, x, eps, 0, y, pairSizes, false)
	relu := uint32(0)
	if o.rectify {
		relu = 1
	}
	b.launch("spread", wide, p.entries, wordsHere{}, factors, uint64(wide), relu, p.acts[o.out].m, uint64(wide),
		base, uint64(0), viewList, uint64(wide), turn, uint64(0), pairList, uint64(wide))
	return nil
}

// fitness is minus the mean loss, NaN when it is not finite.
func fitness(loss float64, samples int) float32 {
	f := float32(-loss / float64(samples))
	if math.IsInf(float64(f), 0) {
		return float32(math.NaN())
	}
	return f
}
