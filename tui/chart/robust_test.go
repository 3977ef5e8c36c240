package chart

import (
	"math"
	"strings"
	"testing"

	"brood/runtime/view"
	"brood/tui/cell"
)

// One divergence, or a warm-up, does not press the rest of a curve onto a line: the axis is of the rest, and what lies
// outside is marked.
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
		"divergence":           {false, curve(func(i int, x float64) float64 { return pick(i == 40, 1e6, x) }), true},
		"divergence, log":      {true, curve(func(i int, x float64) float64 { return pick(i == 40, 1e6, x) }), true},
		"warm-up":              {false, curve(func(i int, x float64) float64 { return pick(i < 8, 60, x) }), true},
		"below":                {false, curve(func(i int, x float64) float64 { return pick(i == 40, -1e6, x) }), true},
		"nothing":              {false, curve(func(_ int, x float64) float64 { return x }), false},
		"a curve that falls":   {true, curve(func(i int, _ float64) float64 { return 5 * math.Exp(-float64(i)/30) }), false},
		"one that falls, flat": {false, curve(func(i int, _ float64) float64 { return 5 * math.Exp(-float64(i)/30) }), false},
		"half of it elsewhere": {false, curve(func(i int, x float64) float64 { return pick(i < 50, 100, x) }), false},
		"constant":             {false, curve(func(int, float64) float64 { return 1 }), false},
		"none":                 {false, make([]view.Bucket, 100), false},
	} {
		a, full := Robust(c.log, c.cols), Fit(c.log, c.cols)
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
			t.Errorf("%s: what lies outside is marked %v:\n%s", name, marked, s)
		}
	}
}

func pick(is bool, a, b float64) float64 {
	if is {
		return a
	}
	return b
}
