package averaging

import (
	"maps"
	"math"
	"slices"
	"testing"

	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
	"brood/optim/optimtest"
)

// fourBits64 returns the decoded message of v, computed naively in float64: each value of a block of 64 becomes the
// nearest of zero and seven powers of two. The largest of these powers is the one nearest to the largest magnitude of
// the block.
func fourBits64(v []float64) []float64 {
	out := slices.Clone(v)
	for lo := 0; lo < len(v); lo += 64 {
		block := out[lo:min(lo+64, len(v))]
		most := 0.0
		for _, x := range block {
			most = max(most, math.Abs(x))
		}
		top := math.Exp2(-200)
		for e := -199; e < 128; e++ {
			if p := math.Exp2(float64(e)); math.Abs(most-p) <= math.Abs(most-top) {
				top = p
			}
		}
		for i, x := range block {
			best := 0.0
			for e := 6; e >= 0; e-- {
				if p := top / math.Exp2(float64(e)); math.Abs(math.Abs(x)-p) <= math.Abs(math.Abs(x)-best) {
					best = p
				}
			}
			block[i] = math.Copysign(best, x)
		}
	}
	return out
}

// A message has the predicted length for all values, and each value decodes to the nearest value of the code.
func TestFourBits(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 300} {
		for _, size := range []float64{0, 1e-30, 1, 3e5, 1e38} {
			x := make([]float32, n)
			for i := range x {
				key := noise.Key{Purpose: noise.Data, Member: uint32(n)}
				x[i] = float32(size * float64(key.Gauss(i)) / 4 * math.Exp2(-float64(i%9)))
			}
			was, c := optimtest.Doubles(x), fourBits(n)
			message, received := make([]uint64, c.messageWords()), make([]float32, n)
			c.encode(message, x)
			c.decode(received, message)
			want := fourBits64(was)
			for i, v := range received {
				if float64(v) != want[i] {
					t.Fatalf("%d values of size %g: %g became %g, want %g", n, size, was[i], v, want[i])
				}
				if left := float32(was[i]) - v; x[i] != left {
					t.Fatalf("%d values: of %g is left %g, want %g", n, was[i], x[i], left)
				}
			}
		}
	}
	for _, odd := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		x, c := []float32{1, odd, 2}, fourBits(3)
		message, received := make([]uint64, c.messageWords()), make([]float32, 3)
		c.encode(message, x)
		if c.decode(received, message); received[0] == received[0] {
			t.Errorf("%g in a block: %v; a block with NaN or infinity decodes to NaN", odd, received)
		}
	}
}

// TestStreamingDiLoCo compares with algorithm 2 step by step: a fragment is sent after its step of each cycle and
// applied delay steps later, by the outer step of DiLoCo and a mix of the replica and the shared model.
func TestStreamingDiLoCo(t *testing.T) {
	for _, c := range []struct {
		fragments, delay int
		alpha, slice     float64
		values, overlap  string
	}{{3, 1, 0.3, 32, "float32", "off"}, {3, 4, 0.3, 2, "float32", "off"}, {5, 0, 0, 32, "float32", "off"},
		{1, 3, 0.5, 2, "float32", "off"},
		{2, 2, 0.5, 32, "e3m0", "off"}, {4, 1, 1, 1, "float32", "off"}, {3, 4, 0.3, 2, "float32", "on"},
		{2, 2, 0.5, 32, "e3m0", "on"}, {1, 0, 0, 32, "float32", "on"}} {
		const n, h, steps = 3, 5, 20
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, StreamingDiLoCo, n,
			optimtest.Set{"h": h, "fragments": c.fragments, "delay": c.delay, "alpha": c.alpha, "slice": c.slice,
				"values": c.values, "overlap": c.overlap, "eta": 0.5, "eta_in": 0.01, "momentum": 0.8, "decay": 0.1, "batch": 4})
		x, m := optimtest.StartRows(optimtest.Cols, n)
		_, v := optimtest.StartRows(optimtest.Cols, n)
		xbar, mx, next := optimtest.StartRow(), make([]float64, optimtest.Cols), p.Streams()
		type sent struct {
			at int // step after which it is applied
			d  []float64
		}
		way := make([]sent, c.fragments)
		follow := func(lo, hi int, d []float64) {
			optimtest.Nesterov(xbar[lo:hi], mx[lo:hi], d, 0.5, 0.8)
			for a := range x {
				for j := lo; j < hi; j++ {
					x[a][j] = c.alpha*x[a][j] + (1-c.alpha)*xbar[j]
				}
			}
		}
		for step := 1; step <= steps; step++ {
			for a := range x {
				optimtest.AdamW(x[a], m[a], v[a], p.Bowl.Gradient(x[a], next(a)), 0.9, 0.999, 0.01, 0.1, step)
			}
			for q := range c.fragments {
				lo, hi := optimtest.Cols*q/c.fragments, optimtest.Cols*(q+1)/c.fragments
				if way[q].d != nil && way[q].at == step {
					follow(lo, hi, way[q].d)
					way[q].d = nil
				}
				if step%h != h*(q+1)/c.fragments%h {
					continue
				}
				var far [][]float64
				for a := range x {
					d := make([]float64, hi-lo)
					for j := range d {
						d[j] = xbar[lo+j] - x[a][lo+j]
					}
					if c.values == "e3m0" {
						d = fourBits64(d)
					}
					far = append(far, d)
				}
				if way[q] = (sent{step + c.delay, optimtest.Average(far)}); c.delay == 0 {
					follow(lo, hi, way[q].d)
					way[q].d = nil
				}
			}
		}
		for done := int64(0); done < n*steps; {
			done += p.Rounds(1).Steps
		}
		p.Same(optim.BlockXBar, xbar)
		p.Same(optim.BlockX, x...)
		p.Same(optim.BlockMX, mx)
		for q, w := range way {
			want := uint64(0)
			if w.d != nil {
				want = uint64(w.at - steps)
			}
			if c.overlap == "on" && w.at == steps+c.delay { // sent at the start of the next round
				want = 0
			}
			if got := p.Record(optim.BlockDue).U[q]; got != want {
				t.Errorf("fragment %d of %d is due in %d steps, want %d", q, c.fragments, got, want)
			}
		}
	}
}

// Steps computed during a transfer have the same bits as steps after a blocking transfer, also if h or overlap changes
// within a cycle. With overlap each fragment is sent one round later, and none is sent twice or lost.
func TestStreamingDiLoCoOverlaps(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	for _, c := range []struct {
		optimtest.Set
		h       func(round int) float64
		overlap func(round int) string
	}{
		{Set: optimtest.Set{"h": 4, "fragments": 2, "delay": 1}},
		{Set: optimtest.Set{"h": 5, "fragments": 3, "delay": 4, "slice": 2}},
		{Set: optimtest.Set{"h": 6, "fragments": 1, "delay": 5}},
		{Set: optimtest.Set{"h": 6, "fragments": 2, "delay": 2, "values": "e3m0", "alpha": 0.3}},
		{Set: optimtest.Set{"fragments": 4, "delay": 2}, h: func(round int) float64 { return float64(8 + round/2) }},
		{Set: optimtest.Set{"fragments": 2, "delay": 1}, h: func(round int) float64 { return float64(4 - 2*(round/7%2)) }},
		{Set: optimtest.Set{"h": 4, "fragments": 2, "delay": 3}, overlap: func(round int) string { return []string{"off", "on", "on"}[round/2%3] }},
	} {
		knobs := func(overlap string, round int) optimtest.Set {
			k := optimtest.Set{"eta": 0.5, "eta_in": 0.01, "momentum": 0.8, "batch": 4, "overlap": overlap}
			maps.Copy(k, c.Set)
			if c.h != nil {
				k["h"] = c.h(round)
			}
			return k
		}
		on := func(round int) string {
			if c.overlap == nil {
				return "on"
			}
			return c.overlap(round)
		}
		waits, hides := b.Populate(t, StreamingDiLoCo, 3, knobs("off", 0)), b.Populate(t, StreamingDiLoCo, 3, knobs(on(0), 0))
		var due, sent []int
		for round := range 30 {
			waits.Knobs, hides.Knobs = knobs("off", round).Of(StreamingDiLoCo), knobs(on(round), round).Of(StreamingDiLoCo)
			due = append(due, streamingDiLoCoSends(waits.Shape(waits.Knobs))...)
			sent = append(sent, streamingDiLoCoSends(hides.Shape(hides.Knobs))...)
			waits.Rounds(1)
			hides.Rounds(1)
			for _, name := range []string{optim.BlockX, optim.BlockXBar, optim.BlockMX, optim.BlockM1} {
				if !slices.Equal(optimtest.Flat(waits.Block(name)), optimtest.Flat(hides.Block(name))) {
					t.Fatalf("%v: %s differs after round %d", c.Set, name, round)
				}
			}
		}
		if late := len(due) - len(sent); late > 1 || !slices.Equal(due[:len(sent)], sent) {
			t.Errorf("%v: fragments %v were sent, want %v", c.Set, sent, due)
		}
	}
}

// With one fragment, no delay and alpha 0, Streaming DiLoCo equals DiLoCo bit for bit.
func TestStreamingDiLoCoOfOneFragmentIsDiLoCo(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	k := optimtest.Set{"h": 4, "eta": 0.5, "eta_in": 0.01, "momentum": 0.8, "batch": 4}
	whole := b.Populate(t, DiLoCo, 3, k)
	k["fragments"], k["delay"], k["alpha"] = 1, 0, 0
	one := b.Populate(t, StreamingDiLoCo, 3, k)
	whole.Rounds(5)
	one.Rounds(5)
	for _, name := range []string{optim.BlockX, optim.BlockXBar, optim.BlockMX, optim.BlockM1} {
		if !slices.Equal(optimtest.Flat(whole.Block(name)), optimtest.Flat(one.Block(name))) {
			t.Errorf("%s differs from DiLoCo's", name)
		}
	}
}

// A cycle sends as many bytes as DiLoCo, one fragment a round. The maximum of a round is one fragment.
func TestStreamingDiLoCoSendsAFragmentARound(t *testing.T) {
	for _, fragments := range []int{1, 3, 4} {
		shape := func(a *optim.Algorithm, more optimtest.Set) optim.Shape {
			more["h"] = 8
			return optim.Shape{Roster: collective.Place(collective.IDs(5), []int{0, 1, 2}), Layout: cut(1000), K: more.Of(a)}
		}
		whole := DiLoCo.Bytes(shape(DiLoCo, optimtest.Set{}))["outer"]
		s := shape(StreamingDiLoCo, optimtest.Set{"fragments": fragments, "slice": 3})
		var sum, peak int64
		rounds := StreamingDiLoCo.Cycle(s)
		for range rounds {
			b := StreamingDiLoCo.Bytes(s)["fragment"]
			sum, peak = sum+b, max(peak, b)
			steps, _ := fragmentSteps(s)
			s.Phase += uint64(steps)
		}
		if s.Phase != 8 || sum != whole {
			t.Errorf("%d fragments: %d bytes in %d steps, DiLoCo sends %d in 8", fragments, sum, s.Phase, whole)
		}
		if most := whole/int64(fragments) + whole/200; peak > most {
			t.Errorf("%d fragments: a round sends %d bytes, want at most %d", fragments, peak, most)
		}
		s.Phase, s.K = 0, optimtest.Set{"h": 8, "fragments": fragments, "values": "e3m0", "slice": 8}.Of(StreamingDiLoCo)
		wide := 1000 / fragments
		if got, want := StreamingDiLoCo.Bytes(s)["fragment"], int64(2*5*8*((16*((wide+63)/64)+4*wide+63)/64)); got != want {
			t.Errorf("%d fragments of four bits: %d bytes a round, want %d", fragments, got, want)
		}
	}
}
