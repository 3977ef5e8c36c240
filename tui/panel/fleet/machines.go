package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// machinePanels returns the panels of the Machines screen: a table of the processes of the run, and the history of
// the selected one.
func (f *Fleet) machinePanels() []panel.Panel {
	move := panel.Steps(f.moveProcess)
	const group = "machines (on their screen)"
	keys := []panel.Binding{
		{Keys: []string{"j", "down"}, Title: "next process", Do: move(1)},
		{Keys: []string{"up"}, Title: "previous process", Do: move(-1)},
		{Keys: []string{"g", "home"}, Title: "first", Do: move(-1 << 30)},
		{Keys: []string{"G", "end"}, Title: "last", Do: move(1 << 30)},
	}
	hints := func(m *panel.Host) [][2]string {
		out := [][2]string{{"↑↓", "process"}}
		if m.Replay == nil {
			out = append(out, [2]string{"←→", "round"})
		}
		return append(out, [2]string{"+-", "zoom"}, [2]string{"/", "filter"}, [2]string{"E", "export"})
	}
	rows := &panel.List{Name: "machines", Entries: "machines", Top: func() { f.process = event.Here }}
	return []panel.Panel{
		{
			ID: panel.Machines, Title: f.machinesTitle, Draw: f.drawMachines, Group: group, Keys: keys, Hints: hints,
			Screen: &panel.Screen{Digit: 6, Name: "Machines", Short: "Mach", Charts: true, Place: placeMachines},
			List:   rows,
			Export: panel.ViewExport(panel.MachineRows),
			Point: func(m *panel.Host, r cell.Rect, _, y int) {
				rows, at := f.processes(m)
				if i, ok := panel.TableRowAt(r, y, len(rows), at, 0); ok {
					f.process = rows[i].worker
				}
			},
		},
		{
			ID: panel.MachineHistory, Title: f.historyTitle, Draw: f.drawHistory, Group: group, Keys: keys, Hints: hints,
			List: rows, Export: panel.ViewExport(panel.MachineRows),
			Plot: f.plotHistory,
		},
	}
}

// plotHistory returns the plot of the tile at x, y.
func (f *Fleet) plotHistory(m *panel.Host, r cell.Rect, x, y int) cell.Rect {
	rows, at := f.processes(m)
	if len(rows) == 0 {
		return cell.Rect{}
	}
	n, cols := panel.FitTiles(r, len(f.processTiles(m, rows[at])), panel.LowTileH)
	return panel.TilePlot(panel.LayoutTiles(r, n, cols), x, y)
}

// minMeasured is the run length below which a run may end before anything is recorded of its machines.
const minMeasured = 3 * time.Second

// placeMachines lays out the Machines screen: the table takes the lines that its rows need, up to half. Without
// measurements the table fills the screen.
func placeMachines(m *panel.Host, b cell.Rect) []panel.Placement {
	if len(m.Shown.Processes) == 0 && !m.CanSurvey() {
		return []panel.Placement{{Panel: panel.Machines, Area: b}}
	}
	n := max(len(m.Shown.Processes), len(m.Shown.Members().Workers())+1)
	table, history := b.Top(min(max(n+3, 5), b.H/2))
	return []panel.Placement{{Panel: panel.Machines, Area: table}, {Panel: panel.MachineHistory, Area: history}}
}

// MachineRow is a process of the run in the table.
type MachineRow struct {
	worker int
	name   string // of its machine; "" if unknown
	hosts  int    // members
	Values map[event.Measure]float64
}

// processes returns the processes that pass the filter, the coordinator first, and the index of the selected one.
func (f *Fleet) processes(m *panel.Host) (rows []MachineRow, at int) {
	for _, x := range f.everyProcess(m) {
		if m.MatchesFilter("machines", panel.ProcessName(x.worker), x.name) {
			rows = append(rows, x)
		}
	}
	return rows, max(0, slices.IndexFunc(rows, func(x MachineRow) bool { return x.worker == f.process }))
}

// everyProcess returns all processes: their live values if the run is measured and there is no cursor, else the
// recorded values at the cursor or the end.
func (f *Fleet) everyProcess(m *panel.Host) (rows []MachineRow) {
	v := m.Shown
	now := f.Now.Machines
	live := m.CanSurvey() && !m.Cursor.On && len(now) > 0
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
		row := MachineRow{worker: x.Worker, hosts: v.Hosted(x.Worker, processes), Values: x.Values}
		if i := slices.IndexFunc(f.Now.Workers, func(w view.Worker) bool { return w.ID == x.Worker }); i >= 0 &&
			x.Worker != event.Here {
			row.name, row.hosts = f.Now.Workers[i].Name, len(f.Now.Workers[i].Members)
		}
		if live && m.Running() && v.Rates.Weight > 0 && row.hosts > 0 {
			share := float64(row.hosts) / float64(max(1, all))
			row.Values = map[event.Measure]float64{view.Samples: v.Rates.Samples * share}
			maps.Copy(row.Values, x.Values)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b MachineRow) int { return cmp.Compare(a.worker, b.worker) })
	return rows
}

// recorded returns the recorded values of a process at the cursor, or the last ones.
func (f *Fleet) recorded(m *panel.Host, worker int) map[event.Measure]float64 {
	out := map[event.Measure]float64{}
	for i := range m.Shown.Machines {
		s := &m.Shown.Machines[i]
		if s.Name == string(view.Between) { // series of links, not of processes
			continue
		}
		if x, ok := m.ShownValue(s, view.Process(worker)); ok {
			out[event.Measure(s.Name)] = x
		}
	}
	return out
}

func (f *Fleet) moveProcess(m *panel.Host, d int) {
	if rows, at := f.processes(m); len(rows) > 0 {
		f.process = rows[min(max(0, at+d), len(rows)-1)].worker
	}
}

func (f *Fleet) machinesTitle(m *panel.Host) (string, string) {
	note := "1 process"
	if n := len(f.everyProcess(m)); n != 1 {
		note = fmt.Sprintf("%d processes", n)
	}
	switch {
	case m.Cursor.On:
		note += " · " + m.CursorNote()
	case m.CanSurvey() && len(f.Now.Machines) > 0:
		note += " · now"
	default:
		note += " · last recorded"
	}
	return "machines", m.FilterNote("machines", note)
}

// value formats a measure; a dash if it is unknown, which differs from 0.
func (x MachineRow) value(name event.Measure, text func(float64) string) string {
	if v, ok := x.Values[name]; ok {
		return text(v)
	}
	return "–"
}

// part formats a used amount and its total.
func (x MachineRow) part(used, of event.Measure, text, total func(float64) string) string {
	a, b := x.value(used, text), x.value(of, total)
	if a == "–" && b == "–" {
		return "–"
	}
	return a + " / " + b
}

// coresText formats a number of processors.
func coresText(x float64) string {
	if x == float64(int(x)) || x >= 99.95 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

// usageRole returns the warning role if more than 90 % of the total is used.
func (x MachineRow) usageRole(used, of event.Measure) cell.Role {
	if all := x.Values[of]; all > 0 && x.Values[used] > 0.9*all {
		return cell.Warn
	}
	return cell.Plain
}

// DeviceUsageRole is usageRole of device memory, including what other processes use if known.
func DeviceUsageRole(x MachineRow) cell.Role {
	if _, ok := x.Values[event.DeviceTaken]; ok {
		return x.usageRole(event.DeviceTaken, event.DeviceTotal)
	}
	return x.usageRole(event.DeviceUsed, event.DeviceTotal)
}

// Device describes the device of the process with the known measures.
func (x MachineRow) Device() string {
	var out []string
	if used := x.part(event.DeviceUsed, event.DeviceTotal, textfmt.Size, textfmt.Size); used != "–" {
		out = append(out, used+" held")
	}
	for _, f := range []struct {
		name event.Measure
		text func(float64) string
	}{
		{event.DeviceTaken, func(x float64) string { return textfmt.Size(x) + " used in total" }},
		{event.DeviceLoad, func(x float64) string { return fmt.Sprintf("%.0f %% busy", 100*x) }},
		{event.DeviceHeat, func(x float64) string { return fmt.Sprintf("%.0f °C", x) }},
	} {
		if v, ok := x.Values[f.name]; ok {
			out = append(out, f.text(v))
		}
	}
	return strings.Join(out, ", ")
}

func milliseconds(seconds float64) string { return panel.Milliseconds(seconds) + " ms" }

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

func machineColumns() []panel.Column[MachineRow] {
	cpu := func(used, of event.Measure) func(MachineRow) string {
		return func(x MachineRow) string { return x.part(used, of, textfmt.OneDecimal, coresText) }
	}
	one := func(name event.Measure, text func(float64) string) func(MachineRow) string {
		return func(x MachineRow) string { return x.value(name, text) }
	}
	part := func(used, of event.Measure) func(MachineRow) string {
		return func(x MachineRow) string { return x.part(used, of, textfmt.Size, textfmt.Size) }
	}
	usage := func(used, of event.Measure) func(MachineRow) cell.Role {
		return func(x MachineRow) cell.Role { return x.usageRole(used, of) }
	}
	return []panel.Column[MachineRow]{
		panel.FigureColumn("members", 7, 2, func(x MachineRow) string { return fmt.Sprint(x.hosts) }),
		panel.FigureColumn("cpu", 11, 10, cpu(event.Busy, event.Cores)),
		panel.FigureColumn("machine load", 12, 6, cpu(event.Load, event.AllCores)).WithRole(usage(event.Load, event.AllCores)),
		panel.FigureColumn("memory", 7, 9, one(event.Memory, textfmt.Size)),
		panel.FigureColumn("machine memory", 17, 7, part(event.MemoryUsed, event.MemoryTotal)).
			WithRole(usage(event.MemoryUsed, event.MemoryTotal)),
		panel.FigureColumn("device memory", 17, 4, part(event.DeviceUsed, event.DeviceTotal)).WithRole(DeviceUsageRole),
		panel.FigureColumn("device", 6, 1, one(event.DeviceLoad, percent)),
		panel.FigureColumn("°C", 4, 0, one(event.DeviceHeat, func(x float64) string { return fmt.Sprintf("%.0f", x) })),
		panel.FigureColumn("samples/s", 9, 8, one(view.Samples, textfmt.Rate)),
		panel.FigureColumn("RTT", 7, 5, one(event.RoundTrip, milliseconds)),
		panel.FigureColumn("tx/s", 7, 4, one(event.Sent, textfmt.Size)),
		panel.FigureColumn("rx/s", 7, 3, one(event.Received, textfmt.Size)),
	}
}

// noMachinesText returns why there are no machines to show.
func (f *Fleet) noMachinesText(m *panel.Host) string {
	if m.CanSurvey() && f.Answered && f.err != nil {
		return "the workers do not answer: " + f.err.Error()
	}
	took := m.Live.Elapsed()
	if m.Replay != nil {
		e := m.Replay.Extent()
		if !e.Whole || m.Shown.Progress.Rounds < e.Rounds {
			return "no measurements of machines are recorded up to here"
		}
		took = e.Elapsed
	}
	switch {
	case !m.Shown.Over() && !m.Killed() && m.Replay == nil:
		return m.WaitingText("the load of machines, measured once a second,")
	case took < minMeasured:
		return "machines are measured once a second at the end of a round: this run ended after " +
			textfmt.Duration(took)
	}
	return "this log has no measurements of machines"
}

func (f *Fleet) drawMachines(m *panel.Host, g *cell.Grid, r cell.Rect) {
	rows, at := f.processes(m)
	if len(rows) == 0 {
		text := f.noMachinesText(m)
		if len(f.everyProcess(m)) > 0 {
			text = m.NoMatchText("machines", "machine")
		}
		panel.Explain(g, r, text)
		return
	}
	const left = 11 // cells of the cursor and the process label
	all := machineColumns()
	all = slices.DeleteFunc(all, func(c panel.Column[MachineRow]) bool { // drop columns without any value
		return !slices.ContainsFunc(rows, func(x MachineRow) bool { return strings.Trim(c.Text(x), "– /") != "" })
	})
	least := 0
	if slices.ContainsFunc(rows, func(x MachineRow) bool { return x.name != "" }) {
		least = machineLeast
	}
	cols, name := panel.FitColumns(all, r.W-left-3, least, machineMost)
	if least == 0 {
		name = 0
	}
	g.Text(r.X+2, r.Y, left-3, cell.Faint, "process")
	g.Text(r.X+left+1, r.Y, name, cell.Faint, "machine")
	x := r.X + left + 1 + name
	if name > 0 {
		x += 2
	}
	panel.DrawTableHead(g, x, r.Y, cols)
	first, n := panel.TableWindow(r, len(rows), at, 0)
	for i, row := range rows[first : first+n] {
		y, role := r.Y+1+i, cell.Plain
		if first+i == at {
			role = cell.FocusTitle
			g.Set(r.X, y, '▸', role)
		}
		g.Text(r.X+2, y, left-3, role, panel.ProcessName(row.worker))
		g.Text(r.X+left+1, y, name, role, textfmt.CutMiddle(row.name, name))
		panel.DrawTableRow(g, x, y, cols, role, row)
	}
	panel.DrawMore(g, r.X+1, r.Y+1, first, n, len(rows))
}

func (f *Fleet) historyTitle(m *panel.Host) (string, string) {
	rows, at := f.processes(m)
	if len(rows) == 0 {
		return "history", ""
	}
	what := "the coordinator's process"
	if x := rows[at]; x.worker != event.Here {
		what = "worker " + textfmt.WorkerLabel(x.worker)
		if x.name != "" {
			what += " on " + x.name
		}
	}
	return "history  " + what, m.WindowNote()
}

// processTiles returns the tiles of a process, one for each recorded quantity.
func (f *Fleet) processTiles(m *panel.Host, x MachineRow) (out []panel.Tile) {
	degrees := func(x float64) string { return fmt.Sprintf("%.0f °C", x) }
	for _, t := range []struct {
		title       string
		one, second event.Measure // the curves; the second is fainter
		of          event.Measure // its total; "": unknown
		text, axis  func(float64) string
	}{
		{"cpu  ── process ╌╌ machine", event.Busy, event.Load, event.Cores, textfmt.OneDecimal, nil},
		{"memory", event.Memory, "", event.MemoryTotal, textfmt.Size[float64], textfmt.ShortSize},
		{"samples/s", view.Samples, "", "", textfmt.Rate, nil},
		{"bytes/s  ── sent ╌╌ received", event.Sent, event.Received, "", textfmt.Size[float64], textfmt.ShortSize},
		{"round trip", event.RoundTrip, "", "", milliseconds, panel.Milliseconds},
		{"machine memory", event.MemoryUsed, "", event.MemoryTotal, textfmt.Size[float64], textfmt.ShortSize},
		{"device memory  ── held ╌╌ taken", event.DeviceUsed, event.DeviceTaken, event.DeviceTotal,
			textfmt.Size[float64], textfmt.ShortSize},
		{"device busy", event.DeviceLoad, "", "", percent, percent},
		{"device temperature", event.DeviceHeat, "", "", degrees, nil},
	} {
		s := m.Shown.MachinesOf(t.one)
		if s == nil || !slices.Contains(s.Members, view.Process(x.worker)) {
			continue
		}
		text := t.text
		c := panel.Tile{
			Title:  t.title,
			Value:  x.value(t.one, text),
			Axis:   t.axis,
			Floor:  true,
			Curves: []panel.Curve{panel.MemberCurve(s, view.Process(x.worker), cell.Centre)},
		}
		if second := m.Shown.MachinesOf(t.second); t.second == "" || second == nil ||
			!slices.Contains(second.Members, view.Process(x.worker)) {
			c.Title, _, _ = strings.Cut(t.title, "  ──")
		} else {
			line := panel.MemberCurve(second, view.Process(x.worker), cell.Member)
			line.Style = chart.Dots
			c.Curves = append([]panel.Curve{line}, c.Curves...)
		}
		if _, ok := x.Values[t.of]; ok && t.of != "" {
			end := text
			if t.of == event.Cores {
				end = coresText
			}
			c.Value += " of " + x.value(t.of, end)
		}
		out = append(out, c)
	}
	return out
}

func (f *Fleet) drawHistory(m *panel.Host, g *cell.Grid, r cell.Rect) {
	rows, at := f.processes(m)
	if len(rows) == 0 {
		return
	}
	tiles := f.processTiles(m, rows[at])
	if len(tiles) == 0 {
		panel.Explain(g, r, "no measurements of this process are recorded yet: a worker reports at most one a second")
		return
	}
	n, cols := panel.FitTiles(r, len(tiles), panel.LowTileH)
	for i, place := range panel.LayoutTiles(r, n, cols) {
		m.DrawTile(g, place, tiles[i], false)
	}
}
