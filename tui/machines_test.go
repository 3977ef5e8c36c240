package tui

import (
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/panel/fleet"
)

// rowOf returns the line of the table of machines for a process.
func rowOf(d *desk, process string) string {
	d.t.Helper()
	for line := range strings.SplitSeq(d.screenText(), "\n") {
		if f := strings.Fields(strings.Trim(line, "│▸ ")); len(f) > 1 && f[0] == process {
			return strings.Join(f, " ")
		}
	}
	d.t.Fatalf("no process %s:\n%s", process, d.screenText())
	return ""
}

// TestMachinesScreen checks that the table has the live values, or the recorded ones at the cursor; a worker that
// reports nothing has dashes instead of 0.
func TestMachinesScreen(t *testing.T) {
	f := fleetOf(3)
	f.Machines = []event.Machine{
		{Worker: event.Here, Values: map[event.Measure]float64{event.Busy: 0.25, event.Cores: 2, event.Memory: 55e6}},
		{Worker: 1, Values: map[event.Measure]float64{event.Busy: 7.9, event.Cores: 8, event.MemoryUsed: 31e9,
			event.MemoryTotal: 32e9, event.RoundTrip: 0.0123}},
		{Worker: 2}, {Worker: 3},
	}
	c := &fleetSource{Memory: sourcetest.NewMemory(sourcetest.Run(12, 400)...), now: f}
	d := open(t, 200, 50, nil, func(o *panel.Options) { o.Source = c })
	if d.press("6"); c.asked == 0 {
		t.Error("the machines were not requested")
	}
	d.shows("6 Machines", "4 processes · now", "machine memory", "history  the coordinator's process")
	if got := rowOf(d, "run"); got != "run 0 0.2 / 2 55.0 MB – – –" {
		t.Errorf("the run's process: %q", got)
	}
	if got := rowOf(d, "w1"); got != "w1 rack1-node1 4 7.9 / 8 – 31.0 GB / 32.0 GB 128k 12.3 ms" {
		t.Errorf("w1: %q", got)
	}
	if got := rowOf(d, "w3"); !strings.HasPrefix(got, "w3 rack1-node3 4 – – – 128k") || strings.Contains(got, " 0") {
		t.Errorf("w3, which tells nothing: %q", got)
	}
	d.press("left")
	d.shows("4 processes · at round")
	if got := rowOf(d, "w1"); !strings.Contains(got, "3.4 / 4") && !strings.Contains(got, "3.5 / 4") {
		t.Errorf("at the cursor the log has of w1: %q", got)
	}
	if got := rowOf(d, "w3"); strings.Contains(got, "0 / ") {
		t.Errorf("at the cursor w3 has %q", got)
	}
	d.press("down", "down")
	d.shows("history  worker w2 on rack1-node2", "device temperature", "of 80.0 GB")
	d.press("down")
	d.shows("history  worker w3", "round trip", "bytes/s")
	d.hides("device temperature", "device busy")
	at := d.Placed[1].Area
	d.Update(tea.MouseClickMsg{X: at.X + 25, Y: at.Y + 5})
	if d.Focus != panel.MachineHistory || d.Cursor.Round < 50 || d.Cursor.Round > 200 {
		t.Errorf("a click in the history leads to %s and %+v", d.Focus, d.Cursor)
	}
	d.press("/", "n", "o", "d", "e", "2", "enter")
	d.shows("history  worker w2")
	all := d.panel(panel.Machines).Export(d.model.Host)(d.Shown)
	names := map[string]int{}
	for _, r := range all[1:] {
		names[r[0]+" "+r[1]]++
	}
	if names["cpu run"] == 0 || names["device_celsius w2"] == 0 || names["cpu w3"] != 0 || names["samples w3"] == 0 ||
		names["cpu all"] != 0 {
		t.Errorf("it exports %v", names)
	}
}

// TestMachinesOfARecording checks the history in a replay and the messages for a log without measurements and for a
// run that does not answer.
func TestMachinesOfARecording(t *testing.T) {
	rs := sourcetest.Run(12, 60)
	d := open(t, 120, 36, nil, func(o *panel.Options) { o.Source, o.Commander = fastReplay(&memoryLog{rs: rs}), nil })
	d.press("end", "6", "down")
	d.shows("4 processes · last recorded", "samples/s", "history  worker w1")
	var before []event.Record
	for _, r := range rs {
		if r.Machines == nil {
			before = append(before, r)
		}
	}
	d = openRecording(t, 120, 36, before)
	d.press("end", "6")
	d.shows("this log has no measurements of machines")
	d = open(t, 120, 36, nil, func(o *panel.Options) {
		o.Source, o.Commander = fastReplay(&memoryLog{rs: before}),
			nil
	})
	d.press("home", "6")
	d.shows("no measurements of machines are recorded up to here")
	d.hides("this run ended after")
	c := &fleetSource{Memory: sourcetest.NewMemory(before...), err: errors.New("no way there")}
	d = open(t, 120, 36, nil, func(o *panel.Options) { o.Source = c })
	d.press("6")
	d.shows("the workers do not answer: no way there")
}

// TestMachinesOfManyWorkers checks that a long table scrolls with its cursor and leaves space for the history.
func TestMachinesOfManyWorkers(t *testing.T) {
	f := fleetOf(64)
	for _, w := range f.Workers {
		f.Machines = append(f.Machines, event.Machine{Worker: w.ID,
			Values: map[event.Measure]float64{event.Busy: float64(w.ID)}})
	}
	c := &fleetSource{Memory: sourcetest.NewMemory(sourcetest.Run(64, 400)...), now: f}
	for _, size := range [][2]int{{80, 24}, {120, 36}, {200, 50}} {
		d := open(t, size[0], size[1], nil, func(o *panel.Options) { o.Source = c })
		d.press("6", "G")
		d.shows("w64", "64 processes", "history  worker w64")
		d.press("g")
		d.shows("▸ w1 ")
	}
}

// TestTiles checks that tiles fill the area in rows.
func TestTiles(t *testing.T) {
	for _, c := range []struct{ w, h, n, shown, cols int }{
		{80, 21, 12, 4, 2}, {200, 47, 12, 12, 4}, {200, 47, 20, 12, 4}, {120, 33, 12, 9, 3}, {200, 47, 3, 3, 3}, {200,
			47, 5, 5, 3}, {80, 21, 0, 0, 1}, {30, 5, 4, 1, 1},
	} {
		r := cell.Rect{W: c.w, H: c.h}
		shown, cols := panel.FitTiles(r, c.n, panel.TileH)
		if shown != c.shown || cols != c.cols {
			t.Errorf("%d tiles in %dx%d: %d in %d columns, want %d in %d", c.n, c.w, c.h, shown, cols, c.shown, c.cols)
		}
		area := 0
		for i, p := range panel.LayoutTiles(r, shown, cols) {
			if p.W < min(panel.TileW, c.w) || p.X < r.X || p.Y < r.Y || p.X+p.W > r.X+r.W || p.Y+p.H > r.Y+r.H {
				t.Errorf("tile %d of %d in %dx%d is at %+v", i, shown, c.w, c.h, p)
			}
			area += p.W * p.H
		}
		if shown > 0 && area != c.w*c.h {
			t.Errorf("%d tiles in %dx%d cover %d cells", shown, c.w, c.h, area)
		}
	}
}

// TestDeviceFigures checks that the Fleet and Machines screens show the device measures that the driver reports, and
// warn if other processes use much of its memory.
func TestDeviceFigures(t *testing.T) {
	f := fleetOf(3)
	held := map[event.Measure]float64{event.DeviceUsed: 12e9, event.DeviceTotal: 80e9}
	values := map[event.Measure]float64{event.DeviceUsed: 12e9, event.DeviceTotal: 80e9, event.DeviceTaken: 75e9,
		event.DeviceLoad: 0.87, event.DeviceHeat: 61}
	f.Machines = []event.Machine{{Worker: event.Here}, {Worker: 1}, {Worker: 2, Values: held},
		{Worker: 3, Values: values}}
	if (fleet.MachineRow{Values: held}).Device() != "12.0 GB / 80.0 GB held" ||
		fleet.DeviceUsageRole(fleet.MachineRow{Values: held}) != cell.Plain ||
		fleet.DeviceUsageRole(fleet.MachineRow{Values: values}) != cell.Warn {
		t.Error("the measures of devices")
	}
	c := &fleetSource{Memory: sourcetest.NewMemory(sourcetest.Run(12, 400)...), now: f}
	d := open(t, 200, 50, nil, func(o *panel.Options) { o.Source = c })
	d.press("2", "j", "j")
	d.shows("cuda:0 NVIDIA H100", "12.0 GB / 80.0 GB held, 75.0 GB used in total", "busy, 61 °C")
	d.press("k")
	d.shows("12.0 GB / 80.0 GB held")
	d.hides("used in total")
	d.press("6")
	if got := rowOf(d, "w3"); !strings.Contains(got, "12.0 GB / 80.0 GB 87 % 61") {
		t.Errorf("w3: %q", got)
	}
}

// TestRestartsOfPrograms checks that the Fleet screen shows restarts of objective programs, if any.
func TestRestartsOfPrograms(t *testing.T) {
	f := fleetOf(3)
	f.Machines = []event.Machine{{Worker: event.Here},
		{Worker: 1, Values: map[event.Measure]float64{event.Restarts: 0}},
		{Worker: 2, Values: map[event.Measure]float64{event.Restarts: 14}}}
	c := &fleetSource{Memory: sourcetest.NewMemory(sourcetest.Run(12, 400)...), now: f}
	d := open(t, 200, 50, nil, func(o *panel.Options) { o.Source = c })
	d.press("2")
	d.hides("restart")
	d.press("j")
	d.shows("14 restarts (see Alerts)")
}

// TestMachinesOfAShortRun checks the message for a run that ended before anything of its machines was recorded.
func TestMachinesOfAShortRun(t *testing.T) {
	var rs []event.Record
	for _, r := range sourcetest.Run(3, 12) {
		if r.Machines == nil {
			rs = append(rs, r)
		}
	}
	rs = append(rs, event.Record{At: rs[len(rs)-1].At, State: &event.State{Phase: event.Finished}})
	d := open(t, 120, 40, rs, nil)
	d.press("6")
	d.shows("machines are measured once a second at the end of a round: this run ended after")
	d.hides("─ history")
}
