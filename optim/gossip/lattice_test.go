package gossip

import (
	"math"
	"testing"

	"brood/models/noise"
	"brood/optim"
	"brood/optim/optimtest"
)

// A code decodes to within one cell of the value sent if both sides differ by at most 126 cells, and is rejected beyond
// 129.
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

// Encoding fails for values that are NaN, infinite or outside the lattice.
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

// If every code is rejected, exchanges equal those without a code to the bit. If none is, the average is within one
// cell.
func TestLatticeExchange(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	run := func(k optimtest.Set) (*optimtest.Population, optim.Report) {
		k["eta"], k["batch"] = 0, 1
		p := b.Populate(t, PopSGD, 6, k)
		scatter(p)
		return p, p.Rounds(1)
	}
	full, _ := run(optimtest.Set{})
	wrapped, rep := run(optimtest.Set{"code": "lattice8", "cell": 1e-5})
	if fallbacks := rep.Points[len(rep.Points)-1]; fallbacks.Series != "fallbacks" || fallbacks.Value != 6 {
		t.Errorf("%+v, want 6 fallbacks of 3 meetings", fallbacks)
	}
	for i, v := range optimtest.Flat(full.Block(optim.BlockX)) {
		if optimtest.Flat(wrapped.Block(optim.BlockX))[i] != v {
			t.Fatalf("element %d: %v after a fallback, %v in full", i, optimtest.Flat(wrapped.Block(optim.BlockX))[i], v)
		}
	}
	coarse, rep := run(optimtest.Set{"code": "lattice8", "cell": 0.1})
	if fallbacks := rep.Points[len(rep.Points)-1].Value; fallbacks != 0 {
		t.Errorf("%v fallbacks at a cell of 0.1", fallbacks)
	}
	var off float64
	for m := range 6 {
		for j, v := range full.RowOf(optim.BlockX, m) {
			off = max(off, math.Abs(coarse.RowOf(optim.BlockX, m)[j]-v))
		}
	}
	if off == 0 || off > 2*0.1 {
		t.Errorf("averages are %g off with a cell of 0.1", off)
	}
}
