package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/panel/live"
)

// TestPopulationScreen checks that t cycles through the series of members without lineages, that keys and clicks move
// through the ranking, and its order: highest fitness first, lowest loss first.
func TestPopulationScreen(t *testing.T) {
	rs := sourcetest.Run(6, 100)
	at := rs[len(rs)-1].At
	rs = append(rs, event.Record{At: at, Points: &event.Points{Round: 100, Series: view.Parent,
		Members: []engine.Member{0, 1}, Values: []float64{1, 1}}})
	d := open(t, 120, 40, rs, nil)
	d.press("4")
	d.shows("distribution  training loss", "ranking  training loss", "╌╌ m0")
	if s := d.TraitSeries(); s.Name != "loss" {
		t.Fatalf("members are shown by %s", s.Name)
	}
	first := d.Ranking(d.TraitSeries())[0].Member
	d.press("g")
	if d.Member != first {
		t.Errorf("g leads to m%d, want m%d, which has the lowest loss", d.Member, first)
	}
	d.press("down")
	if want := d.Ranking(d.TraitSeries())[1].Member; d.Member != want {
		t.Errorf("down leads to m%d, want m%d", d.Member, want)
	}
	seen := map[string]bool{}
	for range 2 * len(d.Traits()) {
		d.press("t")
		seen[d.TraitSeries().Name] = true
		l := d.Ranking(d.TraitSeries())
		if up := l[0].X >= l[len(l)-1].X; up != (d.TraitSeries().Name == view.Fitness) {
			t.Errorf("%s is ranked from %g to %g", d.TraitSeries().Name, l[0].X, l[len(l)-1].X)
		}
	}
	if !seen["loss"] || !seen[view.Fitness] || seen[view.Parent] || seen[view.Founder] {
		t.Errorf("t goes through %v", seen)
	}
	for _, p := range d.Placed {
		if p.Panel == panel.Ranking {
			d.Update(tea.MouseClickMsg{X: p.Area.X + 4, Y: p.Area.Y + 4}) // border, heading, two places
		}
	}
	if want := d.Ranking(d.TraitSeries())[2].Member; d.Member != want {
		t.Errorf("a click on the third place leads to m%d, want m%d", d.Member, want)
	}
	now := d.Ranking(d.TraitSeries())[0].X
	d.press("right", "right")
	d.shows("at round ", "│")
	if then := d.Ranking(d.TraitSeries())[0].X; then == now {
		t.Errorf("at round %d the first has %g, as it has now", d.Cursor.Round, then)
	}
	d.press("5").shows("at round ")
	d.press("esc").hides("at round ")
	d.resetSession()
	if d.Trait != "" {
		t.Errorf("another session is shown by %s of the one before", d.Trait)
	}
}

// TestBestMember checks that b focuses the first member of the shown ranking and names the series.
func TestBestMember(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
	d.press("4", "b")
	d.shows("ranking  training loss", "m1 is first by training loss, lowest first")
	firsts := map[engine.Member]bool{}
	for range d.Traits() {
		d.press("G", "b")
		want := d.Ranking(d.TraitSeries())[0].Member
		if d.Member != want {
			t.Errorf("by %s b leads to m%d, want m%d", d.TraitSeries().Name, d.Member, want)
		}
		firsts[want] = true
		d.press("t")
	}
	if len(firsts) < 2 {
		t.Error("every ranking has the same member first")
	}
	none := open(t, 120, 40, sourcetest.Run(6, 100)[:2], nil)
	none.press("4", "b")
	none.shows("no series of members is measured yet")
}

// TestRankingOfNonFiniteValues checks that a diverged member is last in either order and has no bar.
func TestRankingOfNonFiniteValues(t *testing.T) {
	rs := sourcetest.Run(3, 50)
	nan := 0.0
	nan /= nan
	rs = append(rs, event.Record{At: rs[len(rs)-1].At,
		Points: &event.Points{Round: 50, Series: "loss", Members: []engine.Member{0}, Values: []float64{nan}}})
	d := open(t, 120, 40, rs, nil)
	l := d.press("4").Ranking(d.TraitSeries())
	if l[len(l)-1].Member != 0 || l[0].X > l[1].X {
		t.Errorf("ranked %v", l)
	}
	for line := range strings.SplitSeq(d.screenText(), "\n") {
		if _, row, ok := strings.Cut(line, " 3 m0"); ok &&
			(!strings.Contains(row, "nan") || strings.Contains(row, "█")) {
			t.Errorf("the member that diverged is shown as %q", row)
		}
	}
	if live.Deviation(l[:1]) == live.Deviation(l[:1]) ||
		live.Deviation([]view.Value{{X: 1}, {X: 3}, {X: nan}}) != 1.4142135623730951 {
		t.Errorf("deviations are %g and %g", live.Deviation(l[:1]), live.Deviation([]view.Value{{X: 1}, {X: 3}}))
	}
}
