package tui

import (
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/panel/live"
)

// TestCandidatesHaveNoMap checks that candidates of one model, which have no state between rounds, have the
// distribution of their fitness instead of a map, at every size.
func TestCandidatesHaveNoMap(t *testing.T) {
	for _, spread := range []bool{false, true} {
		var rs []event.Record
		for _, r := range sourcetest.Run(6, 100) {
			if r.Points == nil || r.Points.Series != view.Spread || spread {
				rs = append(rs, r)
			}
		}
		for _, size := range [][2]int{{80, 24}, {120, 36}, {200, 50}, {300, 80}} {
			d := open(t, size[0], size[1], rs, nil)
			if d.HasPanel(panel.Population) != spread {
				t.Errorf("%v, spread %v: Live has %v", size, spread, panel.PanelIDs(d.allPanels()))
			}
			d.press("4")
			if d.HasPanel(panel.Population) != spread || !d.HasPanel(panel.Distribution) || !d.HasPanel(panel.Ranking) {
				t.Errorf("%v, spread %v: Population has %v", size, spread, panel.PanelIDs(d.allPanels()))
			}
			d.shows("distribution")
		}
	}
}

// TestLineage checks that a population that breeds shows the founder of each member and the number of founders left.
func TestLineage(t *testing.T) {
	m := &panel.Host{Alg: &optim.Algorithm{Series: []optim.Series{{Name: "loss"}}}, Shown: view.New()}
	ids := collective.IDs(3)
	m.Shown.Apply(event.Record{Plan: &event.Plan{Epoch: 1, New: collective.Place(ids, []int{1}), Algorithm: "ga"}})
	draw := func() string {
		g := cell.New(30, 12)
		live.DrawHeat(m, g, cell.Rect{W: 30, H: 12})
		return cell.Plainly(false).String(g)
	}
	point := func(series string, round uint64, x ...float64) {
		m.Shown.Apply(event.Record{Points: &event.Points{Round: round, Series: series,
			Members: []engine.Member{0, 1, 2}, Values: x}})
		m.Shown.Apply(event.Record{Commit: &event.Commit{Epoch: 1, To: round, Rounds: 1,
			Progress: event.Progress{Rounds: round}}})
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
	was := collective.Place(ids, []int{1})
	m.Shown.Apply(event.Record{Plan: &event.Plan{Epoch: 2, At: 3, Old: was,
		New: collective.Place(collective.IDs(2), []int{1}), OldAlg: "ga", Algorithm: "ga"}})
	if s := draw(); !strings.Contains(s, "2 founders left") || strings.Contains(s, "of 2 founders") {
		t.Errorf("of three founders two are left, whose members are two now:\n%s", s)
	}
}
