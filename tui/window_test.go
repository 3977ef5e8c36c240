package tui

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
)

// TestZoomAndPan uses the run of sourcetest with points in rounds 1 to 400: charts show [1, 401).
func TestZoomAndPan(t *testing.T) {
	for _, c := range []struct {
		keys   string
		lo, hi uint64
		note   string
	}{
		{"", 1, 401, "· round ─"},
		{"+", 201, 401, "last 200 rounds"},
		{"+ +", 301, 401, "last 100 rounds"},
		{"+ + H", 276, 376, "rounds 276–375"},
		{"+ + H shift+left", 251, 351, "rounds 251–350"},
		{"+ + H +", 326, 376, "rounds 326–375"},
		{"+ + H H - ", 151, 351, "rounds 151–350"},
		{"+ + H L", 301, 401, "last 100 rounds"},
		{"+ + L shift+right", 301, 401, "last 100 rounds"},
		{"+ + H H H H H H H H H H H H H H H H", 1, 101, "rounds 1–100"},
		{"+ + H H H H H H H H H H H H H H H H -", 1, 201, "rounds 1–200"},
		{"+ + + H H H H H H H H H H H H H H H H H H H H H H H H H H L -", 1, 101, "rounds 1–100"},
		{"+ -", 1, 401, "· round ─"},
		{"+ + H 0", 1, 401, "· round ─"},
		{"-", 1, 401, "· round ─"},
		{"H", 1, 401, "· round ─"},
		{"+ + + + + + + + + + + +", 389, 401, "last 12 rounds"},
	} {
		d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
		d.press(strings.Fields(c.keys)...)
		if lo, hi := d.Rounds(); lo != c.lo || hi != c.hi {
			t.Errorf("after %q charts show %d to %d, want %d to %d", c.keys, lo, hi, c.lo, c.hi)
		}
		d.shows(c.note)
	}
}

// TestZoomedChartsFollow checks that a window at the end follows the run, and a moved one stays.
func TestZoomedChartsFollow(t *testing.T) {
	for _, c := range []struct {
		keys   string
		lo, hi uint64
	}{{"+ +", 305, 405}, {"+ + H", 276, 376}, {"", 1, 405}} {
		d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
		d.press(strings.Fields(c.keys)...)
		var more []event.Record
		for r := uint64(401); r <= 404; r++ {
			more = append(more, event.Record{At: 2e18,
				Points: &event.Points{Round: r, Series: "loss", Members: d.Shown.Members().Members,
					Values: make([]float64, 6)}})
		}
		d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: more}})
		if lo, hi := d.Rounds(); lo != c.lo || hi != c.hi {
			t.Errorf("after %q and 4 rounds charts show %d to %d, want %d to %d", c.keys, lo, hi, c.lo, c.hi)
		}
	}
}

// TestWindowStaysWithinTheRun checks that the window stays within the run after a seek or a rollback.
func TestWindowStaysWithinTheRun(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.press("+", "+", "H")
	for _, rounds := range []int{300, 120, 40, 1} {
		v := view.New()
		for _, r := range sourcetest.Run(6, rounds) {
			v.Apply(r)
		}
		d.Update(snapshotMsg{gen: d.Feed.Gen, view: v})
		first, end := d.Extent()
		if lo, hi := d.Rounds(); lo < first || hi > end || lo >= hi {
			t.Errorf("with %d rounds charts show %d to %d of %d to %d", rounds, lo, hi, first, end)
		}
		d.paint()
	}
	d = open(t, 120, 40, nil, nil)
	d.press("+", "H", "L", "-", "0")
	d.paint()
}

func TestSmoothingKeys(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	for _, want := range []string{"ema 0.6", "ema 0.9", "ema 0.97", "", "ema 0.6"} {
		if want == "" {
			d.hides("ema")
		} else {
			d.shows("log y · "+want+" · round", "─ parameter spread")
		}
		d.press("m")
	}
	d.press("M")
	d.shows("ema 0.6")
}

// TestSmoothedCurves checks that smoothing keeps the band and the trace behind each curve as measured, and that the
// curve is the average since the first round, independent of the window.
func TestSmoothedCurves(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.Smoothing = 2
	s := d.Shown.Find("loss")
	at := func(keys string, n int) (raw, smooth chart.Layer) {
		d.press(strings.Fields(keys)...)
		var c panel.Curves
		c.Add(d.model.Host, s, s.Median, n, cell.Median, chart.Thin)
		return c.Under[0], c.Over[0]
	}
	raw, whole := at("", 400)
	if raw.Role != cell.Raw || whole.Role != cell.Median {
		t.Fatalf("roles %d and %d", raw.Role, whole.Role)
	}
	sum := 0.0
	for i, b := range s.Median(view.Even(1, 401, 400)) {
		if raw.Columns[i] != b {
			t.Fatalf("round %d: the raw trace is %v, measured was %v", i+1, raw.Columns[i], b)
		}
		sum = 0.9*sum + 0.1*b.Mean()
	}
	if got := whole.Columns[399].Mean(); got < sum || got > sum*(1+1e-12) {
		t.Errorf("the last round is smoothed to %g, want %g", got, sum)
	}
	_, part := at("+ + H", 100)
	for i, b := range part.Columns {
		if w := whole.Columns[275+i].Mean(); b.Mean() < w*(1-1e-6) || b.Mean() > w*(1+1e-6) {
			t.Fatalf("round %d is smoothed to %g in a window and to %g in the whole run", 276+i, b.Mean(), w)
		}
	}
}

// lossPlot returns the plot area of the loss chart.
func (d *desk) lossPlot() cell.Rect {
	i := slices.IndexFunc(d.Placed, func(p panel.Placement) bool { return p.Panel == panel.Loss })
	return panel.ChartPlot(d.Placed[i].Area.Inset())
}

// TestZoomByMouse checks that the wheel zooms around the round under the mouse and a drag shows its range; neither
// moves the cursor, in a recording or a live run. A click moves a recording.
func TestZoomByMouse(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
		if recorded {
			d = openRecording(t, 120, 40, sourcetest.Run(6, 400))
			d.press("end")
		}
		d.screenText()
		p := d.lossPlot()
		lo, hi := d.Rounds()
		full := hi - lo
		x := p.X + p.W/4
		at := lo + full/4
		d.Update(tea.MouseWheelMsg{X: x, Y: p.Y + 1, Button: tea.MouseWheelUp})
		if lo, hi = d.Rounds(); hi-lo != full/2 || lo+(hi-lo)/4 < at-4 || lo+(hi-lo)/4 > at+4 {
			t.Errorf("the wheel shows %d to %d, want %d rounds with %d in a quarter of them", lo, hi, full/2, at)
		}
		d.Update(tea.MouseWheelMsg{X: x, Y: p.Y + 1, Button: tea.MouseWheelDown})
		if lo, hi = d.Rounds(); hi-lo != full {
			t.Errorf("turned back it shows %d to %d", lo, hi)
		}
		d.Update(tea.MouseClickMsg{X: p.X + p.W/2, Y: p.Y + 1})
		d.Update(tea.MouseReleaseMsg{X: p.X + p.W/4, Y: p.Y + 9})
		if lo, hi = d.Rounds(); lo < full/4-4 || lo > full/4+4 || hi < full/2-4 || hi > full/2+8 || d.Cursor.On {
			t.Errorf("a drag over the second quarter shows %d to %d, cursor %v", lo, hi, d.Cursor)
		}
		was := d.Window
		d.Update(tea.MouseClickMsg{X: p.X + p.W/2, Y: p.Y + 1})
		if d.Update(tea.MouseReleaseMsg{X: p.X + p.W/2, Y: p.Y + 1}); d.Window != was || d.Cursor.On == recorded {
			t.Errorf("a click shows other rounds, or points at none: %v, cursor %v", d.Window, d.Cursor)
		}
		lo, hi = d.Rounds()
		d.settle()
		if got := d.Live.Progress.Rounds; recorded && (got+8 < (lo+hi)/2 || got > (lo+hi)/2+8) {
			t.Errorf("a click in the middle of %d to %d moves the recording to %d", lo, hi, got)
		}
	}
}

// TestOnlyMiniBatchesAreSmoothed checks that only mini-batch series are smoothed: an average of exact values would show
// values that were not measured.
func TestOnlyMiniBatchesAreSmoothed(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	drawn := 0
	for i := range d.Shown.Series {
		s := &d.Shown.Series[i]
		var c panel.Curves
		c.Add(d.model.Host, s, s.Band, 80, cell.Centre, chart.Line)
		switch smoothed := len(c.Under) > 0; {
		case s.Name == "loss" && !smoothed:
			t.Error("the training loss is not smoothed")
		case (s.Name == view.CentreLoss || s.Name == view.Spread || s.Name == view.TestError ||
			s.Name == view.TestLoss) && smoothed:
			t.Errorf("%s is smoothed, though each value of it is exact", s.Name)
		}
		drawn++
	}
	if drawn < 3 {
		t.Fatalf("the run has %d series", drawn)
	}
}

// TestLongRunBeginsAtRoundOne checks that the charts of a run whose series are condensed begin at round 1, not 0.
func TestLongRunBeginsAtRoundOne(t *testing.T) {
	d := open(t, 80, 24, sourcetest.Run(2, 5000), nil)
	if lo, hi := d.Extent(); lo != 1 || hi != 5001 {
		t.Errorf("rounds %d to %d", lo, hi)
	}
}
