package tui

import (
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
)

// TestCandidatesAreShaded: candidates of one model, of which nothing lasts, are shaded by their values among all that
// are shown, and the line below says what the shades are.
func TestCandidatesAreShaded(t *testing.T) {
	m := &model{alg: &optim.Algorithm{Series: []optim.Series{{Name: view.Fitness}}}, shown: view.New()}
	ids := optim.IDs(4)
	m.shown.Apply(event.Record{Plan: &event.Plan{Epoch: 1, New: optim.Place(ids, []int{1}), Algorithm: "x"}})
	for r := uint64(1); r <= 40; r++ {
		x := make([]float64, 4)
		for i := range x {
			x[i] = -4/float64(r) - 0.1*float64((r*7+uint64(i)*3)%5)
		}
		m.shown.Apply(event.Record{Points: &event.Points{Round: r, Series: view.Fitness, Members: ids, Values: x}})
		m.shown.Apply(event.Record{Points: &event.Points{Round: r, Series: view.CentreLoss, Members: []engine.Member{view.Whole}, Values: []float64{1}}})
	}
	g := cell.New(60, 5)
	drawHeat(m, g, g.Rect())
	s := cell.Plainly(false).String(g)
	for _, shade := range "░▒▓█" {
		if n := strings.Count(s, string(shade)); n < 20 {
			t.Errorf("%c is drawn %d times:\n%s", shade, n, s)
		}
	}
	if _, note := heatTitle(m); !strings.Contains(note, "least") || !strings.Contains(s, "░ -0.") || !strings.Contains(s, " █") {
		t.Errorf("the note is %q, the map\n%s", note, s)
	}
}

// TestLineage: a population that breeds shows below its losses whose line each member is of, and how many founders are
// left.
func TestLineage(t *testing.T) {
	m := &model{alg: &optim.Algorithm{Series: []optim.Series{{Name: "loss"}}}, shown: view.New()}
	ids := optim.IDs(3)
	m.shown.Apply(event.Record{Plan: &event.Plan{Epoch: 1, New: optim.Place(ids, []int{1}), Algorithm: "ga"}})
	draw := func() string {
		g := cell.New(30, 12)
		drawHeat(m, g, cell.Rect{W: 30, H: 12})
		return cell.Plainly(false).String(g)
	}
	point := func(series string, round uint64, x ...float64) {
		m.shown.Apply(event.Record{Points: &event.Points{Round: round, Series: series, Members: []engine.Member{0, 1, 2}, Values: x}})
		m.shown.Apply(event.Record{Commit: &event.Commit{Epoch: 1, To: round, Rounds: 1, Progress: event.Progress{Rounds: round}}})
	}
	point("loss", 1, 1, 2, 3)
	if s := draw(); strings.Contains(s, "lineage") {
		t.Errorf("a population that does not breed has lines:\n%s", s)
	}
	for round, parents := range [][]float64{2: {1, 1, 2}, 3: {0, 2, 2}} {
		if parents != nil {
			point("loss", uint64(round), 1, 2, 3)
			point(view.Parent, uint64(round), parents...)
		}
	}
	s := draw()
	for _, want := range []string{"2 founders left", "bb", "bc", "cc"} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is missing:\n%s", want, s)
		}
	}
	was := optim.Place(ids, []int{1})
	m.shown.Apply(event.Record{Plan: &event.Plan{Epoch: 2, At: 3, Old: was, New: optim.Place(optim.IDs(2), []int{1}), OldAlg: "ga", Algorithm: "ga"}})
	if s := draw(); !strings.Contains(s, "2 founders left") || strings.Contains(s, "of 2 founders") {
		t.Errorf("of three founders two are left, whose members are two now:\n%s", s)
	}
}
