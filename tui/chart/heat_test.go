package chart

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"brood/runtime/view"
	"brood/tui/cell"
)

// heat draws the values of f, member by column, and returns the shades row by row.
func heat(members, cols int, f func(i, c int) float64) []string {
	rows := make([][]view.Bucket, members)
	for i := range rows {
		x := make([]float64, cols)
		for c := range x {
			x[c] = f(i, c)
		}
		rows[i] = Of(x)
	}
	g := cell.New(cols, members)
	DrawHeat(g, 0, 0, rows)
	return strings.Split(cell.Plainly(false).String(g), "\n")
}

// but counts the cells that do not have the shade that most cells should have.
func but(shade string, rows []string) (n int) {
	for _, r := range rows {
		n += len([]rune(r)) - strings.Count(r, shade)
	}
	return n
}

func TestHeatShowsLastingDifferences(t *testing.T) {
	const cols = 60
	rng := rand.New(rand.NewPCG(1, 1))
	falls := func(c int) float64 { return 2*math.Exp(-float64(c)/10) + 0.1 }

	for _, scale := range []float64{1, -1, 1e-6} { // fitness is negative
		rows := heat(8, cols, func(i, c int) float64 { return scale * falls(c) * (1 + 0.001*float64(i)) })
		if n := but("▒", rows); n > 0 {
			t.Errorf("scale %g: nearly equal members differ in %d cells:\n%s", scale, n, strings.Join(rows, "\n"))
		}
	}
	for _, members := range []int{2, 4, 16} {
		rows := heat(members, cols, func(i, c int) float64 { return falls(c) * math.Exp(0.5*rng.NormFloat64()) })
		if n := but("▒", rows); n > members*cols/20 {
			t.Errorf("%d members that differ by chance alone differ in %d of %d cells:\n%s", members, n, members*cols,
				strings.Join(rows, "\n"))
		}
		rows = heat(members, cols, func(i, c int) float64 {
			x := falls(c) * math.Exp(0.1*rng.NormFloat64())
			if i == 0 {
				x *= 3
			}
			return x
		})
		if n := strings.Count(rows[0], "▓") + strings.Count(rows[0], "█"); n < cols*9/10 {
			t.Errorf("of %d members the one that stays above is so in %d of %d cells:\n%s", members, n, cols,
				strings.Join(rows, "\n"))
		}
	}
}

// TestHeatOfOneColumn checks the steps around the median for values far apart.
func TestHeatOfOneColumn(t *testing.T) {
	if s := strings.Join(heat(5, 1, func(i, _ int) float64 { return float64(i) }), ""); s != "░░▒▓█" {
		t.Errorf("0 to 4 are %q", s)
	}
	if s := strings.Join(heat(3, 1, func(i, _ int) float64 { return math.Pow(10, float64(6*i)) }), ""); s != "▒▒█" {
		t.Errorf("one far above the others: %q", s)
	}
	if s := strings.Join(heat(3, 2, func(int, int) float64 { return 1.5e308 }), ""); s != "▒▒▒▒▒▒" {
		t.Errorf("whose sum is too large are %q", s)
	}
	if s := strings.Join(heat(3, 1, func(int, int) float64 { return 0 }), ""); s != "▒▒▒" {
		t.Errorf("zeros are %q", s)
	}
}

// TestAllEqual checks AllEqual for a map of one value and for others.
func TestAllEqual(t *testing.T) {
	rows := func(f func(i, c int) float64) (out [][]view.Bucket) {
		for i := range 3 {
			out = append(out, Of([]float64{f(i, 0), f(i, 1), math.NaN(), f(i, 3)}))
		}
		return out
	}
	if x, ok := AllEqual(rows(func(int, int) float64 { return 0.25 })); !ok || x != 0.25 {
		t.Errorf("an even map has %g, %v", x, ok)
	}
	for name, f := range map[string]func(i, c int) float64{
		"one place": func(i, c int) float64 { return float64(i * c / 6) },
		"rounds":    func(_, c int) float64 { return float64(c) },
		"nothing":   func(int, int) float64 { return math.NaN() },
	} {
		if x, ok := AllEqual(rows(f)); ok {
			t.Errorf("%s: it is even at %g", name, x)
		}
	}
}
