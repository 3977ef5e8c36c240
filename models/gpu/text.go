package gpu

import (
	"fmt"
	"math"

	"brood/models"
)

// keeps returns the floats per sample that a layer of a text model stores for the backward pass, and its scratch space
// there.
func keeps(m *models.Model, l *models.Layer) int {
	steps := m.Features
	switch l.Kind {
	case models.MinGRU:
		return 3 * steps * units(l)
	case models.Attention:
		c, queries := l.In[0]/steps, l.Queries(m)
		return 2*(3*steps*c+l.Heads*queries*steps) + queries*c
	}
	return 0
}

// units returns the number of state values of a recurrence.
func units(l *models.Layer) int {
	if l.Steps > 0 {
		return l.Out[0] / l.Steps
	}
	return l.Out[0]
}

// along returns the list of the number of rows of each entry, with this many rows per sample.
func (p *pass) along(rows int) uint32 {
	if rows == 1 {
		return p.sizes
	}
	at, ok := p.rowSizes[rows]
	if !ok {
		at = p.b.list()
		for _, n := range p.counts {
			p.b.words = append(p.b.words, uint32(n*rows))
		}
		if p.rowSizes == nil {
			p.rowSizes = map[int]uint32{}
		}
		p.rowSizes[rows] = at
	}
	return at
}

// projection is Y = X W' + b with this many rows of X per sample.
type projection struct{ rows, nIn, nOut, weight, bias int }

// rowsOf returns the place of a matrix of contiguous rows of wide values for each entry.
func (p *pass) rowsOf(m Memory, rows, wide int) place {
	return place{m: m, step: uint64(p.most * rows * wide), list: none, down: wide, across: 1}
}

func (p *pass) project(o projection, x, y place) {
	w := p.tensor(p.params, p.lo, o.weight)
	w.down, w.across = 1, o.nIn
	g := product{m: p.most * o.rows, n: o.nOut, k: o.nIn, sizes: p.along(o.rows), sized: 1, a: x, b: w, c: y}
	if o.bias >= 0 {
		bias := p.tensor(p.params, p.lo, o.bias)
		g.bias = &bias
	}
	p.b.gemm(p.entries, g)
}

// projectWeights appends the gradients of weight and bias.
func (p *pass) projectWeights(o projection, dy, x, g place) {
	sizes, turned, w := p.along(o.rows), dy, p.tensor(g, 0, o.weight)
	turned.down, turned.across = 1, o.nOut
	w.down, w.across = o.nIn, 1
	p.b.gemm(p.entries, product{m: o.nOut, n: o.nIn, k: p.most * o.rows, sizes: sizes, sized: 2, a: turned, b: x, c: w})
	if o.bias >= 0 {
		bias := p.tensor(g, 0, o.bias)
		p.b.launch("column_sums", o.nOut, p.entries, wordsHere{}, sizes, uint32(o.nOut), dy.m, dy.step, bias.m, bias.at,
			bias.step)
	}
}

// projectData appends the gradient of X, or adds it to dx.
func (p *pass) projectData(o projection, dy, dx place, add bool) {
	w := p.tensor(p.params, p.lo, o.weight)
	w.down, w.across = o.nIn, 1
	g := product{m: p.most * o.rows, n: o.nIn, k: o.nOut, sizes: p.along(o.rows), sized: 1, a: dy, b: w, c: dx}
	if !add {
		p.b.gemm(p.entries, g)
		return
	}
	g.factors = none
	p.b.added(p.entries, g)
}

// positions returns the projection of a dense layer that is applied to each position.
func (o *op) positions() projection {
	return projection{o.rows, o.nIn / o.rows, o.nOut / o.rows, o.weight, o.bias}
}

// alongBack appends the gradients of such a layer.
func (p *pass) alongBack(o *op, dy, dx Memory, g place, input bool) {
	w := o.positions()
	d := p.rowsOf(dy, w.rows, w.nOut)
	p.projectWeights(w, d, p.rowsOf(p.acts[o.in].m, w.rows, w.nIn), g)
	if input {
		p.projectData(w, d, p.rowsOf(dx, w.rows, w.nIn), false)
	}
}

// layerScratch returns scratch memory of a layer for this many floats per sample.
func (p *pass) layerScratch(what string, o *op, floats int) Memory {
	// A device error is sticky, so the batch is not issued.
	m, _ := p.e.scratchMemory(fmt.Sprintf("%s of layer %d", what, o.layer), 4*p.entries*p.most*floats)
	return m
}

// embed appends the lookup of the rows of input bytes.
func (p *pass) embed(o *op, x, y place) {
	t := p.tensor(p.params, p.lo, o.weight)
	p.b.launch("embed", p.most*o.nOut, p.entries, wordsHere{}, p.sizes, uint32(o.nIn), uint32(o.nOut/o.nIn), x.m, x.list,
		x.step,
		t.m, t.list, t.step, t.at, y.m, y.step)
}

// embedBack appends the gradient of the embedding's rows.
func (p *pass) embedBack(o *op, dy Memory, g place) {
	t, x := p.tensor(g, 0, o.weight), p.acts[o.in]
	n := p.e.layout.Tensors[o.weight].Len
	wide := o.nOut / o.nIn
	p.b.launch("embed_back", n, p.entries, wordsHere{}, p.sizes, uint32(o.nIn), uint32(wide), uint32(n/wide), x.m, x.step,
		dy, uint64(p.most*o.nOut), t.m, t.at, t.step)
}

// recurrence holds the arguments of a minGRU's launches.
type recurrence struct {
	steps, units int
	sequence     uint32
	gate, state  projection
	z, c         place
	h            Memory
}

func (p *pass) recurrence(o *op) recurrence {
	m := p.e.plan.model
	l := &m.Layers[o.layer]
	r := recurrence{steps: m.Features, units: units(l)}
	if l.Steps > 0 {
		r.sequence = 1
	}
	z := p.layerScratch("gates", o, r.steps*r.units)
	c := p.layerScratch("states let in", o, r.steps*r.units)
	r.z, r.c, r.h = p.rowsOf(z, r.steps, r.units), p.rowsOf(c, r.steps, r.units),
		p.layerScratch("states", o, r.steps*r.units)
	r.gate = projection{r.steps, o.nIn / r.steps, r.units, l.Weight, l.Bias}
	r.state = projection{r.steps, o.nIn / r.steps, r.units, l.State[0], l.State[1]}
	return r
}

// recur appends the gates z, the candidate states c, and the recurrence along the positions.
func (p *pass) recur(o *op, x, y place) {
	r := p.recurrence(o)
	x = p.rowsOf(x.m, r.steps, r.gate.nIn)
	p.project(r.gate, x, r.z)
	p.project(r.state, x, r.c)
	p.b.launch("recur", p.most*r.units, p.entries, wordsHere{}, p.sizes, uint32(r.steps), uint32(r.units), r.sequence,
		r.z.m, r.c.m, r.h, r.z.step, y.m, y.step)
}

func (p *pass) recurBack(o *op, dy, dx Memory, g place, input bool) {
	r := p.recurrence(o)
	p.b.launch("recur_back", p.most*r.units, p.entries, wordsHere{}, p.sizes, uint32(r.steps), uint32(r.units), r.sequence,
		r.z.m, r.c.m, r.h, r.z.step,
		dy, uint64(p.most*o.nOut))
	x := p.rowsOf(p.acts[o.in].m, r.steps, r.gate.nIn)
	p.projectWeights(r.gate, r.z, x, g)
	p.projectWeights(r.state, r.c, x, g)
	if input {
		to := p.rowsOf(dx, r.steps, r.gate.nIn)
		p.projectData(r.gate, r.z, to, false)
		p.projectData(r.state, r.c, to, true)
	}
}

// attention holds the arguments of an attention's launches.
type attention struct {
	steps, queries, channels, heads int
	scale                           float32
	before, behind                  projection
	qkv, given                      place
	weights                         Memory
	shape                           uint32
}

func (p *pass) attention(o *op) attention {
	m := p.e.plan.model
	l := &m.Layers[o.layer]
	a := attention{steps: m.Features, queries: l.Queries(m), channels: l.In[0] / m.Features, heads: l.Heads}
	a.scale = float32(1 / math.Sqrt(float64(a.channels/a.heads)))
	a.before = projection{a.steps, a.channels, 3 * a.channels, l.Weight, l.Bias}
	a.behind = projection{a.queries, a.channels, a.channels, l.Project[0], l.Project[1]}
	a.qkv = p.rowsOf(p.layerScratch("q, k and v", o, a.steps*3*a.channels), a.steps, 3*a.channels)
	a.given = p.rowsOf(p.layerScratch("heads", o, a.queries*a.channels), a.queries, a.channels)
	a.weights = p.layerScratch("weights", o, a.heads*a.queries*a.steps)
	a.shape = p.b.list(numbers(a.steps, a.queries, a.channels, a.heads)...)
	return a
}

func (p *pass) attend(o *op, x, y place) {
	a := p.attention(o)
	p.project(a.before, p.rowsOf(x.m, a.steps, a.channels), a.qkv)
	p.b.launch("attend", p.most*a.heads*a.queries, p.entries, wordsHere{}, p.sizes, a.shape, a.scale, a.qkv.m,
		a.weights, a.given.m, uint32(p.most))
	p.project(a.behind, a.given, p.rowsOf(y.m, a.queries, a.channels))
}

// attendBack replaces the gradient of the heads' results in place.
func (p *pass) attendBack(o *op, dy, dx Memory, g place, input bool) {
	a := p.attention(o)
	d := p.rowsOf(dy, a.queries, a.channels)
	p.projectWeights(a.behind, d, a.given, g)
	p.projectData(a.behind, d, a.given, false)
	scores, _ := p.e.scratchMemory("gradients of scores", 4*p.entries*p.most*a.heads*a.queries*a.steps)
	back, _ := p.e.scratchMemory("gradients of q, k and v", 4*p.entries*p.most*a.steps*3*a.channels)
	most := uint32(p.most)
	p.b.launch("attend_scores", p.most*a.heads*a.queries, p.entries, wordsHere{}, p.sizes, a.shape, a.qkv.m, a.weights,
		a.given.m, scores, most)
	p.b.launch("attend_back", p.most*a.steps*3*a.channels, p.entries, wordsHere{}, p.sizes, a.shape, a.scale, a.qkv.m,
		a.weights, a.given.m, scores, back, most)
	dq := p.rowsOf(back, a.steps, 3*a.channels)
	p.projectWeights(a.before, dq, p.rowsOf(p.acts[o.in].m, a.steps, a.channels), g)
	if input {
		p.projectData(a.before, dq, p.rowsOf(dx, a.steps, a.channels), false)
	}
}
