package chart

import (
	"math"
	"strings"
	"testing"

	"brood/runtime/view"
	"brood/tui/cell"
)

// TestRobustAxis checks that a divergence or a warm-up does not flatten the rest of a curve, and that outliers are
// marked.
func TestRobustAxis(t *testing.T) {
	curve := func(change func(i int, x float64) float64) []view.Bucket {
		x := make([]float64, 100)
		for i := range x {
			x[i] = change(i, 2+0.3*math.Sin(float64(i)))
		}
		return Of(x)
	}
	for name, c := range map[string]struct {
		log  bool
		cols []view.Bucket
		clip bool
	}{
		"divergence":      {false, curve(func(i int, x float64) float64 { return pick(i == 40, 1e6, x) }), true},
		"divergence, log": {true, curve(func(i int, x float64) float64 { return pick(i == 40, 1e6, x) }), true},
		"warm-up":         {false, curve(func(i int, x float64) float64 { return pick(i < 8, 60, x) }), true},
		"below":           {false, curve(func(i int, x float64) float64 { return pick(i == 40, -1e6, x) }), true},
		"nothing":         {false, curve(func(_ int, x float64) float64 { return x }), false},
		"a curve that falls": {true, curve(func(i int, _ float64) float64 { return 5 * math.Exp(-float64(i)/30) }),
			false},
		"one that falls, flat": {false, curve(func(i int, _ float64) float64 { return 5 * math.Exp(-float64(i)/30) }),
			false},
		"half of it elsewhere": {false, curve(func(i int, x float64) float64 { return pick(i < 50, 100, x) }), false},
		"constant":             {false, curve(func(int, float64) float64 { return 1 }), false},
		"none":                 {false, make([]view.Bucket, 100), false},
	} {
		a, full := Robust(c.log, nil, c.cols), FitAxis(c.log, c.cols)
		if got := a != full; got != c.clip {
			t.Errorf("%s: the axis is %+v, and %+v of everything", name, a, full)
		}
		if c.clip && (a.Lo > 1.71 || a.Hi < 2.29 || a.Hi-a.Lo > 10) {
			t.Errorf("%s: the axis is %+v", name, a)
		}
		g := cell.New(58, 10)
		Draw(g, g.Rect(), Chart{Layers: []Layer{{Columns: c.cols}}, To: 100, Axis: a, Hint: ", A shows all"})
		s := cell.Plainly(false).String(g)
		if marked := strings.ContainsAny(s, "▲▼"); marked != c.clip || marked && !strings.Contains(s, "A shows all") {
			t.Errorf("%s: outliers are marked %v:\n%s", name, marked, s)
		}
	}
}

func pick(is bool, a, b float64) float64 {
	if is {
		return a
	}
	return b
}

// TestRobustHoldsACurve checks that a held curve is included although its few values are far from a band; its own
// divergence is excluded.
func TestRobustHoldsACurve(t *testing.T) {
	band, centre := make([]view.Bucket, 200), make([]float64, 200)
	for i := range band {
		band[i] = Of([]float64{0.1 + 0.01*math.Sin(float64(i))})[0]
	}
	for _, log := range []bool{false, true} {
		for i := range centre {
			centre[i] = math.NaN()
		}
		for _, i := range []int{20, 60, 100, 140, 180} {
			centre[i] = 2 + float64(i)/1000
		}
		held := Of(centre)
		if a := Robust(log, nil, held, band); a.Hi >= 2 {
			t.Fatalf("nothing would be clipped: %+v", a)
		}
		if a := Robust(log, [][]view.Bucket{held}, band); a.Hi < 2.2 || a.Lo > 0.09 {
			t.Errorf("log %v: the axis is %+v", log, a)
		}
		for i := range centre {
			centre[i] = pick(i == 100, 1e6, 2+float64(i%7)/100)
		}
		if a := Robust(log, [][]view.Bucket{Of(centre)}, band); a.Hi < 2.06 || a.Hi > 10 {
			t.Errorf("log %v: with a divergence the axis is %+v", log, a)
		}
	}
}
