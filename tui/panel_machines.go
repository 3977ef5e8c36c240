package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

const (
	machinesPanel panelID = "machines"
	historyTiles  panelID = "machine"
)

// machinePanels returns the panels of the Machines screen: a table of the processes of the run, and the history of
// the selected one.
func (f *fleet) machinePanels() []panel {
	move := func(d int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { f.moveProcess(m, d); return nil }
	}
	const group = "machines (on their screen)"
	keys := []binding{
		{keys: []string{"j", "down"}, title: "next process", do: move(1)},
		{keys: []string{"up"}, title: "process before", do: move(-1)},
		{keys: []string{"g", "home"}, title: "first", do: move(-1 << 30)},
		{keys: []string{"G", "end"}, title: "last", do: move(1 << 30)},
	}
	hints := func(m *model) [][2]string {
		out := [][2]string{{"↑↓", "process"}}
		if m.replay == nil {
			out = append(out, [2]string{"←→", "round"})
		}
		return append(out, [2]string{"+-", "zoom"}, [2]string{"/", "filter"}, [2]string{"E", "export"})
	}
	rows := &list{name: "machines", entries: "machines", top: func() { f.process = event.Here }}
	return []panel{
		{
			id: machinesPanel, title: f.machinesTitle, draw: f.drawMachines, group: group, keys: keys, hints: hints,
			screen: &screen{digit: 6, name: "Machines", short: "Mach", charts: true, place: placeMachines},
			list:   rows,
			export: plainly(machineRows),
			point: func(m *model, r cell.Rect, _, y int) {
				rows, at := f.processes(m)
				if i, ok := tableAt(r, y, len(rows), at, 0); ok {
					f.process = rows[i].worker
				}
			},
		},
		{
			id: historyTiles, title: f.historyTitle, draw: f.drawHistory, group: group, keys: keys, hints: hints,
			list: rows, export: plainly(machineRows),
			point: func(m *model, r cell.Rect, x, y int) {
				if rows, at := f.processes(m); len(rows) > 0 {
					n, cols := tiling(r, len(f.processTiles(m, rows[at])), lowTileH)
					m.pointTile(tiled(r, n, cols), x, y)
				}
			},
		},
	}
}

// minMeasured is the run length below which a run may end before anything is recorded of its machines.
const minMeasured = 3 * time.Second

// placeMachines lays out the Machines screen: the table takes the lines that its rows need, up to half. Without
// measurements the table fills the screen.
func placeMachines(m *model, b cell.Rect) []placement {
	if len(m.shown.Processes) == 0 && !m.measured() {
		return []placement{{machinesPanel, b}}
	}
	n := max(len(m.shown.Processes), len(m.shown.Members().Workers())+1)
	table, history := b.Top(min(max(n+3, 5), b.H/2))
	return []placement{{machinesPanel, table}, {historyTiles, history}}
}

// machineRow is a process of the run in the table.
type machineRow struct {
	worker int
	name   string // of its machine; "" if unknown
	hosts  int    // members
	values map[event.Measure]float64
}

// id returns the label of a process.
func (x machineRow) id() string {
	if x.worker == event.Here {
		return "run"
	}
	return label(x.worker)
}

// processes returns the processes that pass the filter, the coordinator first, and the index of the selected one.
func (f *fleet) processes(m *model) (rows []machineRow, at int) {
	for _, x := range f.everyProcess(m) {
		if m.passes("machines", x.id(), x.name) {
			rows = append(rows, x)
		}
	}
	return rows, max(0, slices.IndexFunc(rows, func(x machineRow) bool { return x.worker == f.process }))
}

// everyProcess returns all processes: their live values if the run is measured and there is no cursor, else the
// recorded values at the cursor or the end.
func (f *fleet) everyProcess(m *model) (rows []machineRow) {
	v := m.shown
	now := f.now.Machines
	live := m.measured() && !m.cursor.on && len(now) > 0
	if !live {
		now = nil
		for _, w := range v.Processes {
			now = append(now, event.Machine{Worker: w, Values: f.recorded(m, w)})
		}
	}
	var processes []int
	for _, x := range now {
		processes = append(processes, x.Worker)
	}
	slices.Sort(processes)
	all := len(v.Members().Members)
	for _, x := range now {
		row := machineRow{worker: x.Worker, hosts: v.Hosted(x.Worker, processes), values: x.Values}
		if i := slices.IndexFunc(f.now.Workers, func(w view.Worker) bool { return w.ID == x.Worker }); i >= 0 &&
			x.Worker != event.Here {
			row.name, row.hosts = f.now.Workers[i].Name, len(f.now.Workers[i].Members)
		}
		if live && m.running() && v.Rates.Weight > 0 && row.hosts > 0 {
			row.values = withSamples(x.Values, v.Rates.Samples*float64(row.hosts)/float64(max(1, all)))
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b machineRow) int { return cmp.Compare(a.worker, b.worker) })
	return rows
}

func withSamples(values map[event.Measure]float64, x float64) map[event.Measure]float64 {
	out := map[event.Measure]float64{view.Samples: x}
	for name, x := range values {
		out[name] = x
	}
	return out
}

// recorded returns the recorded values of a process at the cursor, or the last ones.
func (f *fleet) recorded(m *model, worker int) map[event.Measure]float64 {
	out := map[event.Measure]float64{}
	for i := range m.shown.Machines {
		s := &m.shown.Machines[i]
		if s.Name == string(view.Between) { // series of links, not of processes
			continue
		}
		if x, ok := m.last(s, view.Process(worker)); ok {
			out[event.Measure(s.Name)] = x
		}
	}
	return out
}

func (f *fleet) moveProcess(m *model, d int) {
	if rows, at := f.processes(m); len(rows) > 0 {
		f.process = rows[min(max(0, at+d), len(rows)-1)].worker
	}
}

func (f *fleet) machinesTitle(m *model) (string, string) {
	note := count(len(f.everyProcess(m)), "process")
	if n := len(f.everyProcess(m)); n != 1 {
		note = fmt.Sprintf("%d processes", n)
	}
	switch {
	case m.cursor.on:
		note += " · " + m.cursorNote()
	case m.measured() && len(f.now.Machines) > 0:
		note += " · now"
	default:
		note += " · as recorded last"
	}
	return "machines", m.filterNote("machines", note)
}

// value formats a measure; a dash if it is unknown, which differs from 0.
func (x machineRow) value(name event.Measure, text func(float64) string) string {
	if v, ok := x.values[name]; ok {
		return text(v)
	}
	return "–"
}

// part formats a used amount and its total.
func (x machineRow) part(used, of event.Measure, text func(float64) string) string {
	a, b := x.value(used, text), x.value(of, text)
	if a == "–" && b == "–" {
		return "–"
	}
	return a + " / " + b
}

// cores formats a number of processors.
func cores(x float64) string {
	if x == float64(int(x)) {
		return fmt.Sprintf("%.0f", x)
	}
	if x < 99.95 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func busyCores(x float64) string { return fmt.Sprintf("%.1f", x) }

// usageRole returns the warning role if more than 90 % of the total is used.
func (x machineRow) usageRole(used, of event.Measure) cell.Role {
	if all := x.values[of]; all > 0 && x.values[used] > 0.9*all {
		return cell.Warn
	}
	return cell.Plain
}

// deviceUsageRole is usageRole of device memory, including what other processes use if known.
func deviceUsageRole(x machineRow) cell.Role {
	if _, ok := x.values[event.DeviceTaken]; ok {
		return x.usageRole(event.DeviceTaken, event.DeviceTotal)
	}
	return x.usageRole(event.DeviceUsed, event.DeviceTotal)
}

// device describes the device of the process with the known measures.
func (x machineRow) device() string {
	var out []string
	if used := x.part(event.DeviceUsed, event.DeviceTotal, Size); used != "–" {
		out = append(out, used+" held")
	}
	for _, f := range []struct {
		name event.Measure
		text func(float64) string
	}{
		{event.DeviceTaken, func(x float64) string { return Size(x) + " taken by all" }},
		{event.DeviceLoad, func(x float64) string { return fmt.Sprintf("%.0f %% busy", 100*x) }},
		{event.DeviceHeat, func(x float64) string { return fmt.Sprintf("%.0f °C", x) }},
	} {
		if v, ok := x.values[f.name]; ok {
			out = append(out, f.text(v))
		}
	}
	return strings.Join(out, ", ")
}

func machineColumns() []column[machineRow] {
	cpu := func(used, of event.Measure) func(machineRow) string {
		return func(x machineRow) string {
			a, b := x.value(used, busyCores), x.value(of, cores)
			if a == "–" && b == "–" {
				return "–"
			}
			return a + " / " + b
		}
	}
	one := func(name event.Measure, text func(float64) string) func(machineRow) string {
		return func(x machineRow) string { return x.value(name, text) }
	}
	part := func(used, of event.Measure) func(machineRow) string {
		return func(x machineRow) string { return x.part(used, of, Size) }
	}
	tight := func(used, of event.Measure) func(machineRow) cell.Role {
		return func(x machineRow) cell.Role { return x.usageRole(used, of) }
	}
	seconds := func(x float64) string { return three(1e3*x) + " ms" }
	return []column[machineRow]{
		{head: "members", width: 7, weight: 2, right: true, text: func(x machineRow) string { return fmt.Sprint(x.hosts) }},
		{head: "cpu", width: 11, weight: 10, right: true, text: cpu(event.Busy, event.Cores)},
		{
			head:   "machine load",
			width:  12,
			weight: 6,
			right:  true,
			text:   cpu(event.Load, event.AllCores),
			role:   tight(event.Load, event.AllCores),
		},
		{head: "memory", width: 7, weight: 9, right: true, text: one(event.Memory, Size)},
		{
			head:   "machine memory",
			width:  17,
			weight: 7,
			right:  true,
			text:   part(event.MemoryUsed, event.MemoryTotal),
			role:   tight(event.MemoryUsed, event.MemoryTotal),
		},
		{
			head:   "device memory",
			width:  17,
			weight: 4,
			right:  true,
			text:   part(event.DeviceUsed, event.DeviceTotal),
			role:   deviceUsageRole,
		},
		{
			head:   "device",
			width:  6,
			weight: 1,
			right:  true,
			text:   one(event.DeviceLoad, func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }),
		},
		{
			head:   "°C",
			width:  4,
			weight: 0,
			right:  true,
			text:   one(event.DeviceHeat, func(x float64) string { return fmt.Sprintf("%.0f", x) }),
		},
		{head: "samples/s", width: 9, weight: 8, right: true, text: one(view.Samples, Rate)},
		{head: "RTT", width: 7, weight: 5, right: true, text: one(event.RoundTrip, seconds)},
		{head: "tx/s", width: 7, weight: 4, right: true, text: one(event.Sent, Size)},
		{head: "rx/s", width: 7, weight: 3, right: true, text: one(event.Received, Size)},
	}
}

// emptyReason returns why there are no machines to show.
func (f *fleet) emptyReason(m *model) string {
	if m.measured() && f.answered && f.err != nil {
		return "the workers cannot be asked: " + f.err.Error()
	}
	took := m.live.Elapsed()
	if m.replay != nil {
		e := m.replay.Extent()
		if !e.Whole || m.shown.Progress.Rounds < e.Rounds {
			return "nothing of machines is recorded up to here"
		}
		took = e.Elapsed
	}
	switch {
	case !m.shown.Over() && !m.killed() && m.replay == nil:
		return m.waiting("what machines measure, once a second,")
	case took < minMeasured:
		return "machines are measured once a second, while rounds end: this run was over after " + span(took)
	}
	return "nothing of machines is in this log: it was recorded before they were measured"
}

func (f *fleet) drawMachines(m *model, g *cell.Grid, r cell.Rect) {
	rows, at := f.processes(m)
	if len(rows) == 0 {
		text := f.emptyReason(m)
		if len(f.everyProcess(m)) > 0 {
			text = m.nothing("machines", "machine")
		}
		explain(g, r, text)
		return
	}
	const left = 11 // cells of the cursor and the process label
	all := machineColumns()
	all = slices.DeleteFunc(all, func(c column[machineRow]) bool { // drop columns without any value
		return !slices.ContainsFunc(rows, func(x machineRow) bool { return strings.Trim(c.text(x), "– /") != "" })
	})
	least := 0
	if slices.ContainsFunc(rows, func(x machineRow) bool { return x.name != "" }) {
		least = machineLeast
	}
	cols, name := fitColumns(all, r.W-left-3, least, machineMost)
	if least == 0 {
		name = 0
	}
	g.Text(r.X+2, r.Y, left-3, cell.Faint, "process")
	g.Text(r.X+left+1, r.Y, name, cell.Faint, "machine")
	x := r.X + left + 1 + name
	if name > 0 {
		x += 2
	}
	tableHead(g, x, r.Y, cols)
	first, n := tableWindow(r, len(rows), at, 0)
	for i, row := range rows[first : first+n] {
		y, role := r.Y+1+i, cell.Plain
		if first+i == at {
			role = cell.FocusTitle
			g.Set(r.X, y, '▸', role)
		}
		g.Text(r.X+2, y, left-3, role, row.id())
		g.Text(r.X+left+1, y, name, role, middleCut(row.name, name))
		tableRow(g, x, y, cols, role, row)
	}
	tableMore(g, r, r.X+1, first, n, len(rows))
}

func (f *fleet) historyTitle(m *model) (string, string) {
	rows, at := f.processes(m)
	if len(rows) == 0 {
		return "history", ""
	}
	what := "the run's own process"
	if x := rows[at]; x.worker != event.Here {
		what = "worker " + label(x.worker)
		if x.name != "" {
			what += " on " + x.name
		}
	}
	return "history  " + what, m.windowNote()
}

// processTiles returns the tiles of a process, one for each recorded quantity.
func (f *fleet) processTiles(m *model, x machineRow) (out []tile) {
	ms := func(x float64) string { return three(1e3*x) + " ms" }
	percent := func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
	degrees := func(x float64) string { return fmt.Sprintf("%.0f °C", x) }
	for _, t := range []struct {
		title       string
		one, second event.Measure // the curves; the second is fainter
		of          event.Measure // its total; "": unknown
		text, axis  func(float64) string
	}{
		{"cpu  ── process ╌╌ machine", event.Busy, event.Load, event.Cores, busyCores, nil},
		{"memory", event.Memory, "", event.MemoryTotal, Size, brief},
		{"samples/s", view.Samples, "", "", Rate, nil},
		{"bytes/s  ── sent ╌╌ received", event.Sent, event.Received, "", Size, brief},
		{"round trip", event.RoundTrip, "", "", ms, thousandths},
		{"machine memory", event.MemoryUsed, "", event.MemoryTotal, Size, brief},
		{"device memory  ── held ╌╌ taken", event.DeviceUsed, event.DeviceTaken, event.DeviceTotal, Size, brief},
		{"device busy", event.DeviceLoad, "", "", percent, percent},
		{"device temperature", event.DeviceHeat, "", "", degrees, nil},
	} {
		s := m.shown.MachinesOf(t.one)
		if s == nil || !slices.Contains(s.Members, view.Process(x.worker)) {
			continue
		}
		text := t.text
		c := tile{
			title:  t.title,
			value:  x.value(t.one, text),
			axis:   t.axis,
			floor:  true,
			curves: []curve{lineOf(s, view.Process(x.worker), cell.Centre)},
		}
		if second := m.shown.MachinesOf(t.second); t.second == "" || second == nil ||
			!slices.Contains(second.Members, view.Process(x.worker)) {
			c.title, _, _ = strings.Cut(t.title, "  ──")
		} else {
			line := lineOf(second, view.Process(x.worker), cell.Member)
			line.style = chart.Dots
			c.curves = append([]curve{line}, c.curves...)
		}
		if _, ok := x.values[t.of]; ok && t.of != "" {
			end := text
			if t.of == event.Cores {
				end = cores
			}
			c.value += " of " + x.value(t.of, end)
		}
		out = append(out, c)
	}
	return out
}

func (f *fleet) drawHistory(m *model, g *cell.Grid, r cell.Rect) {
	rows, at := f.processes(m)
	if len(rows) == 0 {
		return
	}
	tiles := f.processTiles(m, rows[at])
	if len(tiles) == 0 {
		explain(g, r, "nothing of this process is recorded yet: it is at most once a second, and of a worker that tells")
		return
	}
	n, cols := tiling(r, len(tiles), lowTileH)
	for i, place := range tiled(r, n, cols) {
		m.drawTile(g, place, tiles[i], false)
	}
}

// machineRows returns the points of each process for an export, without the sum over processes.
func machineRows(v *view.View) rows {
	out := rows{{"measure", "process", "round", "to", "points", "min", "mean", "max"}}
	for i := range v.Machines {
		s := &v.Machines[i]
		if s.Name == string(view.Between) {
			continue
		}
		process := map[string]string{}
		for _, id := range s.Members {
			w := machineRow{worker: int(id) - 1}
			process[memberText(id)] = w.id()
		}
		for _, r := range pointRows(s)[1:] {
			if name, ok := process[r[1]]; ok {
				r[1] = name
				out = append(out, r)
			}
		}
	}
	return out
}
