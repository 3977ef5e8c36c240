package averaging

import (
	"math"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/optimtest"
)

// TestWASH compares with algorithm 1, computed naively in float64: local steps, then a share of the elements of each
// layer, smaller for deeper layers, is permuted among the replicas.
func TestWASH(t *testing.T) {
	layers := []struct {
		lo, n  int
		chosen map[string]int
	}{{0, 7, map[string]int{"falling": 6, "even": 6}}, {7, 4, map[string]int{"falling": 2, "even": 4}},
		{11, 2, map[string]int{"falling": 0, "even": 2}}}
	for _, c := range []struct {
		n     int
		slice float64
		depth string
	}{{3, 32, "even"}, {2, 2, "falling"}, {3, 32, "falling"}, {5, 32, "falling"}, {1, 32, "even"}} {
		b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
		b.Layout.Tensors = nil
		for _, x := range []struct {
			name    string
			lo, len int
		}{{"a.weight", 0, 6}, {"a.bias", 6, 1}, {"b.weight", 7, 4}, {"c.weight", 11, 2}} {
			b.Layout.Tensors = append(b.Layout.Tensors,
				engine.Tensor{Name: x.name, Shape: []int{x.len}, Lo: x.lo, Len: x.len, Cols: x.len})
		}
		p := b.Populate(t, WASH, c.n,
			optimtest.Set{"h": 4, "slice": c.slice, "share": 0.9, "depth": c.depth, "eta": 0.05, "momentum": 0.6, "batch": 4})
		each := map[float64]int{32: 1, 2: 2}[c.slice]
		x, m := optimtest.StartRows(optimtest.Cols, c.n)
		next := p.Streams()
		for cycle := range 3 {
			for a := range x {
				for range 4 {
					optimtest.Nesterov(x[a], m[a], p.Bowl.Gradient(x[a], next(a)), 0.05, 0.6)
				}
			}
			var places []int
			for l, layer := range layers {
				key := noise.Key{Seed: p.Seed, Purpose: noise.Pair, Round: uint64((cycle+1)*each - 1), Member: uint32(l)}
				for j := range layer.chosen[c.depth] {
					places = append(places, layer.lo+int(key.Permute(uint64(j), uint64(layer.n))))
				}
			}
			was := make([][]float64, c.n)
			for a := range x {
				was[a] = slices.Clone(x[a])
			}
			for i, place := range places[:len(places)/c.n*c.n] {
				for a := range x {
					x[a][place] = was[(a+i%c.n)%c.n][place]
				}
			}
			for a, b := optimtest.Average(x), optimtest.Average(was); len(a) > 0; a, b = a[1:], b[1:] {
				if math.Abs(a[0]-b[0]) > 1e-12 {
					t.Fatal("the shuffle of the reference moves the mean")
				}
			}
		}
		p.Rounds(3 * each)
		p.Same(optim.BlockX, x...)
		p.Same(optim.BlockM, m...)
	}
}

// With share 0 nothing is shuffled, and replicas train independently.
func TestWASHShareZero(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	none := b.Populate(t, WASH, 3, optimtest.Set{"h": 4, "share": 0, "start": 1, "batch": 4})
	some := b.Populate(t, WASH, 3, optimtest.Set{"h": 4, "share": 0.5, "start": 1, "batch": 4})
	alone := b.Populate(t, LocalSGD, 3, optimtest.Set{"h": 1000, "slice": 4, "batch": 4})
	for _, p := range []*optimtest.Population{none, some, alone} {
		p.Rounds(3)
	}
	for a := range 3 {
		if far := optimtest.Distance(none.RowOf(optim.BlockX, a), alone.RowOf(optim.BlockX, a)); far > 1e-6 {
			t.Errorf("member %d is %g from training alone", a, far)
		}
	}
	if far := optimtest.Distance(some.RowOf(optim.BlockX, 0), alone.RowOf(optim.BlockX, 0)); far < 1e-3 {
		t.Errorf("half of the elements are shuffled, and a member is %g from training alone", far)
	}
}

// An element of a replica comes from each other replica with equal probability.
func TestWASHShiftsEvenly(t *testing.T) {
	const n, rounds = 4, 600
	k, l := optimtest.Set{"share": 0.2, "depth": 1}.Of(WASH), cut(100)
	from := map[int]int{}
	for round := range rounds {
		places := washElements(k, l, func(layer int) noise.Key {
			return noise.Key{Seed: 3, Purpose: noise.Pair, Round: uint64(round), Member: uint32(layer)}
		})
		for i, place := range places {
			if place == 42 {
				from[i%n]++
			}
		}
	}
	for shift := range n {
		if want := 0.2 * rounds / n; math.Abs(float64(from[shift])-want) > 5*math.Sqrt(want) {
			t.Errorf("an element is shifted by %d %d times in %d rounds, want %.0f", shift, from[shift], rounds, want)
		}
	}
}

// TestWASHLayers: tensors whose names have the same part before the point are one layer. A name without a point,
// possible in the user's own graphs, is one layer.
func TestWASHLayers(t *testing.T) {
	layout := func(names ...string) (l engine.Layout) {
		for _, name := range names {
			l.Tensors = append(l.Tensors, engine.Tensor{Name: name, Shape: []int{100}, Lo: l.Params, Len: 100, Cols: 100})
			l.Params += 100
		}
		return l
	}
	k := optimtest.Set{"share": 0.5}.Of(WASH)
	for _, c := range []struct {
		layout engine.Layout
		want   []int
	}{{layout("fc1.weight", "fc1.bias", "fc2.weight"), []int{100, 0}}, {layout("w1", "b1", "w2"), []int{50, 25, 0}}} {
		var got []int
		for _, layer := range washLayers(k, c.layout) {
			got = append(got, layer.chosen)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d elements are chosen of the layers, want %d", got, c.want)
		}
	}
	if wide := washWidth(optimtest.Set{"share": 0.01}.Of(WASH), layout("w1", "w2"), 4); wide != 0 {
		t.Errorf("one chosen element among four members is dealt out %d times", wide)
	}
}
