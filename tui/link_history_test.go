package tui

import (
	"maps"
	"math"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/panel/fleet"
)

// linkRecords returns the records of a fleet over 100 rounds, 10 a second, whose machines report every twentieth round:
// `sent` returns what worker 1 sends to 2 and 2 to 1, below 0 if the worker has left. One commit sends more than
// predicted.
func linkRecords(sent func(round uint64) (one, two float64), links bool) (out []event.Record) {
	for _, r := range sourcetest.Run(6, 100) {
		if r.Commit != nil && r.Commit.To == 80 {
			c := *r.Commit
			c.Sent = maps.Clone(c.Sent)
			c.Sent["couple"] += 999
			r.Commit = &c
		}
		if r.Machines == nil && r.Alert == nil && r.Edit == nil {
			out = append(out, r)
		}
		if r.Commit == nil || r.Commit.To%20 != 0 {
			continue
		}
		x := &event.Machines{Round: r.Commit.To, Of: []event.Machine{{Worker: event.Here,
			Values: map[event.Measure]float64{event.Busy: 1}}}}
		one, two := sent(r.Commit.To)
		for i, sent := range []float64{one, two} {
			if sent < 0 {
				continue
			}
			m := event.Machine{Worker: 1 + i, Values: map[event.Measure]float64{event.Sent: sent}}
			if links {
				m.To = map[int]float64{2 - i: sent}
			}
			x.Of = append(x.Of, m)
		}
		out = append(out, event.Record{At: r.At, Machines: x})
	}
	return out
}

// linkLine returns the line of a link in the panel without its name.
func linkLine(d *desk, name string) string {
	d.t.Helper()
	for line := range strings.SplitSeq(d.screenText(), "\n") {
		if _, after, ok := strings.Cut(line, name+" "); ok {
			return strings.Trim(after, " │")
		}
	}
	return ""
}

// TestLinksOverRounds checks the traffic of each link per second and per round, also at the cursor, next to the
// prediction. An unmeasured link has a dash and a gap, and a log without measurements has no links.
func TestLinksOverRounds(t *testing.T) {
	gap := func(r uint64) (float64, float64) {
		if r > 30 && r <= 60 {
			return 80e3, -1
		}
		return 40e3, 20e3
	}
	d := open(t, 200, 50, linkRecords(gap, true), nil)
	d.press("5")
	d.shows("links over rounds", "all → all", "formula", "w1 → all", "w1 → w2", "w2 → w1",
		"links: packets including probes · formula: payload of rounds")
	if got := linkLine(d, "w1 → w2"); !strings.HasPrefix(got, "40.0 kB    4.0 kB") {
		t.Errorf("w1 → w2: %q", got)
	}
	if got := linkLine(d, "all → all"); !strings.HasPrefix(got, "60.0 kB    6.0 kB") {
		t.Errorf("all → all: %q", got)
	}
	if got := linkLine(d, "formula"); !strings.HasPrefix(got, "412 kB   41.2 kB") { // 5.9 and 35.3 kB a round
		t.Errorf("the formula: %q", got)
	}
	differs := false
	for _, c := range d.Shown.Ledger.Ring {
		if got, want := fleet.PredictedAt(d.Shown,
			c.To), float64(c.Predicted)/float64(c.Rounds); math.Abs(got-want) > 1 {
			t.Errorf("round %d: the formula says %g bytes, want %g", c.To, got, want)
		}
		differs = differs || c.Sent != c.Predicted
	}
	if !differs {
		t.Error("no round has more or less than its formula says")
	}
	line := linkLine(d, "w2 → w1")
	spark := line[strings.LastIndex(line, "B ")+2:]
	whole := strings.TrimSpace(spark)
	if before, after, ok := strings.Cut(whole, " "); !ok || before == "" || strings.Trim(after, " ") == "" {
		t.Errorf("w2 → w1 has no gap while worker 2 was gone: %q", line)
	}
	if one := linkLine(d, "w1 → w2"); strings.Contains(one[strings.LastIndex(one, "B ")+2:], "▄ ") ||
		!strings.Contains(one, "█") || !strings.Contains(one, "▅") && !strings.Contains(one, "▄") {
		t.Errorf("w1 → w2 is not drawn over all rounds, twice as high from 40 to 60: %q", one)
	}
	d.Cursor.On, d.Cursor.Round = true, 50
	if got := linkLine(d, "w1 → w2"); !strings.HasPrefix(got, "80.0 kB    8.0 kB") {
		t.Errorf("at round 50 w1 → w2: %q", got)
	}
	if got := linkLine(d, "w2 → w1"); !strings.HasPrefix(got, "–         –") {
		t.Errorf("at round 50 worker 2 was gone: %q", got)
	}
	d.Cursor.On = false
	rows := map[string]int{}
	for _, r := range d.panel(panel.LinkHistory).Export(d.model.Host)(d.Shown)[1:] {
		rows[r[0]+" "+r[1]]++
	}
	if rows["w1 w2"] != 5 || rows["w2 w1"] != 3 || rows["w1 all"] != 5 || rows["all all"] != 5 || len(rows) != 5 {
		t.Errorf("exported rows: %v", rows)
	}
	d = open(t, 200, 50, linkRecords(gap, false), nil)
	d.press("5")
	d.shows("w1 → all", "w2 → all")
	d.hides("w1 → w2", "w2 → w1")
}

// TestNoLinksOverRounds checks that nothing is drawn if all workers share one process or have left.
func TestNoLinksOverRounds(t *testing.T) {
	none := func(uint64) (float64, float64) { return -1, -1 }
	d := open(t, 120, 40, linkRecords(none, true), nil)
	d.press("5")
	d.hides("links over rounds")
	left := func(r uint64) (float64, float64) {
		if r > 50 {
			return -1, -1
		}
		return 40e3, 20e3
	}
	d = open(t, 200, 50, linkRecords(left, true), nil)
	d.press("5")
	line := linkLine(d, "w1 → w2")
	if !strings.HasPrefix(line, "–         –") || len([]rune(line)) > 70 {
		t.Errorf("both workers have gone, and their link carries %q", line)
	}
}

// TestLinksOverRoundsFollowTheirCursor checks that every link can be reached, and that a click selects a link and a
// round.
func TestLinksOverRoundsFollowTheirCursor(t *testing.T) {
	for _, size := range [][2]int{{60, 12}, {80, 24}, {120, 40}} {
		d := open(t, size[0], size[1], sourcetest.Run(6, 400), nil)
		d.press("5", "tab")
		if d.Focus != panel.LinkHistory {
			t.Fatalf("at %v tab leads to %s", size, d.Focus)
		}
		for _, name := range []string{"all → all", "formula", "w1 → all", "w1 → w2", "w1 → w3", "w2 → all", "w2 → w1",
			"w2 → w3", "w3 → all"} {
			d.shows("▸ " + name)
			d.press("j")
		}
		d.press("g")
		d.shows("▸ all → all")
	}
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.press("5")
	d.paint()
	for _, p := range d.Placed {
		if p.Panel == panel.LinkHistory {
			d.Update(tea.MouseClickMsg{X: p.Area.X + 50, Y: p.Area.Y + 5})
		}
	}
	d.shows("▸ w1 → w2")
	if !d.Cursor.On || d.Cursor.Round < 200 || d.Cursor.Round > 390 {
		t.Errorf("the click leads to %+v", d.Cursor)
	}
}
