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

// viewersSource is a source with several viewers.
type viewersSource struct{ *sourcetest.Memory }

func (viewersSource) Watchers() (int, view.Lease) { return 3, view.Lease{Holder: "ann", Mine: true} }

// TestStatusKeepsWhatMatters checks that in a narrow status line the round, the remaining time, the test error and the
// elapsed time remain longest.
func TestStatusKeepsWhatMatters(t *testing.T) {
	for _, w := range []int{60, 80, 100} {
		d := open(t, w, 24, nil, func(o *panel.Options) {
			o.Source, o.Title = viewersSource{sourcetest.NewMemory(sourcetest.Run(3,
				400)...)}, "a-session-with-a-long-name-20261122-043311"
		})
		line, _, _ := strings.Cut(d.screenText(), "\n")
		for _, want := range []string{"● training", "r 400/800", "40s ", "40s left", "test 1.42 %"} {
			if !strings.Contains(line, want) {
				t.Errorf("at %d columns %q is missing: %s", w, want, line)
			}
		}
	}
}

// TestStatusOfARecording checks that the status line names a recording once.
func TestStatusOfARecording(t *testing.T) {
	rs := sourcetest.Run(3, 400)
	d := openRecording(t, 60, 20, append(rs, event.Record{At: rs[len(rs)-1].At,
		State: &event.State{Phase: event.Stopped, Round: 400}}))
	d.press(":").write("goto 300").press("enter")
	d.shows("▶ replay", "r 300/800", "30s", "test 1.42 %")
}

// TestOneRoundOfAnEdit checks that all panels name the same round for an edit: the first one in which it applies.
func TestOneRoundOfAnEdit(t *testing.T) {
	d := open(t, 200, 50, sourcetest.Run(6, 400), nil)
	if k := d.Shown.Marks[0]; k.Round != 103 {
		t.Errorf("the mark of the edit is at round %d", k.Round)
	}
	d.shows("round 103  ┆ ell 10 (ann)")
	d.press("3")
	d.shows("103  ℓ  10  ann")
	d.hides("102 ")
	d.Live.Apply(event.Record{Edit: &event.Edit{At: 402, Algorithm: "sample", Knob: "alpha", Expr: "0.5", By: "ann"}})
	d.refresh()
	d.shows("→ 0.5 from round 403")
	d.press("1")
	d.shows("→ 0.5 @403")
}

// TestSparklinesOfNegatives checks the sparklines of a negative series.
func TestSparklinesOfNegatives(t *testing.T) {
	m := &panel.Host{Alg: &optim.Algorithm{Series: []optim.Series{{Name: view.Fitness}}}, Shown: view.New(),
		LogAxis: true}
	m.Shown.Apply(event.Record{Plan: &event.Plan{Epoch: 1, New: collective.Place(collective.IDs(2), []int{1}),
		Algorithm: "es"}})
	for r := range uint64(20) {
		m.Shown.Apply(event.Record{Points: &event.Points{Round: r + 1, Series: view.Fitness,
			Members: []engine.Member{0, 1}, Values: []float64{-3 + float64(r)/10, -2}}})
	}
	g := cell.New(40, 3)
	live.DrawReplicas(m, g, g.Rect())
	s, _, _ := strings.Cut(cell.Plainly(false).String(g), "\n")
	if !strings.Contains(s, "▁") || !strings.Contains(s, "▇") && !strings.Contains(s, "█") {
		t.Errorf("a fitness from -3 to -1 is drawn as %s", s)
	}
}

// TestHeatRowsHaveEqualSize checks that all rows of the heat map stand for equally many members, and that points every
// few columns leave no stripes.
func TestHeatRowsHaveEqualSize(t *testing.T) {
	for _, c := range []struct{ members, height, rows int }{{3, 13, 12}, {5, 13, 10}, {16, 13, 8}, {64, 22, 16},
		{12, 13, 12}} {
		m := &panel.Host{Alg: &optim.Algorithm{Series: []optim.Series{{Name: "loss"}}}, Shown: view.New()}
		ids := collective.IDs(c.members)
		m.Shown.Apply(event.Record{Plan: &event.Plan{Epoch: 1, New: collective.Place(ids, []int{1}), Algorithm: "x"}})
		for r := uint64(10); r <= 100; r += 10 {
			p := &event.Points{Round: r, Series: "loss"}
			for _, id := range ids {
				p.Members, p.Values = append(p.Members, id), append(p.Values, float64(r))
			}
			m.Shown.Apply(event.Record{Points: p})
		}
		g := cell.New(60, c.height)
		live.DrawHeat(m, g, g.Rect())
		lines := strings.Split(cell.Plainly(false).String(g), "\n")
		drawn := 0
		for _, l := range lines {
			if strings.Contains(l, "▒") {
				drawn++
			}
			if at := strings.Index(l, "▒"); at >= 0 && strings.Contains(strings.TrimRight(l[at:], " "), " ") {
				t.Errorf("%d members in %d lines have stripes: %q", c.members, c.height, l)
			}
		}
		if drawn != c.rows || !strings.Contains(lines[drawn], "100") {
			t.Errorf("%d members in %d lines take %d rows, want %d:\n%s", c.members, c.height, drawn, c.rows,
				strings.Join(lines, "\n"))
		}
	}
}

// TestEqualPopulationShowsItsValue checks that a map of equal values shows the value instead of shades.
func TestEqualPopulationShowsItsValue(t *testing.T) {
	m := &panel.Host{Alg: &optim.Algorithm{Series: []optim.Series{{Name: "loss"}}}, Shown: view.New()}
	m.Shown.Apply(event.Record{Plan: &event.Plan{Epoch: 1, New: collective.Place(collective.IDs(8), []int{1}),
		Algorithm: "x"}})
	put := func(r uint64, last float64) string {
		m.Shown.Apply(event.Record{Points: &event.Points{Round: r, Series: "loss", Members: collective.IDs(8),
			Values: []float64{2, 2, 2, 2, 2, 2, 2, last}}})
		g := cell.New(80, 6) // two members in a row
		live.DrawHeat(m, g, g.Rect())
		return cell.Plainly(false).String(g)
	}
	put(1, 2)
	if s := put(2, 2); !strings.Contains(s, "loss is 2.000 for all members in all of these rounds") ||
		strings.ContainsAny(s, "░▒▓█") {
		t.Errorf("an even population is drawn as\n%s", s)
	}
	if s := put(3, 2.5); strings.Contains(s, "of every member") || !strings.Contains(s, "▒") {
		t.Errorf("one that is even no more is drawn as\n%s", s)
	}
}

// TestToggleOutliers checks that the axis excludes a divergence, marks it, and includes it on request.
func TestToggleOutliers(t *testing.T) {
	rs := sourcetest.Run(3, 400)
	for _, r := range rs {
		if p := r.Points; p != nil && p.Series == "loss" && p.Round == 200 {
			p.Values[1] = 1e7
		}
	}
	d := open(t, 120, 40, rs, nil)
	d.press("m", "m", "m") // as measured
	d.shows("▲ to 10M, A shows all")
	d.press("A")
	d.hides("▲ to")
}

// TestExchangedInMemory checks that the Live and the Fleet screen agree about exchanges within one process.
func TestExchangedInMemory(t *testing.T) {
	rs := sourcetest.Run(6, 400)
	for _, r := range rs {
		if r.Commit != nil {
			r.Commit.Overhead = 0
		}
	}
	here := view.Fleet{Workers: []view.Worker{{ID: 1, State: event.Hosting, Members: []engine.Member{0, 1}},
		{ID: 2, State: event.Hosting, Members: []engine.Member{2, 3}}}}
	d := open(t, 200, 50, nil, func(o *panel.Options) {
		o.Source = &fleetSource{Memory: sourcetest.NewMemory(rs...),
			now: here}
	})
	d.shows("3 workers, in memory", "412 kB/s in memory")
	d.press("2")
	d.shows("they exchange 412", "kB/s in its memory")
}

// TestLongMessage checks that a message is shown whole, with the advice at its end; what is too long for a small
// terminal ends with an ellipsis.
func TestLongMessage(t *testing.T) {
	const long = "block m of member 2 is not finite within rounds 1463 to 1494; the last edit was eta = 60 at round " +
		"1463; back at round 1462: revert the edits before it or lower eta, and resume, or branch at round 1460, the " +
		"last at which the loss of the centre was not above that of the start"
	for size, want := range map[[2]int]string{{80, 24}: "that of the start", {60, 12}: "…"} {
		d := open(t, size[0], size[1], sourcetest.Run(3, 400), nil)
		d.Say(cell.Alert, long)
		lines := strings.Split(strings.TrimRight(d.screenText(), "\n"), "\n")
		if last := strings.TrimSpace(lines[len(lines)-1]); !strings.HasSuffix(last, want) {
			t.Errorf("at %v it ends with %q", size, last)
		}
	}
}
