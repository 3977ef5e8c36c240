package chart

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"brood/runtime/view"
	"brood/tui/cell"
)

// decode returns the topmost and lowest dot of each dot column of Braille cells; -1 if there is none.
func decode(g *cell.Grid, p cell.Rect) (top, bottom []int) {
	for x := range 2 * p.W {
		t, b := -1, -1
		for y := range 4 * p.H {
			c := g.At(p.X+x/2, p.Y+y/4).R
			if c >= 0x2800 && c <= 0x28ff && uint8(c-0x2800)&braille[y%4][x%2] != 0 {
				if t < 0 {
					t = y
				}
				b = y
			}
		}
		top, bottom = append(top, t), append(bottom, b)
	}
	return top, bottom
}

// valueAt returns the value at the middle of a dot row: the inverse of Dot within half a row.
func valueAt(a Axis, dot, n int) float64 {
	t := float64(n-1-dot) / float64(max(1, n-1))
	if a.Log {
		return a.Lo * math.Exp(t*math.Log(a.Hi/a.Lo))
	}
	return a.Lo + t*(a.Hi-a.Lo)
}

// TestColumnsDecodeToMinAndMax checks that a drawn curve decodes to the minimum and maximum of the data within a dot.
func TestColumnsDecodeToMinAndMax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
		log := rapid.Bool().Draw(t, "log")
		style := rapid.SampledFrom([]Style{Line, Thick, Fill}).Draw(t, "style")
		r := cell.Rect{X: 1, Y: 2, W: gutter + 4 + rng.IntN(40), H: 3 + rng.IntN(20)}
		p := Plot(r)
		cols := make([]view.Bucket, 2*p.W)
		level := 1.0
		for i := range cols {
			level *= math.Exp(0.1 * rng.NormFloat64())
			lo, hi := level*(1-0.5*rng.Float64()), level*(1+0.5*rng.Float64())
			cols[i] = view.Bucket{Min: lo, Max: hi, Sum: lo + hi, Count: 2}
		}
		a := FitAxis(log, cols)
		g := cell.New(r.W+3, r.H+4)
		Draw(g, r, Chart{Layers: []Layer{{Columns: cols, Style: style, Role: cell.Centre}}, From: 0, To: 100, Axis: a})
		top, bottom := decode(g, p)
		half := (a.Hi - a.Lo) / float64(4*p.H-1) / 2 * (1 + 1e-9)
		for i, c := range cols {
			hi, lo := valueAt(a, top[i], 4*p.H), valueAt(a, bottom[i], 4*p.H)
			if log {
				half = c.Max * (math.Pow(a.Hi/a.Lo, 0.5/float64(4*p.H-1)) - 1 + 1e-9)
			}
			// A line may reach further, to join its neighbour.
			if hi < c.Max-half || lo > c.Min+half {
				t.Fatalf("column %d shows %g..%g, holds %g..%g (half a dot is %g)", i, lo, hi, c.Min, c.Max, half)
			}
			if style == Thick && (bottom[i] == top[i] || top[i^1] != top[i] || bottom[i^1] != bottom[i]) {
				t.Fatalf("column %d of a thick line shows dots %d to %d, its neighbour %d to %d", i, top[i], bottom[i],
					top[i^1], bottom[i^1])
			}
			if style == Fill && (hi > c.Max+half || lo < c.Min-half) {
				t.Fatalf("column %d shows %g..%g, more than %g..%g", i, lo, hi, c.Min, c.Max)
			}
		}
	})
}

func TestGapsAreCrossed(t *testing.T) {
	g := cell.New(40, 10)
	r := cell.Rect{W: 40, H: 10}
	cols := make([]view.Bucket, 2*Plot(r).W)
	cols[0] = view.Bucket{Min: 0, Max: 0, Count: 1}
	cols[len(cols)-1] = view.Bucket{Min: 1, Max: 1, Sum: 1, Count: 1}
	for _, style := range []Style{Line, Thin, Fill} {
		g.Clear(g.Rect())
		Draw(g, r, Chart{Layers: []Layer{{Columns: cols, Style: style}}, To: 2, Axis: Axis{0, 1, false}})
		top, _ := decode(g, Plot(r))
		for i := range top {
			if top[i] < 0 || i > 0 && (top[i] > top[i-1] || top[i-1]-top[i] > 3) {
				t.Fatalf("style %d: column %d is at %d after %d: the line is broken", style, i, top[i],
					top[max(0, i-1)])
			}
		}
	}
}

func TestLaterLayersTakeTheirCells(t *testing.T) {
	g := cell.New(30, 5)
	r := g.Rect()
	n := 2 * Plot(r).W
	band, line := make([]view.Bucket, n), make([]view.Bucket, n)
	for i := range n {
		band[i] = view.Bucket{Min: 0, Max: 1, Count: 2}
		line[i] = view.Bucket{Min: 0.5, Max: 0.5, Sum: 0.5, Count: 1}
	}
	Draw(g, r, Chart{Layers: []Layer{{Columns: band, Style: Fill, Role: cell.Band}, {Columns: line, Role: cell.Centre}},
		To: 9, Axis: Axis{0, 1, false}})
	found := 0
	for y := range 5 {
		c := g.At(20, y)
		if c.Role == cell.Centre {
			found++
			if bits := c.R - 0x2800; bits&^0xff != 0 || bits == 0xff {
				t.Errorf("the line's cell is %q: the band bleeds into it", c.R)
			}
		}
	}
	if found != 1 {
		t.Errorf("the line takes %d cells of its column", found)
	}
}

func TestAxes(t *testing.T) {
	for _, c := range []struct {
		log    bool
		lo, hi float64
		want   Axis
	}{
		{false, 0.131, 2.4, Axis{0, 2.5, false}},
		{false, -0.2, -0.1, Axis{-0.2, -0.1, false}},
		{true, 0.131, 2.4, Axis{0.125, 3, true}},
		{true, -1, 2, Axis{-1, 2, false}},
		{false, math.Inf(1), math.Inf(-1), Axis{0, 1, false}},
	} {
		got := Span(c.log, c.lo, c.hi)
		if math.Abs(got.Lo-c.want.Lo) > 1e-9 || math.Abs(got.Hi-c.want.Hi) > 1e-9 || got.Log != c.want.Log {
			t.Errorf("axis of %g..%g (log %v) is %+v, want %+v", c.lo, c.hi, c.log, got, c.want)
		}
	}
	for _, more := range []float64{1e-9, 3e-10, 1.2e-10, 1e-5} { // few floating-point numbers are between them
		if a := Span(false, 1e6, 1e6+more); len(a.ticks(12)) > 60 {
			t.Errorf("%d ticks on %+v", len(a.ticks(12)), a)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Float64Range(-1e6, 1e6).Draw(t, "lo")
		hi := lo + rapid.OneOf(rapid.Float64Range(0, 1e6), rapid.Float64Range(0, 1e-3)).Draw(t, "more")
		a := Span(rapid.Bool().Draw(t, "log"), lo, hi)
		if slack := 1e-8*(math.Abs(lo)+math.Abs(hi)) + 1e-12; !(a.Lo <= lo+slack && a.Hi >= hi-slack && a.Lo < a.Hi) {
			t.Fatalf("axis %+v does not hold %g..%g", a, lo, hi)
		}
		if ticks := a.ticks(12); len(ticks) > 60 {
			t.Fatalf("%d ticks on %+v", len(ticks), a)
		}
	})
}

func TestLabels(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.5: "0.5", 1e-5: "1e-5", 2.5e7: "25M", 12000: "12k", -3: "-3",
		0.125: "0.125"} {
		if got := Label(x); got != want {
			t.Errorf("label of %g is %q, want %q", x, got, want)
		}
	}
}

func TestMarksAndASCII(t *testing.T) {
	g := cell.New(60, 8)
	cols := Of([]float64{1, 2, 3})
	Draw(g, g.Rect(), Chart{Layers: []Layer{{Columns: cols, Glyph: '*'}}, From: 0, To: 100, Axis: FitAxis(false, cols),
		ASCII: true,
		Marks: []Mark{{Round: 50, Text: "ell 10"}, {Round: 52, Text: "eta 1"}, {Round: 200, Text: "outside"}}})
	s := cell.Plainly(true).String(g)
	for _, r := range s {
		if r > 0x7e {
			t.Fatalf("%q is not ASCII", r)
		}
	}
	if !strings.Contains(s, "ell 10| |eta 1") || strings.Contains(s, "outside") || !strings.Contains(s, "*") {
		t.Errorf("marks overlap or are lost:\n%s", s)
	}
	if !strings.HasSuffix(strings.TrimRight(s, " "), "99") {
		t.Errorf("the last round is missing:\n%s", s)
	}
}

func TestSparksAndBars(t *testing.T) {
	g := cell.New(10, 2)
	Spark(g, 0, 0, Of([]float64{0, 1, math.NaN(), 0.5}), nil, Axis{0, 1, false}, 0)
	Bar(g, 0, 1, 4, 0.5, 0)
	Bar(g, 5, 1, 4, 0.0001, 0)
	want := []string{"▁██▄      ", "██   ▏    "}
	for i, l := range strings.Split(cell.Plainly(false).String(g), "\n") {
		if l != want[i] && !(i == 0 && l == "▁██▅      ") {
			t.Errorf("line %d is %q, want %q", i, l, want[i])
		}
	}
}

func TestTinyAreas(t *testing.T) {
	for w := range 20 {
		for h := range 5 {
			g := cell.New(w, h)
			cols := Of(make([]float64, 40))
			Draw(g, g.Rect(), Chart{Layers: []Layer{{Columns: cols}}, From: 5, To: 5, Axis: FitAxis(true, cols)})
		}
	}
}

// BenchmarkDraw draws a band, two lines and marks at 200x50.
func BenchmarkDraw(b *testing.B) {
	g := cell.New(200, 50)
	n := 2 * Plot(g.Rect()).W
	cols := make([]view.Bucket, n)
	for i := range cols {
		x := math.Sin(float64(i) / 9)
		cols[i] = view.Bucket{Min: x - 0.3, Max: x + 0.3, Sum: 2 * x, Count: 2}
	}
	a := FitAxis(false, cols)
	for b.Loop() {
		Draw(g, g.Rect(), Chart{Layers: []Layer{{Columns: cols, Style: Fill}, {Columns: cols, Style: Thin},
			{Columns: cols}}, To: 1000, Axis: a})
	}
}

// TestLogOfNegatives checks that a logarithmic axis without positive values is linear.
func TestLogOfNegatives(t *testing.T) {
	if a := FitAxis(true, Of([]float64{-2, -1.5, -1})); a.Log || a.Lo > -2 || a.Hi < -1 || a.Hi > 0 {
		t.Errorf("the axis of -2..-1 is %+v", a)
	}
}

// TestTicksWithinADecade checks that an axis has enough labels even if it spans little of a decade.
func TestTicksWithinADecade(t *testing.T) {
	for _, c := range [][2]float64{{2.2, 2.5}, {0.11, 0.19}, {6, 9}, {1, 3}, {0.5, 40}} {
		if got := Span(true, c[0], c[1]).ticks(16); len(got) < 3 || len(got) > 12 {
			t.Errorf("the logarithmic axis of %v has the ticks %v", c, got)
		}
	}
}

// TestNewestMarkIsNamed checks that the newest mark has its text, also above the number of the last round.
func TestNewestMarkIsNamed(t *testing.T) {
	for _, round := range []uint64{90, 94, 97, 99} {
		g := cell.New(70, 8)
		cols := Of([]float64{1, 2, 3})
		Draw(g, g.Rect(), Chart{Layers: []Layer{{Columns: cols}}, To: 100, Axis: FitAxis(false, cols),
			Marks: []Mark{{Round: 80, Text: "eta 0.1→0.01"}, {Round: round, Text: "ell 25→10"}}})
		if s := cell.Plainly(false).String(g); !strings.Contains(s, "ell 25→10") || !strings.Contains(s, "99") {
			t.Errorf("a mark at round %d of 99 is not named:\n%s", round, s)
		}
	}
}

// TestNamesOfCurves checks that each visible curve has its name near its right end, also where another curve covers
// that end, and that a covered curve has none.
func TestNamesOfCurves(t *testing.T) {
	line := func(name rune, values ...float64) Layer { return Layer{Columns: Of(values), Style: Thin, Name: name} }
	for _, c := range []struct {
		want   string
		layers []Layer
	}{
		{"   a/   b", []Layer{line('a', 9, 9, 9, 9, 9, 9, 9, 9), line('b', 0, 0, 0, 0, 0, 0, 0, 0)}},
		{"    / a b", []Layer{line('a', 0, 0, 0, 0, 0, 0, 0, 0), line('b', math.NaN(), math.NaN(), math.NaN(),
			math.NaN(), 0, 0, 0, 0)}},
		{"    /   b", []Layer{line('a', 0, 0, 0, 0, 0, 0, 0, 0), line('b', 0, 0, 0, 0, 0, 0, 0, 0)}},
	} {
		g := cell.New(4, 2)
		Curve(g, g.Rect(), Axis{0, 9, false}, false, c.layers...)
		got := strings.Map(func(r rune) rune {
			switch {
			case r >= 0x2800:
				return ' '
			case r == '\n':
				return '/'
			}
			return r
		}, cell.Plainly(false).String(g))
		if got != c.want {
			t.Errorf("names are %q, want %q", got, c.want)
		}
	}
}
