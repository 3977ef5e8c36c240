package chart

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"brood/runtime/view"
	"brood/tui/cell"
)

// tensorboard is the loop over points of TensorBoard's scalar charts.
func tensorboard(keep float64, points []float64) (out []float64) {
	last, n := 0.0, 0
	for _, x := range points {
		last = last*keep + (1-keep)*x
		n++
		out = append(out, last/(1-math.Pow(keep, float64(n))))
	}
	return out
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// TestSmoothMatchesTensorBoard compares the average with one over all points: one point a column, gaps between them,
// and some left of the window.
func TestSmoothMatchesTensorBoard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		keep := rapid.SampledFrom([]float64{0.6, 0.9, 0.97}).Draw(t, "keep")
		cols := make([]view.Bucket, 1+rng.IntN(200))
		var points []float64
		for i := range cols {
			if rng.IntN(3) > 0 {
				x := rng.NormFloat64()
				points = append(points, x)
				cols[i] = view.Bucket{Min: x, Max: x, Sum: x, Count: 1}
			}
		}
		want, cut := tensorboard(keep, points), rng.IntN(len(cols))
		at := 0
		for _, b := range cols[:cut] {
			at += int(b.Count)
		}
		for i, b := range Smooth(keep, cols[:cut], cols[cut:], nil) {
			if b.Empty() != cols[cut+i].Empty() {
				t.Fatalf("column %d: empty is %v", i, b.Empty())
			}
			if b.Empty() {
				continue
			}
			if !near(b.Mean(), want[at]) || b.Min != b.Max {
				t.Fatalf("point %d is smoothed to %g..%g, want %g", at, b.Min, b.Max, want[at])
			}
			at++
		}
	})
}

// TestSmoothCountsPoints checks that a column of many points counts as that many points of their mean.
func TestSmoothCountsPoints(t *testing.T) {
	cols := []view.Bucket{{Min: 1, Max: 3, Sum: 6, Count: 3}, {}, {Min: 4, Max: 8, Sum: 12, Count: 2}}
	want := tensorboard(0.9, []float64{2, 2, 2, 6, 6})
	got := Smooth(0.9, nil, cols, nil)
	if !near(got[0].Mean(), want[2]) || !got[1].Empty() || !near(got[2].Mean(), want[4]) {
		t.Errorf("smoothed to %v, want %g and %g", got, want[2], want[4])
	}
	for _, b := range Smooth(0.97, nil, Of([]float64{5, 5, 5}), nil) {
		if !near(b.Mean(), 5) {
			t.Errorf("a constant becomes %g: the average is biased to its start", b.Mean())
		}
	}
}

// TestRawTraceDecodesBehindItsSmoothedCurve checks that the raw trace behind a smoothed curve shows the minimum and
// maximum of each column where the curve does not cover it.
func TestRawTraceDecodesBehindItsSmoothedCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 9))
		r := cell.Rect{W: gutter + 4 + rng.IntN(40), H: 3 + rng.IntN(20)}
		p := Plot(r)
		cols := make([]view.Bucket, 2*p.W)
		for i := range cols {
			lo := rng.Float64()
			hi := lo + rng.Float64()
			cols[i] = view.Bucket{Min: lo, Max: hi, Sum: lo + hi, Count: 2}
		}
		a := FitAxis(false, cols)
		g := cell.New(r.W, r.H)
		Draw(g, r, Chart{To: 9, Axis: a, Layers: []Layer{{Columns: cols, Role: cell.Raw},
			{Columns: Smooth(0.9, nil, cols, nil), Role: cell.Centre}}})
		top, bottom := decode(g, p)
		for i, b := range cols {
			for _, want := range []int{a.Dot(b.Max, 4*p.H), a.Dot(b.Min, 4*p.H)} {
				c := g.At(p.X+i/2, p.Y+want/4)
				if c.Role == cell.Centre {
					continue
				}
				if c.Role != cell.Raw || uint8(c.R-0x2800)&braille[want%4][i%2] == 0 || top[i] > want ||
					bottom[i] < want {
					t.Fatalf("column %d: no dot of the raw trace at row %d", i, want)
				}
			}
		}
	})
}
