package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// unevenRun returns a run of n commits of one round, each longer than the one before; every tenth sends bytes.
func unevenRun(rounds int) []event.Record {
	out := sourcetest.Run(2, 0)
	at := out[len(out)-1].At
	for r := uint64(1); r <= uint64(rounds); r++ {
		at += int64(r) * 1e7
		c := &event.Commit{Epoch: 1, To: r, Rounds: 1, Nanos: int64(r) * 1e7, Hash: "x",
			Progress: event.Progress{Rounds: r, Steps: 2 * r, Samples: 64 * r, Epochs: float64(r) / 100}}
		if r%10 == 0 {
			c.Sent, c.Predicted = map[collective.Op]int64{"couple": 5000}, map[collective.Op]int64{"couple": 5000}
		}
		out = append(out,
			event.Record{At: at, Points: &event.Points{Round: r, Series: "loss", Members: []engine.Member{0, 1},
				Values: []float64{1 / float64(r), 2 / float64(r)}}},
			event.Record{At: at, Points: &event.Points{Round: r, Series: view.CentreLoss,
				Members: []engine.Member{view.Whole}, Values: []float64{1 / float64(r)}}},
			event.Record{At: at, Commit: c})
	}
	return out
}

// TestChartsOverEveryAxis checks that columns, cursor, clicks and marks agree on every axis.
func TestChartsOverEveryAxis(t *testing.T) {
	records := append(unevenRun(400), event.Record{Edit: &event.Edit{At: 200, Algorithm: "sample", Knob: "ell",
		Expr: "10",
		By:   "ann"}})
	want := map[axis.Axis][2]string{ // last label of the x axis, and the cursor's title at round 200
		axis.Rounds: {"400", "at round 200"}, axis.Steps: {"800", "step 400"}, axis.Samples: {"25 600",
			"sample 12 800"},
		axis.Epochs: {"4", "epoch 2.00"}, axis.Bytes: {"200 kB", "100 kB"}, axis.Seconds: {"802 s", "201 s"},
	}
	for a := range axis.Axis(len(axis.Names)) {
		d := open(t, 200, 50, records, nil)
		for range int(a) {
			d.press("O")
		}
		if d.ActiveAxis() != a {
			t.Fatalf("after O was pressed %d times charts are over %ss", a, d.ActiveAxis())
		}
		d.screenText()
		d.shows("· "+a.String()+" ─", want[a][0]+" ")
		p := d.lossPlot()
		edges := d.Edges(p.W)
		for i := range p.W {
			d.Update(tea.MouseClickMsg{X: p.X + i, Y: p.Y + 1})
			d.Update(tea.MouseReleaseMsg{X: p.X + i, Y: p.Y + 1})
			from, to := d.AxisRange()
			column := int((d.AxisPosition(d.Cursor.Round) - from) * uint64(p.W) / (to - from))
			if d.Cursor.Round < edges[i] && d.Cursor.Round > 1 || edges[i+1] > edges[i] &&
				(d.Cursor.Round >= edges[i+1] && d.Cursor.Round < 400 || column != i && d.Cursor.Round > 1 &&
					d.Cursor.Round < 400) {
				t.Fatalf("%s: a click on column %d of rounds %d to %d is round %d, in column %d", a, i, edges[i],
					edges[i+1], d.Cursor.Round, column)
			}
		}
		d.Cursor = panel.Cursor{On: true, Round: 200}
		d.shows(want[a][1])
		lo, hi := d.Rounds()
		x := int((d.AxisPosition(200) - d.AxisPosition(lo)) * uint64(p.W) / (d.AxisPosition(hi-1) + 1 - d.AxisPosition(lo)))
		screen := d.screenText()
		line := []rune(strings.Split(screen, "\n")[p.Y+p.H]) // the text of the edit is next to its line
		if text := string(line[p.X+x-8 : p.X+x+8]); !strings.Contains(text, "┆ℓ 10") {
			t.Errorf("%s: at the edit's place the foot has %q", a, text)
		}
		d.Cursor = panel.Cursor{}
		d.press("left")
		last := d.Cursor.Round
		d.press("left", "left")
		if d.Cursor.Round >= last-1 || last != 400 {
			t.Errorf("%s: the cursor steps from %d to %d", a, last, d.Cursor.Round)
		}
		d.press("right", "right")
		if d.Cursor.Round < last-12 {
			t.Errorf("%s: back it is at %d", a, d.Cursor.Round)
		}
		d.Cursor = panel.Cursor{}
		// the wheel keeps the round below it at its place, and widens to the whole again
		at := p.X + p.W/2
		d.Update(tea.MouseWheelMsg{X: at, Y: p.Y + 1, Button: tea.MouseWheelUp})
		from, to := d.AxisRange()
		lo, hi = d.Rounds()
		whole := float64(d.AxisPosition(400) - d.AxisPosition(1))
		if part := float64(to-from) / whole; hi-lo >= 400 || a != axis.Bytes && (part < 0.45 || part > 0.55) {
			t.Errorf("%s: the wheel shows %d to %d, %g of the axis", a, lo, hi, part)
		}
		d.Update(tea.MouseWheelMsg{X: at, Y: p.Y + 1, Button: tea.MouseWheelDown})
		if lo, hi = d.Rounds(); hi-lo < 395 {
			t.Errorf("%s: turned back it shows %d to %d", a, lo, hi)
		}
		d.press("0", "+")
		if from, to = d.AxisRange(); a != axis.Bytes && float64(to-from) > 0.55*whole {
			t.Errorf("%s: the last half is %d to %d", a, from, to)
		}
		if a != axis.Rounds {
			d.shows("rounds by " + a.String())
		}
	}
}

// TestAxisOfLayouts checks that a layout restores its axis, and that a run without an extent on it is drawn over
// rounds.
func TestAxisOfLayouts(t *testing.T) {
	d, k := openCharts(t, 120, 36, unevenRun(50), panel.Settings{})
	d.press("O", "O", ":").write("layout save fine").press("enter")
	d.press("O", ":").write("layout fine").press("enter")
	if d.ActiveAxis() != axis.Samples || k.kept[len(k.kept)-1].Layouts["fine"].Axis != "sample" {
		t.Errorf("it comes back over %ss, kept %+v", d.ActiveAxis(), k.kept[len(k.kept)-1])
	}
	if s := panel.ParseSettings(
		[]byte(`{"layouts": {"a": {"axis": "weeks"}, "b": {"axis": "byte"}}}`)); s.Layouts["a"].Axis != "" ||
		s.Layouts["b"].Axis != "byte" {
		t.Errorf("read are %+v", s.Layouts)
	}
	for line, want := range map[string]string{"axis weeks": `no axis "weeks": choose one of round, step`,
		"axis": "write axis ROUND|STEP|..."} {
		d.press(":").write(line).press("enter")
		d.shows(want)
		d.press("esc")
	}
	d.press(":").write("axis seconds").press("enter")
	d.shows("charts over seconds of training, without pauses")
	d = open(t, 120, 40, sourcetest.Run(2, 3), nil) // without a commit
	d.press("O")
	if d.shows("· round ─"); d.ActiveAxis() != axis.Rounds {
		t.Errorf("a run without a commit is drawn over %ss", d.ActiveAxis())
	}
	d.press(":").write("axis byte").press("enter")
	d.shows("axis: the run has no bytes yet: its charts stay over rounds")
}
