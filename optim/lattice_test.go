package optim

import (
	"context"
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
)

// A code decodes to within a cell of what was sent, for every distance up to 126 cells, and is noticed beyond 129.
func TestLattice(t *testing.T) {
	const cell = 0.01
	for _, size := range []int{1, 7, 8, 9, 100} {
		for _, far := range []float64{0, 1, 50, 126, 129, 200, 256, 300, 1e5} {
			sent, near, got := make([]float32, size), make([]float32, size), make([]float32, size)
			for j := range sent {
				sent[j] = float32(math.Sin(float64(j)) * 3)
				near[j] = sent[j]
			}
			near[size-1] += float32(far * cell)
			code := make([]uint64, latticeWords(size))
			latticeEncode(code, sent, cell, noise.Key{Purpose: noise.Pair, Member: 3})
			ok := latticeDecode(got, code, near, cell)
			if ok != (far < 128) {
				t.Errorf("%d elements, the last %g cells apart: decoded %v", size, far, ok)
			}
			for j := range sent {
				if d := math.Abs(float64(got[j] - sent[j])); ok && d > cell*1.001 {
					t.Errorf("%d elements, %g cells apart: element %d is %g off", size, far, j, d)
				}
			}
		}
	}
}

// What no byte can stand for must not pass: not a number, infinite, or beyond the lattice.
func TestLatticeRefuses(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), -math.MaxFloat32, 1e9} {
		x, got := []float32{1, bad, 2}, make([]float32, 3)
		code := make([]uint64, latticeWords(3))
		latticeEncode(code, x, 1e-6, noise.Key{})
		if latticeDecode(got, code, x, 1e-6) {
			t.Errorf("%v was decoded, to %v", bad, got[1])
		}
	}
}

// Codes are unbiased: the mean over keys is the value sent.
func TestLatticeIsUnbiased(t *testing.T) {
	const cell, keys = 0.1, 20000
	x, got, sum := []float32{0.537, -0.02, 0.1}, make([]float32, 3), make([]float64, 3)
	code := make([]uint64, latticeWords(3))
	for i := range uint64(keys) {
		latticeEncode(code, x, cell, noise.Key{Purpose: noise.Pair, Round: i})
		if !latticeDecode(got, code, x, cell) {
			t.Fatal("did not decode")
		}
		for j := range sum {
			sum[j] += float64(got[j]) / keys
		}
	}
	for j := range x {
		if d := math.Abs(sum[j] - float64(x[j])); d > 4*0.5*cell/math.Sqrt(keys) {
			t.Errorf("element %d has mean %.5f, was sent as %.5f", j, sum[j], x[j])
		}
	}
}

// Where every code wraps, exchanges are those in full to the bit; where none does, the average is within a cell.
func TestLatticeExchange(t *testing.T) {
	b := newBowl(t, cols, samples)
	run := func(k set) (*population, Report) {
		k["eta"], k["batch"] = 0, 1
		p := b.populate(t, PopSGD, 6, k)
		p.scatter()
		return p, p.rounds(1)
	}
	full, _ := run(set{})
	wrapped, rep := run(set{"code": "lattice8", "cell": 1e-5})
	if fallbacks := rep.Points[len(rep.Points)-1]; fallbacks.Series != "fallbacks" || fallbacks.Value != 6 {
		t.Errorf("%+v, want 6 fallbacks of 3 meetings", fallbacks)
	}
	for i, v := range flat(full.Block(BlockX)) {
		if flat(wrapped.Block(BlockX))[i] != v {
			t.Fatalf("element %d: %v after a fallback, %v in full", i, flat(wrapped.Block(BlockX))[i], v)
		}
	}
	coarse, rep := run(set{"code": "lattice8", "cell": 0.1})
	if fallbacks := rep.Points[len(rep.Points)-1].Value; fallbacks != 0 {
		t.Errorf("%v fallbacks at a cell of 0.1", fallbacks)
	}
	var off float64
	for m := range 6 {
		for j, v := range full.row(BlockX, m) {
			off = max(off, math.Abs(coarse.row(BlockX, m)[j]-v))
		}
	}
	if off == 0 || off > 2*0.1 {
		t.Errorf("averages are %g off with a cell of 0.1", off)
	}
}

// On two workers, bytes follow from the recorded edges, with wraps and without.
func TestLatticeBytes(t *testing.T) {
	r := Roster{Members: IDs(4), Owner: []int{0, 0, 1, 1}}
	for _, cell := range []float64{1, 1e-6} {
		var predicted Ledger
		src := vectors(r.Members, 20)
		for i := range flat(src) {
			flat(src)[i] = float32(i%20)/10 + float32(i/20)
		}
		edges := []Edge{{0, 2, "exchange"}, {2, 0, "exchange"}, {1, 3, "exchange"}, {3, 1, "exchange"}}
		sent := together(t, r, []int{0, 1}, 0, func(c *Comm) error {
			mine := r.Hosted(c.Self)
			x := ram.New(2, 20)
			for i, m := range mine {
				copy(rowOf(x, engine.Row(i)), rowOf(src, engine.Row(m)))
			}
			e := &Env{Roster: r, Self: c.Self, Mine: mine, Comm: c, Engine: c.Engine, Blocks: map[string]engine.Mat{BlockX: x}}
			again, err := moveLattice(context.Background(), e, cell, 0, 0, edges, x, ram.New(2, 20), ram.New(2, 20))
			if c.Self == 0 {
				predicted = Ledger{}
				predicted.Add(popSGDBytes(Shape{Roster: r, Layout: engine.Layout{Params: 20}, K: set{"code": "lattice8"}.of(PopSGD), Drawn: true, Edges: append(edges, again...)}))
			}
			return err
		})
		if sent["exchange"] != 4*8*4 || sent["verdict"] != 2*2*4 || sent["fallback"] != map[float64]int64{1: 0, 1e-6: 4 * 80}[cell] {
			t.Errorf("cell %g: sent %v", cell, sent)
		}
		for _, op := range []Op{"exchange", "verdict", "fallback"} {
			if sent[op] != predicted[op] {
				t.Errorf("cell %g, %s: sent %d, predicted %d", cell, op, sent[op], predicted[op])
			}
		}
	}
}
