package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

func TestStagedAppliedEffective(t *testing.T) {
	rs := sourcetest.Run(6, 400)
	d := open(t, 120, 40, rs, nil)
	d.press("k", "l", "l", "j", "l", "j", "enter").write("*0.5").press("enter")
	d.shows("6 → 8*", "0.1 → 0.125*", "10 → 5*", "3 staged")
	if len(d.sent) != 0 {
		t.Fatalf("turning sent %v", d.sent)
	}
	d.press("a")
	c := d.sent[0]
	if len(d.sent) != 1 || c.Members != 8 || !slices.Equal(c.Set,
		[]event.Setting{{Knob: "eta", Expr: "0.125"}, {Knob: "ell", Expr: "5"}}) || c.By != "ann" || c.ID == 0 {
		t.Fatalf("sent %+v, want one transaction", d.sent)
	}
	d.shows("accepted, from round 403")
	d.hides("0.125*", "5*")
	d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: []event.Record{{At: 1e18 + 41e9,
		Edit: &event.Edit{At: 402, Algorithm: "sample", Knob: "eta", Expr: "0.125", By: "ann"}}}}})
	d.shows("→ 0.125 @403")
	d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: []event.Record{{At: 1e18 + 41e9,
		Commit: &event.Commit{To: 404, Rounds: 4, Progress: event.Progress{Rounds: 404}}}}}})
	d.press("k")
	d.shows("η              0.125", "in effect since round 403: eta =")
}

func TestRejectionKeepsStagedChanges(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.say1 = func(c event.Command) (event.Receipt, error) {
		return event.Receipt{ID: c.ID, Reason: "eta must be below 1"}, nil
	}
	d.press("k", "j", "L", "a")
	d.shows("rejected: eta must be below 1", "0.1 → 1*")
	d.say1 = func(event.Command) (event.Receipt, error) { return event.Receipt{}, errors.New("the pipe is broken") }
	d.press("a")
	d.shows("not sent: the pipe is broken", "0.1 → 1*")
	d.press("u")
	d.hides("1*")
}

func TestTypingChecksBounds(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.press("k", "j", "j", "enter").write("0").press("enter")
	d.shows("out of bounds")
	if d.rail.Typing == nil || len(d.rail.Staged) != 0 {
		t.Error("a bad value is staged, or what was typed is lost")
	}
	d.press("backspace").write("linear:5..50@800").press("enter")
	if e, _ := d.rail.StagedExpr("ell"); e != "linear:5..50@800" {
		t.Errorf("staged %q", e)
	}
}

func TestStepsAreRoundAndBounded(t *testing.T) {
	a := sourcetest.Algorithm()
	eta, ell, alpha, variant := a.Knobs[0], a.Knobs[1], a.Knobs[3], a.Knobs[4]
	for _, c := range []struct {
		knob string
		from float64
		up   bool
		want float64
	}{
		{"eta", 0.02, true, 0.025}, {"eta", 0.1, false, 0.08}, {"eta", 0.03, true, 0.032}, {"eta", 100, true,
			100}, {"eta", 0, true, 0.001}, {"eta", 1e-9, false, 0},
		{"ell", 1, false, 1}, {"ell", 3, true, 4}, {"ell", 25, true, 32}, {"ell", 13, false, 10}, {"ell", 12, true, 13},
		{"ell", 10000, true, 10000},
		{"alpha", 0.75, true, 0.76}, {"alpha", 1, true, 1}, {"alpha", 0, false, 0},
		{"variant", 1, true, 1}, {"variant", 1, false, 0},
	} {
		k := eta
		switch c.knob {
		case "ell":
			k = ell
		case "alpha":
			k = alpha
		case "variant":
			k = variant
		}
		if got := panel.NextValue(k, c.from, c.up); got != c.want {
			t.Errorf("%s: from %g up %v is %g, want %g", c.knob, c.from, c.up, got, c.want)
		}
	}
	x := 0.02
	for range 10 {
		x = panel.NextValue(eta, x, true)
	}
	if x != 0.2 {
		t.Errorf("ten steps from 0.02 lead to %g, want a decade", x)
	}
}

// TestEscReturnsFromTheRail checks that k opens the rail at every size and on every screen with charts, and that esc
// returns to the panel that had the focus, expanded as it was, with its cursor.
func TestEscReturnsFromTheRail(t *testing.T) {
	for _, size := range [][2]int{{60, 12}, {80, 24}, {120, 36}, {200, 50}} {
		for _, keys := range []string{"", "tab", "e", "tab tab", "tab tab e", "left left", "7"} {
			d := open(t, size[0], size[1], sourcetest.Run(6, 400), nil)
			d.press(strings.Fields(keys)...)
			focus, expanded, cursor := d.Focus, d.Expanded, d.Cursor
			if focus == panel.Knobs { // where they have a place, tab leads to them too
				continue
			}
			d.press("k", "j", "j")
			d.shows("▸ ℓ")
			if d.press("esc"); d.railOpen || d.Focus != focus || d.Expanded != expanded || d.Cursor != cursor {
				t.Errorf("%v %q: esc leaves the focus on %s, expanded %v, cursor %+v", size, keys, d.Focus, d.Expanded,
					d.Cursor)
			}
		}
	}
}

// TestStagedScheduleIsShown checks that a staged schedule is drawn and written in full before it is applied, and
// rejected if it has ended.
func TestStagedScheduleIsShown(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
		d := open(t, size[0], size[1], sourcetest.Run(6, 400), nil)
		d.press("k", "j", "enter").write("cosine:0.1..0.001@200").press("enter")
		if a := d.rail.Answer; !a.Bad || !strings.Contains(a.Text, "has ended by round 401: write @+200") ||
			len(d.rail.Staged) != 0 {
			t.Errorf("a schedule that is over is staged: %+v, %v", a, d.rail.Staged)
		}
		d.press("esc")
		const expr = "piecewise:+0=0.1,+100=0.02,+200=0.01,+300=0.005,+400=0.001"
		d.press("enter").write(expr).press("enter")
		d.shows("1 staged   a apply")
		for _, p := range d.Placed {
			if p.Panel == panel.Knobs {
				d.shows(textfmt.Wrap(expr, p.Area.Inset().W-2)...)
			}
		}
		d.press("3")
		d.shows("piecewise:+0=0.1")
	}
	d := open(t, 200, 50, sourcetest.Run(6, 400), nil)
	d.press("3", "tab", "j")
	spark := func() string {
		g := d.paint()
		for y := range g.H {
			line := strings.Split(d.theme.String(g), "\n")[y]
			if strings.Contains(line, "eta") {
				return line
			}
		}
		return ""
	}
	before := spark()
	d.press("enter").write("linear:0.1..0.001@+200").press("enter")
	if after := spark(); before == after {
		t.Errorf("the row of eta does not change")
	}
}

func TestFilterOfKnobs(t *testing.T) {
	for _, c := range []struct {
		focus      panel.ID
		keys, text string
	}{{panel.Knobs, "k", "average"}, {panel.Schedules, "3", "average"}} {
		d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
		d.press(c.keys, "j", "j", "/").write("ag").press("enter")
		if d.Focus != c.focus || d.rail.SelectedKnob(d.model.Host).Name != "alpha" {
			t.Errorf("%s: the filter leaves %q chosen", d.Focus, d.rail.SelectedKnob(d.model.Host).Name)
		}
		d.shows("/ag", "alpha")
		d.hides("variant")
		d.press("j", "l")
		if e, ok := d.rail.StagedExpr("alpha"); !ok || e != "0.76" {
			t.Errorf("%s: turning the only knob stages %v", c.focus, d.rail.Staged)
		}
		d.press("/").write("?").press("enter")
		d.shows(`no knob matches "ag?"`)
		for _, key := range []string{"j", "k", "l", "h", "enter", "L"} {
			d.Toast = panel.Toast{}
			if d.press(key); d.Toast.Text == "" || d.rail.Typing != nil || len(d.rail.Staged) != 1 {
				t.Errorf("%s: %s on an empty list says %q and stages %v", c.focus, key, d.Toast.Text, d.rail.Staged)
			}
		}
		d.press(":").write("set eta 0.2").press("enter")
		if len(d.sent) != 1 || d.sent[0].Set[0].Expr != "0.2" {
			t.Errorf("the command line does not find a knob that is filtered out: %v", d.sent)
		}
		d.press("esc", "esc")
		d.shows("variant")
	}
}

// TestHorizonOfARunThatEnded checks that schedules of an ended run are drawn over its rounds.
func TestHorizonOfARunThatEnded(t *testing.T) {
	rs := sourcetest.Run(3, 400)
	rs[0].Config.Limit = event.Limit{}
	d := open(t, 120, 40, rs, nil)
	if _, hi := d.rail.Horizon(d.model.Host); hi != 800 {
		t.Errorf("without a limit, schedules of a run at round 400 are drawn up to %d", hi)
	}
	d.Live.Apply(event.Record{State: &event.State{Phase: event.Finished, Round: 400}})
	if _, hi := d.rail.Horizon(d.model.Host); hi != 400 {
		t.Errorf("schedules of a run that ended after round 400 are drawn up to %d", hi)
	}
}

// TestKnobsAreShownByTheirLabels checks that knobs are shown by their labels and typed in ASCII.
func TestKnobsAreShownByTheirLabels(t *testing.T) {
	long := sourcetest.Algorithm()
	long.Knobs = append(long.Knobs, optim.Knob{Name: "period", Label: "evolution frequency",
		Title: "epochs between evolutions", Unit: "epochs", Doc: "larger is rarer", Max: 1000, Default: 0.25})
	for _, keys := range []string{"k", "3"} {
		for _, w := range []int{80, 120, 200} {
			d := open(t, w, 40, sourcetest.Run(6, 400),
				func(o *panel.Options) { o.Algorithms = []*optim.Algorithm{long} })
			d.press(keys, "j", "j")
			d.shows("population size", "▸ ℓ", "  γ", "  η", "evolution frequency", "ell: inner steps")
			d.hides("  gamma", "  eta ", "  period")
			d.press(":").write("set ell=7").press("enter")
			if n := len(d.sent); n != 1 || d.sent[0].Set[0] != (event.Setting{Knob: "ell", Expr: "7"}) {
				t.Errorf("%d columns: sent %+v", w, d.sent)
			}
		}
	}
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.shows("ℓ 10") // on the axis of a chart
	d.press("3")
	d.shows("103  ℓ  10  ann")
	d = open(t, 120, 40, sourcetest.Run(6, 400), func(o *panel.Options) { o.ASCII = true })
	d.press("3", "j", "j")
	d.shows("ell   ", "gamma  ", "population size", "inner steps")
	d.hides("ℓ", "γ", "ell: inner steps")
}

// TestHistoryHasResizes checks that a change of the population size is among the changes of knobs.
func TestHistoryHasResizes(t *testing.T) {
	rs := sourcetest.Run(6, 40)
	var plain []event.Record
	for _, r := range rs {
		if r.Edit == nil {
			plain = append(plain, r)
		}
	}
	d := open(t, 200, 50, plain, nil)
	d.press("3")
	d.shows("no knob was changed")
	was := d.Shown.Members()
	d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: []event.Record{{Plan: &event.Plan{Epoch: 2, At: 40,
		Cause: event.CauseResize, Old: was,
		New: collective.Place(collective.IDs(8), []int{1, 2, 3}), OldAlg: "sample", Algorithm: "sample"}}}}})
	d.shows("population size  6 → 8")
	d.hides("no knob was changed")
}

// TestKnobsWithoutEffectAreFolded checks that knobs without effect are hidden, that a line says how many and which key
// shows them, and that a choice that is staged shows those that it needs.
func TestKnobsWithoutEffectAreFolded(t *testing.T) {
	a := sourcetest.Algorithm()
	for i := range 24 { // more than a rail has rows
		k := optim.Knob{Name: "more" + string(rune('a'+i)), Max: 1}
		if i > 20 {
			k = k.OnlyWith("variant", "paper")
		}
		a.Knobs = append(a.Knobs, k)
	}
	for _, size := range screenSizes {
		for _, keys := range []string{"k", "3"} {
			d := open(t, size[0], size[1], sourcetest.Run(6, 400),
				func(o *panel.Options) { o.Algorithms = []*optim.Algorithm{a} })
			d.press(keys)
			all := len(d.rail.Knobs(d.model.Host)) + 3
			d.shows("3 without effect: i shows them")
			d.press("i")
			d.hides("without effect")
			if n := len(d.rail.Knobs(d.model.Host)); n != all {
				t.Errorf("%v %s: i shows %d of %d knobs", size, keys, n, all)
			}
			d.press("i", "j", "j", "j", "j", "j", "h")
			if e, _ := d.rail.StagedExpr("variant"); e != "paper" {
				t.Fatalf("staged %v", d.rail.Staged)
			}
			d.hides("without effect")
		}
	}
}

// TestFocusIsVisibleAfterAResize checks that the focused panel is drawn after the window has become smaller.
func TestFocusIsVisibleAfterAResize(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.press("k", "j")
	for _, size := range [][2]int{{80, 24}, {70, 20}, {120, 40}, {80, 24}} {
		d.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		d.shows("▸ knobs")
	}
	if d.press("esc"); d.Focus != panel.Loss {
		t.Errorf("esc leads to %s", d.Focus)
	}
	d = open(t, 200, 50, sourcetest.Run(6, 400), nil)
	d.press("tab") // the map of the population, which 80 columns do not have
	d.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	if d.screenText(); !slices.Contains(panel.PanelIDs(d.Placed), d.Focus) {
		t.Errorf("%s has the focus and is not placed", d.Focus)
	}
}
