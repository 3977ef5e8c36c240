package gpu

import (
	"encoding/binary"
	"fmt"
	"math"

	"brood/models"
	"brood/models/noise"
)

// place locates an operand of each entry: element (i, j) of entry z is at + list[z]*step + i*down + j*across. With step
// 0 all entries share it.
type place struct {
	m            Memory
	at, step     uint64
	list         uint32
	down, across int
	words        bool // it is stored in the batch's words, and all entries share it
}

// shift returns the place n elements further on.
func (p place) shift(n int) place {
	p.at += uint64(n)
	return p
}

// product is C = A B for each entry, m x n over k.
type product struct {
	m, n, k int
	sizes   uint32 // list of every entry's m or k, as sized says
	sized   uint32 // 1: sizes is m; 2: sizes is k
	relu    bool
	add     bool   // C = fma(factor, A B, C)
	factors uint32 // list of every entry's factor; none: 1
	a, b, c place
	bias    *place
	gate    *place
}

// Tiles of products in the kernels: rows and columns of a tile, work items of a group, the most rows of work items in
// it, and rows and columns per work item.
const (
	tileSide  = 64
	tileItems = 64
	tileHigh  = 8
	tileOwn   = 8
)

// gemm appends products of a number of entries.
func (b *batch) gemm(entries int, p product) {
	w := []uint32{uint32(p.m), uint32(p.n), uint32(p.k), p.sizes, p.sized, 0, 0, 0}
	if p.relu {
		w[5] = 1
	}
	if p.add {
		w[6], w[7] = 1, p.factors
	}
	there := func(o *place) (any, []uint32) {
		if o == nil {
			return p.c.m, make([]uint32, 8)
		}
		if o.words {
			return wordsHere{}, []uint32{uint32(o.at), 0, 0, 0, none, 0, 1, 1}
		}
		return o.m, []uint32{uint32(o.at), uint32(o.at >> 32), uint32(o.step), uint32(o.step >> 32), o.list, uint32(o.down),
			uint32(o.across), 1}
	}
	args := []any{wordsHere{}, uint32(0)}
	for _, o := range []*place{&p.a, &p.b, &p.c, p.bias, p.gate} {
		m, words := there(o)
		args, w = append(args, m), append(w, words...)
	}
	args[1] = b.list(w...)
	b.grid(b.products("gemm"), [3]int{(p.n + tileSide - 1) / tileSide, (p.m + tileSide - 1) / tileSide, entries},
		tileItems, args...)
}

// added appends products that are added to their results, cut where the native engine cuts them.
func (b *batch) added(entries int, p product) {
	for k := 0; k < p.k; k += cut {
		q := p
		q.k, q.add, q.a, q.b = min(cut, p.k-k), true, p.a.shift(k*p.a.across), p.b.shift(k*p.b.down)
		b.gemm(entries, q)
	}
}

// products returns the kernel for products or convolutions that the batch uses.
func (b *batch) products(name string) string {
	if b.tensor {
		return tensorKernels[name]
	}
	return name
}

// pass builds the pass of some entries through the plan. Each entry has parameters and at most most samples.
type pass struct {
	e       *Engine
	b       *batch
	entries int
	most    int    // most samples of an entry
	sizes   uint32 // list of the number of samples of each entry
	params  place  // of the entries, beginning with parameter lo
	lo      int
	acts    []place // by activation
	masks   []noise.Key
	// counts is the number of samples of each entry; rowSizes lists their number of rows, by rows per sample.
	counts   []int
	rowSizes map[int]uint32

	stats place   // running statistics of the entries; none: use the batch's own and do not store them
	given bool    // use stats unchanged
	pace  float32 // weight of the batch's own statistics in the update of stats
}

// begin allocates activations of the entries. Entries may share the input by a list of views.
func (e *Engine) begin(b *batch, entries, views, most int, sizes []int) (*pass, error) {
	b.tensor = e.tensor != ""
	p := &pass{e: e, b: b, entries: entries, most: most, counts: sizes, acts: make([]place, len(e.plan.floats))}
	p.sizes = b.list()
	for _, n := range sizes {
		b.words = append(b.words, uint32(n))
	}
	for i, f := range e.plan.floats {
		n := entries
		if i == 0 {
			n = views
		}
		m, err := e.scratchMemory(fmt.Sprintf("activation %d", i), 4*n*most*f)
		if err != nil {
			return nil, err
		}
		p.acts[i] = place{m: m, step: uint64(most * f), list: none, down: f, across: 1}
	}
	return p, nil
}

// tensor returns the place of a tensor in the entries' parameters.
func (p *pass) tensor(of place, lo, i int) place {
	return of.shift(p.e.layout.Tensors[i].Lo - lo)
}

// dense appends y = x W' + b of the entries.
func (p *pass) dense(o *op, entries int, x place, params place, lo int, y place, sizes uint32, relu bool) {
	w := p.tensor(params, lo, o.weight)
	w.down, w.across = 1, o.nIn // W is [out][in]: B = W'
	g := product{m: p.most, n: o.nOut, k: o.nIn, sizes: sizes, sized: 1, relu: relu, a: x, b: w, c: y}
	if o.bias >= 0 {
		bias := p.tensor(params, lo, o.bias)
		g.bias = &bias
	}
	p.b.gemm(entries, g)
}

// forward appends the ops from index from on.
func (p *pass) forward(from int, training bool) {
	for i := from; i < len(p.e.plan.ops); i++ {
		p.step(&p.e.plan.ops[i], training)
	}
}

// step appends an op with the entries' own parameters.
func (p *pass) step(o *op, training bool) {
	x, y := p.acts[o.in], p.acts[o.out]
	switch {
	case o.kind == models.Dense && o.rows > 1:
		w := o.positions()
		p.project(w, p.rowsOf(x.m, w.rows, w.nIn), p.rowsOf(y.m, w.rows, w.nOut))
	case o.kind == models.Dense:
		p.dense(o, p.entries, x, p.params, p.lo, y, p.sizes, o.rectify)
	case o.kind == models.Conv:
		p.conv(o, x, y)
	case o.kind == models.MaxPool, o.kind == models.AvgPool:
		p.pool(o, x, y)
	case o.kind == models.GlobalAvg:
		p.b.launch("average", p.most*o.channels, p.entries, wordsHere{}, p.sizes, uint32(o.channels), uint32(o.plane), x.m,
			x.list, x.step, y.m, y.step)
	case o.kind == models.BatchNorm:
		p.norm(o, x, y)
	case o.kind == models.LayerNorm:
		p.layerNorm(o, x, y)
	case o.kind == models.LeakyReLU, o.kind == models.Tanh, o.kind == models.SiLU, o.kind == models.GELU,
		o.kind == models.Scale:
		p.activation(o, x, y)
	case o.kind == models.Embedding:
		p.embed(o, x, y)
	case o.kind == models.MinGRU:
		p.recur(o, x, y)
	case o.kind == models.Attention:
		p.attend(o, x, y)
	case o.kind == models.Add:
		p.add(o, x, p.acts[o.with], y)
	case o.kind == models.Constant:
		row := p.tensor(p.params, p.lo, o.bias)
		p.b.launch("constant_rows", p.most*o.nOut, p.entries, wordsHere{}, p.sizes, uint32(o.nOut), row.m, row.at, row.list,
			row.step, y.m, y.step)
	case o.kind == models.ReLU && o.forward:
		p.each("relu", o, x, y)
	case o.kind == models.Dropout && training:
		p.drop(o, x.m, y.m)
	case o.kind == models.Dropout:
		p.each("rows", o, x, y)
	}
}

// each appends a kernel from rows of x, which may be listed, to rows of y.
func (p *pass) each(kernel string, o *op, x, y place) {
	p.b.launch(kernel, p.most*o.nOut, p.entries, wordsHere{}, x.list, y.m, y.step, x.m, x.step)
}

// drop appends y = x times the dropout masks of a layer.
func (p *pass) drop(o *op, x, y Memory) {
	keys := p.b.list()
	for _, k := range p.masks {
		p.b.key(k, 0)
	}
	p.b.launch("dropout", (p.most*o.nOut+3)/4, p.entries, wordsHere{}, keys, p.sizes, uint32(o.nOut), uint32(o.layer), x,
		y, uint64(p.most*o.nOut),
		1/(1-float32(o.rate)), uint32(o.rate*(1<<24)))
}

// loss appends the samples' losses and hits and, unless d is 0, the gradient of each entry's mean loss. It adds the
// losses and hits to the entries' sums in the log, from element sums on. Squared errors of a regression, or the share
// of wrong labels of a multi-label model, are added from element squares on, unless it is noSums. ids and blocks are
// arguments of the kernel.
func (p *pass) loss(ids, blocks uint32, d Memory, piece int, sums, squares uint64, targets uint32, entries int) error {
	e, classes := p.e, p.e.plan.model.Classes
	losses, err := e.scratchMemory("losses", 4*p.entries*p.most)
	if err != nil {
		return err
	}
	hits, err := e.scratchMemory("hits", 4*p.entries*p.most)
	if err != nil {
		return err
	}
	want := uint32(1)
	if d == 0 {
		d, want = losses, 0
	}
	z := p.acts[e.plan.last]
	switch e.model.Loss {
	case models.MSE, models.Huber, models.BCE:
		errors, err := e.scratchMemory("squares", 8*p.entries*p.most)
		if err != nil {
			return err
		}
		if e.model.MultiLabel() {
			p.b.launch("independent", p.most, p.entries, wordsHere{}, ids, blocks, p.sizes, uint32(p.most), e.samples.targets,
				uint32(e.model.Outputs), z.m, z.list, z.step,
				d, want, losses, hits, errors)
		} else {
			huber := uint32(0)
			if e.model.Loss == models.Huber {
				huber = 1
			}
			p.b.launch("regression", p.most, p.entries, wordsHere{}, ids, blocks, p.sizes, uint32(p.most), e.samples.targets,
				uint32(e.model.Outputs), huber, z.m, z.list, z.step,
				d, want, losses, hits, errors)
		}
		if squares != noSums {
			p.b.launch("tally_squares", p.entries, 1, wordsHere{}, p.sizes, uint32(p.entries), uint32(p.most), uint32(piece),
				errors, targets, e.log, squares)
		}
	case models.Distance:
		x := p.acts[0]
		p.b.launch("squared_distance", p.most, p.entries, wordsHere{}, p.sizes, uint32(p.most), uint32(e.model.Features), x.m,
			x.list, x.step, z.m, z.list, z.step,
			d, want, losses, hits)
	default:
		weights, weighs := e.samples.weights, uint32(1)
		if weights == 0 {
			weights, weighs = losses, 0 // a pointer that is not read
		}
		p.b.launch("cross_entropy", p.most, p.entries, wordsHere{}, ids, blocks, p.sizes, uint32(p.most), e.samples.labels,
			uint32(classes), weights, weighs, z.m, z.list, z.step, d, want, losses, hits)
	}
	p.b.launch("tally", p.entries, 1, wordsHere{}, p.sizes, uint32(p.entries), uint32(p.most), uint32(piece), losses, hits,
		targets,
		e.log, sums, e.log, sums+uint64(entries))
	return nil
}

// noSums is the offset for sums that are not computed.
const noSums = math.MaxUint64

// squareSums reserves a zeroed float64 for each entry in the log and returns its element offset; Wait stores the sums
// in out.
func (e *Engine) squareSums(b *batch, out []float64) (at uint64, err error) {
	place, err := e.reserveLog(8*len(out), func(p []byte) {
		for i := range out {
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(p[8*i:]))
		}
	})
	b.launch("zeros", 2*len(out), 1, e.log, place/4, uint64(2*len(out)))
	return place / 8, err
}

// sums reserves a zeroed float64 and a zeroed count for each of n entries in the log; read is called with them at the
// next Wait.
func (e *Engine) sums(b *batch, n int, read func(i int, loss float64, hits int64)) (at uint64, err error) {
	place, err := e.reserveLog(16*n, func(p []byte) {
		for i := range n {
			read(i, math.Float64frombits(binary.LittleEndian.Uint64(p[8*i:])), int64(binary.LittleEndian.Uint64(p[8*(n+i):])))
		}
	})
	b.launch("zeros", 4*n, 1, e.log, place/4, uint64(4*n))
	return place / 8, err
}
