package chart

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"brood/tui/cell"
)

// TestLabelsOfAnAxisDiffer: no two places of an axis have one label, however close they are; labels up the side have
// six cells.
func TestLabelsOfAnAxisDiffer(t *testing.T) {
	differ := func(what string, labels []string) {
		t.Helper()
		seen := map[string]bool{}
		for _, l := range labels {
			if seen[l] {
				t.Errorf("%s: %q stands there twice, of %q", what, l, labels)
			}
			seen[l] = true
		}
	}
	for _, a := range []Axis{{1.0001, 1.0002, false}, {1.23456e6, 1.23466e6, false}, {0.99999, 1, false}, {1e9, 1e9 + 20, false},
		{12340, 12360, false}, {-3.00001, -3, false}, {1e-7, 1.0002e-7, false}, {0.1, 0.1003, true}, {Lo: 0, Hi: 1}} {
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
	// what counts something else along the foot, coarsely
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
