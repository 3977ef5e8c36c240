package chart

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"brood/runtime/view"
	"brood/tui/cell"
)

// TestLabelsOfAnAxisDiffer checks that different ticks have different labels, and that y labels have at most six cells.
func TestLabelsOfAnAxisDiffer(t *testing.T) {
	differ := func(what string, labels []string) {
		t.Helper()
		seen := map[string]bool{}
		for _, l := range labels {
			if seen[l] {
				t.Errorf("%s: %q is there twice, of %q", what, l, labels)
			}
			seen[l] = true
		}
	}
	for _, a := range []Axis{{1.0001, 1.0002, false}, {1.23456e6, 1.23466e6, false}, {0.99999, 1, false},
		{1e9, 1e9 + 20, false},
		{12340, 12360, false}, {-3.00001, -3, false}, {1e-7, 1.0002e-7, false}, {0.1, 0.1003, true}, {Lo: 0,
			Hi: 1}, {0.0012, 0.0013, false}, {0.001, 0.002, true}, {-0.0124, -0.012, false}, {1.1e-4, 1.4e-4, false},
		{1.21e-6, 1.24e-6, false}, {3e-9, 3.5e-9, true}} {
		for _, h := range []int{3, 8, 20} {
			g := cell.New(40, h)
			Draw(g, cell.Rect{W: 40, H: h}, Chart{To: 10, Axis: a})
			var labels []string
			for _, line := range strings.Split(cell.Plainly(false).String(g), "\n") {
				if l, _, ok := strings.Cut(line, "┤"); ok && strings.TrimSpace(l) != "" {
					if labels = append(labels, strings.TrimSpace(l)); len([]rune(strings.TrimSpace(l))) > 6 {
						t.Errorf("%+v: %q is too long", a, l)
					}
				}
			}
			differ(fmt.Sprintf("%+v in %d rows", a, h), labels)
		}
	}
	// other units on the x axis, with a coarse step
	coarse := func(n, step uint64) string {
		if step < 1000 {
			return fmt.Sprintf("%.3fk", float64(n)/1e3)
		}
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	for _, to := range []uint64{1_234_567, 1_200_900, 4_000_000} {
		g := cell.New(100, 6)
		Draw(g, cell.Rect{W: 100, H: 6}, Chart{From: 1_200_000, To: to, Label: coarse})
		foot := strings.Split(cell.Plainly(false).String(g), "\n")[5]
		labels := regexp.MustCompile(`[0-9.]+[kM]`).FindAllString(foot, -1)
		if len(labels) < 2 && to > 1_300_000 {
			t.Errorf("to %d the foot has %q", to, foot)
		}
		differ(foot, labels)
	}
}

// TestLabelsKeepDigits checks that a label has as many digits as fit into six cells, and parses to its value.
func TestLabelsKeepDigits(t *testing.T) {
	for v, want := range map[float64]string{0.0012: "0.0012", 0.00123: "123e-5", 1.2e-4: "1.2e-4", 1.25e-4: "125e-6",
		-1.25e-4: "-13e-5", -1.2e-4: "-12e-5",
		0.5: "0.5", -0.25: "-0.25", 0.1234: "0.1234", 5e-5: "5e-5", 1e-300: "1e-300", 2.5: "2.5", 1500: "1500",
		12500: "12.5k", 2.5e6: "2.5M", 1e9: "1e9", 1.5e9: "1.5e9", 999.9e6: "9999e5", 999.9e3: "1M", 5e-4: "5e-4",
		1.234: "1.234", 9999.9: "10000", 0: "0", -1e-300: "-1e-300"} {
		if got := Label(v); got != want {
			t.Errorf("%g is written %q, want %q", v, got, want)
		}
	}
}

// TestPointsAlignWithTicks checks that the columns of a round start in the cell of its label and its mark.
func TestPointsAlignWithTicks(t *testing.T) {
	for _, rounds := range []uint64{1, 2, 4, 7, 12, 60, 200} {
		g := cell.New(110, 8)
		p := Plot(g.Rect())
		c := Chart{From: 1, To: rounds + 1, Axis: Axis{0, 1, false}}
		edges := view.Even(c.From, c.To, 2*p.W)
		for r := c.From; r < c.To; r++ {
			at := 0
			for edges[at+1] <= r {
				at++
			}
			if x := c.column(p, r); x != p.X+at/2 {
				t.Fatalf("of %d rounds, %d is drawn in cell %d and marked in %d", rounds, r, p.X+at/2, x)
			}
		}
		Draw(g, g.Rect(), c)
		foot := strings.Split(cell.Plainly(false).String(g), "\n")[7]
		for _, word := range strings.Fields(foot) {
			r, err := strconv.ParseUint(word, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			x, from := c.column(p, r), strings.Index(" "+foot+" ", " "+word+" ")
			if x < from || x >= from+len(word) {
				t.Errorf("of %d rounds the number %d is at cell %d, its point at %d: %q", rounds, r, from, x, foot)
			}
		}
	}
}
