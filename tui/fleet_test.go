package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/panel/fleet"
	"brood/tui/textfmt"
)

func TestFleetIsAskedOnlyWhileItIsShown(t *testing.T) {
	d, c := openFleet(t, 120, 40, fleetOf(5), "")
	if c.asked != 1 {
		t.Fatalf("opening the screen asks %d times", c.asked)
	}
	if d.fleet.Survey(d.model.Host) != nil {
		t.Error("it asks again at once")
	}
	d.nextSurvey()
	if c.asked != 2 {
		t.Errorf("a second later it was asked %d times", c.asked)
	}
	d.now = d.now.Add(time.Second)
	if d.fleet.Survey(d.model.Host) == nil {
		t.Error("it is not asked a second later")
	}
	d.now = d.now.Add(time.Second)
	if d.fleet.Survey(d.model.Host) != nil {
		t.Error("a question that is not answered is asked again")
	}
	d.fleet.StoreSurvey(d.model.Host, d.Feed.Gen, c.now, nil)
	d.press("f")
	if d.nextSurvey(); c.asked != 2 {
		t.Error("a frozen display keeps requesting")
	}
	d.LastRecordAt = d.now // a round ends
	d.press("f", "1")
	if d.nextSurvey(); c.asked != 2 {
		t.Error("it is asked while another screen is shown")
	}
	d.press("2")
	d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: []event.Record{{At: 2e18,
		State: &event.State{Phase: event.Finished}}}}})
	if d.nextSurvey(); c.asked != 3 {
		t.Error("a run that has ended is asked")
	}
	d.shows("the run has ended", "○ hosted")
	d.hides("rack1")
}

// TestFleetSaysWhatAStrategyDoes checks the unit of the rate: samples for an algorithm without gradient steps, rounds
// for a run without data, whose samples are meetings.
func TestFleetSaysWhatAStrategyDoes(t *testing.T) {
	for unit, data := range map[string]string{"samples/s": "glyphs", "rounds/s": ""} {
		rs := sourcetest.Run(12, 400)
		for _, r := range rs {
			switch {
			case r.Config != nil:
				r.Config.Data = data
			case r.Commit != nil:
				r.Commit.Progress.Steps = 0
			}
		}
		d := open(t, 120, 40, nil, func(o *panel.Options) {
			o.Source = &fleetSource{Memory: sourcetest.NewMemory(rs...),
				now: fleetOf(5)}
		})
		d.press("2")
		d.shows(unit)
		d.hides("steps/s")
		d.press("j", "enter")
		d.shows(unit + ", 33 % of all")
		if rows, _ := d.fleet.Rows(d.model.Host); !(rows[0].Rate > 0) {
			t.Errorf("w%d does %g %s", rows[0].ID, rows[0].Rate, unit)
		}
	}
}

// TestLateFleetIsIgnored checks that an answer for a session that was left is dropped.
func TestLateFleetIsIgnored(t *testing.T) {
	d, c := openFleet(t, 120, 40, fleetOf(5), "")
	gen := d.Feed.Gen
	d.resetSession()
	d.fleet.StoreSurvey(d.model.Host, gen, c.now, nil)
	if len(d.fleet.Now.Workers) > 0 || d.fleet.Answered {
		t.Error("the answer of a session that was left is taken")
	}
}

func TestFleetThatDoesNotAnswer(t *testing.T) {
	d, c := openFleet(t, 120, 40, fleetOf(5), "")
	c.err = errors.New("the pipe is broken")
	d.nextSurvey()
	d.nextSurvey()
	d.shows("the workers do not answer: the pipe is broken · this table is 2s old", "rack1-node1")
	c.err = nil
	d.nextSurvey()
	d.hides("do not answer")
	// Without any answer the log has the placement of members.
	d, _ = openFleet(t, 120, 40, view.Fleet{}, "")
	d.shows("no workers: start one")
	bad := &fleetSource{Memory: sourcetest.NewMemory(sourcetest.Run(12, 40)...), err: context.DeadlineExceeded}
	d = open(t, 120, 40, nil, func(o *panel.Options) { o.Source = bad })
	d.press("2")
	d.shows("do not answer: context deadline exceeded", "w3", "8–11")
}

func TestFleetOrderAndFilter(t *testing.T) {
	d, _ := openFleet(t, 120, 40, fleetOf(5), "")
	for _, want := range []struct {
		keys  string
		order []int
		note  string
	}{
		{"", []int{1, 2, 3, 4, 5}, "by worker ↑"},
		{"O", []int{5, 4, 3, 2, 1}, "by worker ↓"},
		{"o", []int{1, 2, 3, 4, 5}, "by machine ↑"},
		{"o", []int{3, 1, 2, 4, 5}, "by state ↑"},
		{"o", []int{1, 2, 3, 5, 4}, "by members ↓"},
		{"o O", []int{4, 1, 2, 3, 5}, "by rate ↑"},
		{"o", []int{2, 1, 3, 5, 4}, "by tx ↓"},
		{"o", []int{2, 1, 3, 5, 4}, "by rx ↓"},
		{"o", []int{5, 4, 3, 2, 1}, "by RTT ↓"},
		{"o", []int{2, 3, 5, 1, 4}, "by silent ↓"},
		{"o", []int{1, 2, 3, 4, 5}, "by worker ↑"},
	} {
		d.press(strings.Fields(want.keys)...)
		if got := d.order(); !slices.Equal(got, want.order) {
			t.Errorf("%s: %v, want %v", want.note, got, want.order)
		}
		d.shows(want.note)
	}
	d.press("/").write("RACK2").press("enter")
	d.shows("1 of 5 workers shown · by worker ↑ · /RACK2", "rack2-node1")
	if got := d.order(); !slices.Equal(got, []int{5}) {
		t.Errorf("the filter leaves %v", got)
	}
	d.press("esc", "/").write("drained").press("enter")
	d.shows(`no worker matches "drained"`)
	for _, k := range []string{"j", "G", "enter", "v", "V", "c", "d", "u", "K"} {
		d.press(k)
	}
	if len(d.sent) > 0 || d.Popup != nil {
		t.Errorf("an empty list sends %v", d.sent)
	}
	d.shows("there is no worker to choose")
}

// TestFleetCursorStays checks that the cursor stays on its worker in any order, and in its row if the worker leaves.
func TestFleetCursorStays(t *testing.T) {
	d, c := openFleet(t, 120, 40, fleetOf(5), "j j v")
	if d.fleet.Chosen != 4 || !slices.Equal(d.marks(), []int{3}) {
		t.Fatalf("chosen %d, marked %v", d.fleet.Chosen, d.marks())
	}
	d.press("O")
	if rows, at := d.fleet.Rows(d.model.Host); rows[at].ID != 4 || at != 1 {
		t.Errorf("turned round, the cursor is on w%d in row %d", rows[at].ID, at)
	}
	c.now.Workers = slices.Delete(c.now.Workers, 2, 4) // w3 and w4
	d.nextSurvey()
	if d.fleet.Chosen != 2 || len(d.marks()) > 0 {
		t.Errorf("w4 has gone: chosen w%d, marked %v", d.fleet.Chosen, d.marks())
	}
	d.paint()
	d.Update(tea.MouseClickMsg{X: 10, Y: 4})
	if d.fleet.Chosen != 5 {
		t.Errorf("a click on the first row chooses w%d", d.fleet.Chosen)
	}
	d.Update(tea.MouseWheelMsg{X: 10, Y: 4, Button: tea.MouseWheelDown})
	if d.fleet.Chosen != 2 {
		t.Errorf("the wheel leads to w%d", d.fleet.Chosen)
	}
	if d.Update(tea.MouseWheelMsg{X: 10, Y: 4, Button: tea.MouseWheelDown}); d.fleet.Chosen == 2 {
		t.Error("the wheel stays at the row under the mouse")
	}
	chosen, screen := d.fleet.Chosen, d.screen
	d.Update(tea.MouseWheelMsg{X: 10, Y: 4, Button: tea.MouseWheelLeft})
	d.Update(tea.MouseWheelMsg{X: 30, Y: 1, Button: tea.MouseWheelDown})
	if d.fleet.Chosen != chosen || d.screen != screen {
		t.Errorf("a wheel sideways or over the names of screens leads to w%d on screen %d", d.fleet.Chosen, d.screen)
	}
}

func TestFleetMoves(t *testing.T) {
	for keys, want := range map[string]int{"j": 2, "down down": 3, "k": 1, "j up": 1, "G": 5, "G g": 1, "enter j": 2} {
		if d, _ := openFleet(t, 120, 40, fleetOf(5), keys); d.fleet.Chosen != want {
			t.Errorf("%s leads to w%d, want w%d", keys, d.fleet.Chosen, want)
		}
	}
}

func TestFleetDetails(t *testing.T) {
	d, _ := openFleet(t, 80, 24, fleetOf(5), "j enter")
	d.shows("▸ worker w2", "10.0.0.8:41037", "brood 0.9.0", "13m 35s ago", "4 members: 4–7",
		"1000 steps/s, 33 % of all", "2.09 ms to the coordinator", "!1.4 s")
	d.hides("fleet ─")
	d.press("k")
	d.shows("▸ worker w1", "◆ 1.25 MB/s, 20ms delay")
	if d.press("esc"); d.Focus != panel.Fleet || d.Expanded {
		t.Errorf("esc leads to %s, expanded %v", d.Focus, d.Expanded)
	}
	// In a wide layout it is placed already.
	d, _ = openFleet(t, 200, 50, fleetOf(5), "j")
	d.shows("worker w2", "10.0.0.8:41037")
	if d.press("enter"); d.Focus != panel.Worker || d.Expanded {
		t.Errorf("enter leads to %s, expanded %v", d.Focus, d.Expanded)
	}
}

// TestTabReachesEveryPanel checks that tab reaches panels that a small screen does not place.
func TestTabReachesEveryPanel(t *testing.T) {
	for _, size := range [][2]int{{60, 12}, {80, 24}} {
		d, _ := openFleet(t, size[0], size[1], fleetOf(5), "")
		if size[0] >= panel.PanelsW {
			d.press("e")
		}
		var seen []panel.ID
		for range 6 {
			seen = append(seen, d.Focus)
			d.paint()
			if got := panel.PanelIDs(d.Placed); !slices.Equal(got, []panel.ID{d.Focus}) {
				t.Errorf("at %v the focus is on %s and shown is %v", size, d.Focus, got)
			}
			d.press("tab")
		}
		if !slices.Equal(seen, []panel.ID{panel.Fleet, panel.Links, panel.Worker, panel.MachineHistory,
			panel.Events, panel.Fleet}) {
			t.Errorf("at %v tab leads through %v", size, seen)
		}
	}
	d, _ := openFleet(t, 80, 24, fleetOf(5), "e tab tab e")
	if d.Focus != panel.Fleet {
		t.Errorf("back from a panel without a place the focus is on %s", d.Focus)
	}
}

// TestFleetDoesNotJitter checks that columns and panels do not move while values change.
func TestFleetDoesNotJitter(t *testing.T) {
	for _, size := range [][2]int{{60, 12}, {80, 24}, {120, 40}, {200, 50}} {
		d, c := openFleet(t, size[0], size[1], fleetOf(5), "")
		before := edges(d.screenText())
		for i := range c.now.Workers {
			w := &c.now.Workers[i]
			w.Sent, w.Received, w.RTT, w.Silent, w.Name = 999.4e9, 1, 9876*time.Millisecond, 61*time.Second,
				"a-machine-with-quite-a-long-name.cluster.example"
			w.Members, w.State = []engine.Member{0, 2, 4, 100, 102, 1000}, event.Cordoned
		}
		for i := range c.now.Links {
			c.now.Links[i] = view.Link{From: c.now.Links[i].From, To: c.now.Links[i].To, Sent: 1e12 / 7,
				RTT: time.Minute, Lost: 1}
		}
		d.nextSurvey()
		if got := edges(d.screenText()); got != before {
			t.Errorf("at %v lines or headings moved:\n%s\n%s", size, before, got)
		}
	}
}

// edges returns the positions of the borders and the headings of the table.
func edges(s string) (out string) {
	for y, l := range strings.Split(s, "\n") {
		x := 0
		for _, r := range l {
			if strings.ContainsRune("╭╮╰╯│", r) {
				out += fmt.Sprintf("%d,%d ", x, y)
			}
			x++
		}
		if strings.Contains(l, "machine ") && strings.Contains(l, "members ") {
			table, _, _ := strings.Cut(l, "││")
			out += "\n" + table + "\n"
		}
	}
	return out
}

func TestFleetOfOneProcess(t *testing.T) {
	f := view.Fleet{Workers: []view.Worker{{ID: 0, State: event.Hosting, Members: collective.IDs(12)}}}
	d, c := openFleet(t, 120, 40, f, "")
	d.shows("in-process", "all workers share one process", "`brood worker`", "in the coordinator's process",
		"3000 steps/s, 100 % of all", "memory")
	d.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	d.shows("all workers share one process", "`brood worker`")
	d.press("tab", "enter")
	if d.Popup != nil || !strings.Contains(d.Toast.Text, "share one process") {
		t.Errorf("enter on no link says %q", d.Toast.Text)
	}
	c.now.Workers[0].Name = "node"
	there := c.now.Workers
	c.now.Workers = nil
	d.nextSurvey()
	d.shows("no workers: start one", "there are no workers yet")
	c.now.Workers = there
	d.nextSurvey()
	d.shows("a single worker has no links")
	c.now.Workers = append(c.now.Workers, view.Worker{ID: 1, Name: "other"})
	d.nextSurvey()
	d.shows("nothing was measured between the workers yet")
}

func TestFleetOfARecording(t *testing.T) {
	d := openRecording(t, 120, 40, sourcetest.Run(12, 60))
	d.press("end", "2", "j")
	d.shows("3 workers, recorded", "not recorded: round trips, silence; the traffic of links is on Network", "▸ w2",
		"4–7", "enter details  o order")
	d.hides("cordon", "─ links ─")
	for _, key := range []string{"c", "d", "u", "K"} {
		d.Toast = panel.Toast{}
		if d.press(key); !strings.Contains(d.Toast.Text, "this is a recording") {
			t.Errorf("%s says %q", key, d.Toast.Text)
		}
	}
	d.press("5")
	d.hides("─ links ─")
}

// TestFleetCountsWorkers checks the counts in the title, and that a waiting run shows on every screen how many workers
// are missing and no population size.
func TestFleetCountsWorkers(t *testing.T) {
	d, c := openFleet(t, 120, 40, fleetOf(5), "")
	d.shows("fleet ─", "5 workers, 4 hosting · by worker")
	c.now.Workers = c.now.Workers[:3]
	d.nextSurvey()
	d.shows("3 workers, all hosting")

	c = &fleetSource{Memory: sourcetest.NewMemory(sourcetest.Run(12, 400)[:1]...),
		now: view.Fleet{Wait: 2, Workers: []view.Worker{{ID: 0, Name: "node", State: event.Idle}}}}
	d = open(t, 120, 40, nil, func(o *panel.Options) { o.Source = c })
	d.nextSurvey()
	d.shows("waiting for workers: 1 of 2 have joined", "population size    –")
	d.hides("0 members")
	d.press("2")
	d.nextSurvey()
	d.shows("1 joined, 2 required", "w0 is ready: the first round waits for 1 worker more")
	d.hides("more workers than members")
}

func TestFleetText(t *testing.T) {
	for want, ids := range map[string][]engine.Member{"": nil, "7": {7}, "0–3": collective.IDs(4),
		"0–1,3,5–7": {0, 1, 3, 5, 6, 7}} {
		if got := textfmt.MemberRanges(ids); got != want {
			t.Errorf("%v is %q, want %q", ids, got, want)
		}
	}
	for _, x := range []float64{0, 1, 12, 999, 1e3, 12345, 99.94e3, 999.4e3, 1e6, 1e9, 123e9} {
		if s := textfmt.ShortSize(x); cell.Width(s) > 5 || strings.Contains(s, " ") {
			t.Errorf("%g bytes are %q", x, s)
		}
	}
	for _, d := range []time.Duration{0, 120 * time.Microsecond, 9996 * time.Microsecond, 99960 * time.Microsecond,
		9999 * time.Millisecond, time.Minute} {
		if s := fleet.Latency(d); cell.Width(s) > 7 {
			t.Errorf("%v is %q", d, s)
		}
	}
	for want, s := range map[string]string{"rack…node1": "rack1-node1", "short": "short"} {
		if got := textfmt.CutMiddle(s, 10); got != want {
			t.Errorf("%s is cut to %q, want %q", s, got, want)
		}
	}
	for want, s := range map[string]string{"/d/iris": "/d/iris", "…/iris.csv": "/home/somebody/data/iris.csv",
		"a-lo…e.csv": "/data/a-long-table.csv", "…/iris/": "/home/somebody/iris/", "glyp…glyph": "glyphs-of-a-glyph"} {
		if got := textfmt.FileCut(s, 10); got != want {
			t.Errorf("the file %s is cut to %q, want %q", s, got, want)
		}
	}
}

// TestMembersOfAWorkerAreNamedWhole checks that the members of a worker are listed completely in a population of
// hundreds.
func TestMembersOfAWorkerAreNamedWhole(t *testing.T) {
	roster := collective.Roster{Members: collective.IDs(256), Owner: make([]int, 256)}
	for i := 128; i < 256; i++ {
		roster.Owner[i] = 1
	}
	rs := sourcetest.Run(6, 40)
	for i := range rs {
		if rs[i].Plan != nil {
			rs[i].Plan.New = roster
		}
	}
	d := open(t, 60, 20, rs, nil)
	d.press("2").shows("128  0–127", "128  128–255")
}
