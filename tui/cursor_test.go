package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

func TestGoldenCursor(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		d := open(t, size[0], size[1], sourcetest.Run(6, 400), nil)
		d.screenText() // as it is placed
		d.press("left")
		d.Cursor.Round = 130
		golden(t, fmt.Sprintf("cursor-%dx%d", size[0], size[1]), d.screenText())
	}
}

// TestCursor checks that the arrow keys move a line through all charts, which show the values of that round, and that
// esc removes it.
func TestCursor(t *testing.T) {
	d := open(t, 200, 50, sourcetest.Run(6, 400), nil)
	d.screenText()
	at := func(round uint64) {
		t.Helper()
		if !d.Cursor.On || d.Cursor.Round != round {
			t.Errorf("the cursor is at %+v, want %d", d.Cursor, round)
		}
	}
	d.press("left")
	at(400)
	d.press("left", ",")
	at(400 - 4 - 1)
	d.press("right", ".", "right")
	at(400)
	d.press("pgup")
	at(360)
	d.press("pgdown", "home")
	at(1)
	d.press("end")
	if d.Cursor.On {
		t.Error("end does not follow the run")
	}
	d.press("left")
	at(400)
	d.press("esc")
	if d.Cursor.On {
		t.Error("esc leaves it there")
	}
	d.press("right")
	at(1)
	d.Cursor.Round = 130
	d.shows("at round 130")
	s := d.Live.Find("loss")
	x, _, _ := s.At(d.Member, 130)
	centre, then, _ := d.Live.Find(view.CentreLoss).At(view.Whole, 130)
	d.shows("m0 "+textfmt.PadLeft(textfmt.Number(x), 5),
		"centre val "+textfmt.PadLeft(textfmt.Number(centre), 5)+" @"+textfmt.Grouped(then))
	if then >= 130 {
		t.Fatalf("the centre was measured at %d", then)
	}
	if e, ok := d.model.ShownValue(d.Live.Find(view.TestError), view.Whole); ok {
		d.shows(fmt.Sprintf("test %.2f %% @", e))
	} else {
		d.shows("test –")
	}

	// It stays at its round while others arrive, in another window, on other screens and while a knob is chosen.
	d.apply(event.Record{At: 1e18 + 500e9, Points: &event.Points{Round: 401, Series: view.CentreLoss,
		Values: []float64{0.1}}},
		event.Record{At: 1e18 + 500e9, Commit: &event.Commit{To: 402, Rounds: 2, Epoch: 1,
			Progress: event.Progress{Rounds: 402}}})
	at(130)
	d.press("+", "3", "1")
	at(130)
	d.shows("at round 130")
	d.press("left") // the window moves to it
	if lo, hi := d.Rounds(); d.Cursor.Round != 130-2 || lo >= 128 || hi <= 128 {
		t.Errorf("it is at %d, shown is %d to %d", d.Cursor.Round, lo, hi)
	}
	d.press("k", "left")
	if d.Cursor.Round != 128 || len(d.rail.Staged) == 0 && d.Toast.Text == "" &&
		d.rail.Answer.Text == "" {
		t.Errorf("on the knobs an arrow moves the cursor to %d, staged %v", d.Cursor.Round, d.rail.Staged)
	}
	d.press("esc", "esc")
	if d.Cursor.On {
		t.Error("it is still there")
	}
}

func TestCursorByMouse(t *testing.T) {
	for _, on := range []panel.ID{panel.Loss, panel.Fitness, panel.Score} {
		d := open(t, 200, 50, sourcetest.Run(6, 400), nil)
		d.screenText()
		for _, p := range d.Placed {
			if p.Panel != on {
				continue
			}
			in := panel.ChartPlot(p.Area.Inset())
			for i := range in.W {
				d.Update(tea.MouseClickMsg{X: in.X + i, Y: in.Y + 1})
				lo, hi := d.Rounds()
				if column := int((d.Cursor.Round - lo) * uint64(in.W) / (hi - lo)); !d.Cursor.On || column != i &&
					d.Cursor.Round != 400 && d.Cursor.Round != 1 {
					t.Fatalf("%s: a click on column %d is round %d, in column %d", on, i, d.Cursor.Round, column)
				}
			}
			d.Cursor = panel.Cursor{}
			d.Update(tea.MouseClickMsg{X: in.X - 4, Y: in.Y + 1}) // on the axis
			d.Update(tea.MouseWheelMsg{X: in.X + 9, Y: in.Y + 1, Button: tea.MouseWheelUp})
			if d.Cursor.On {
				t.Errorf("%s: a click outside, or the wheel, points at %d", on, d.Cursor.Round)
			}
		}
	}
}

// TestCursorBeforeAnything checks the messages for values that were not measured at the cursor or are no longer in the
// view.
func TestCursorBeforeAnything(t *testing.T) {
	d := open(t, 200, 50, sourcetest.Run(6, 400), nil)
	d.screenText()
	d.press("right")
	d.shows("test –")
	if n := len(d.Live.Ledger.Ring); n == 0 {
		t.Fatal("the fixture has no commits")
	}
	d.Live.Ledger.Ring = d.Live.Ledger.Ring[len(d.Live.Ledger.Ring)-1:]
	d.shows("the traffic of round 1 is not in this view", "which starts at round")
	d = open(t, 120, 40, nil, nil)
	if d.press("left"); d.Cursor.On || !strings.Contains(d.Toast.Text, "no round to point at") {
		t.Errorf("without a round it says %q", d.Toast.Text)
	}
}

// TestBranchAtTheChartsCursor checks that a branch starts after the round of the cursor.
func TestBranchAtTheChartsCursor(t *testing.T) {
	d, s := openTraining(t, 120, 40, "")
	d.screenText()
	d.press("left", "left", "left", "left")
	at := d.Cursor.Round
	if d.press("B", "y"); at == 0 || at >= 100 || len(s.asked) != 1 || s.asked[0].At != at {
		t.Errorf("with the cursor at %d it asked for %+v", at, s.asked)
	}
	if d.Cursor.On {
		t.Error("the cursor is kept for the branch")
	}
}
