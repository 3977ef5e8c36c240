package fleet

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// place lays out the Fleet screen: the table, the matrix of links and, if they fit, the selected worker and the history
// of its process. A recording and a run in one process have no live links.
func (f *Fleet) place(m *panel.Host, b cell.Rect) []panel.Placement {
	events := 1
	if b.H >= 30 {
		events = 5
	}
	main, lane := b.Top(b.H - events)
	switch {
	case b.W >= panel.FullW && b.H >= 28 && !f.linked(m) && (m.CanSurvey() || len(m.Shown.Processes) > 0),
		b.W >= panel.WideW && b.H >= 34 && m.CanSurvey():
		return append(f.placeWide(m, main), panel.Placement{Panel: panel.Events, Area: lane})
	case !m.CanSurvey() && b.W >= panel.FullW:
		table, one := main.Left(main.W - max(45, main.W/3))
		return []panel.Placement{{Panel: panel.Fleet, Area: table}, {Panel: panel.Worker, Area: one},
			{Panel: panel.Events, Area: lane}}
	case !m.CanSurvey():
		return []panel.Placement{{Panel: panel.Fleet, Area: main}, {Panel: panel.Events, Area: lane}}
	case b.W >= panel.FullW:
		table, low := main.Top(main.H * 2 / 5)
		links, one := low.Left(low.W - 45)
		return []panel.Placement{{Panel: panel.Fleet, Area: table}, {Panel: panel.Links, Area: links},
			{Panel: panel.Worker, Area: one}, {Panel: panel.Events, Area: lane}}
	}
	table, links := main.Top(main.H / 2)
	return []panel.Placement{{Panel: panel.Fleet, Area: table}, {Panel: panel.Links, Area: links},
		{Panel: panel.Events, Area: lane}}
}

// linked reports whether the screen has live links to show: not in a recording, nor if all workers share one process.
func (f *Fleet) linked(m *panel.Host) bool {
	all := f.workers(m)
	return m.CanSurvey() && (len(all) == 0 || slices.ContainsFunc(all, func(x fleetRow) bool { return !x.inProcess() }))
}

// placeWide lays out a wide and high screen. The table and the worker take the lines that they need, and the rest has
// the history. The links are beside the history, or, if there is a third of a very wide screen for them, at the top.
func (f *Fleet) placeWide(m *panel.Host, main cell.Rect) []panel.Placement {
	const veryWide = 240
	workers := len(f.workers(m))
	lines := 13 // of a worker in the process of the coordinator
	if ends := len(f.ends()); ends > 1 {
		lines = 16 + ends
	}
	top, low := main.Top(min(max(workers+4, lines), main.H/2))
	table, one := top.Left(top.W - max(45, top.W/3))
	links, history := low.Left(low.W * 2 / 5)
	switch {
	case !f.linked(m):
		return []panel.Placement{{Panel: panel.Fleet, Area: table}, {Panel: panel.Worker, Area: one},
			{Panel: panel.MachineHistory, Area: low}}
	case main.W >= veryWide:
		table, links = table.Left(table.W / 2)
		history = low
	}
	return []panel.Placement{{Panel: panel.Fleet, Area: table}, {Panel: panel.Links, Area: links},
		{Panel: panel.Worker, Area: one}, {Panel: panel.MachineHistory, Area: history}}
}

func (f *Fleet) title(m *panel.Host) (string, string) {
	all := f.workers(m)
	rows, _ := f.Rows(m)
	o := fleetOrders()[f.order]
	arrow := "↑"
	if o.down != f.reversed {
		arrow = "↓"
	}
	note := f.countText(m, all)
	if len(rows) < len(all) {
		note = fmt.Sprintf("%d of %s shown", len(rows), textfmt.Count(len(all), "worker"))
	}
	if n := len(f.Marked); n > 0 {
		note += fmt.Sprintf(" · %d marked", n)
	}
	return "fleet", m.FilterNote("fleet", note+" · by "+o.name+" "+arrow)
}

// countText returns the number of workers, of those that host members, and of those that are needed.
func (f *Fleet) countText(m *panel.Host, all []fleetRow) string {
	hosting := 0
	for _, x := range all {
		if len(x.Members) > 0 {
			hosting++
		}
	}
	switch here := textfmt.Count(len(all), "worker"); {
	case !m.CanSurvey() || f.updatedAt.IsZero():
		return here + ", recorded"
	case f.missing(m) > 0:
		return fmt.Sprintf("%d joined, %d required", len(all), f.Now.Wait)
	case hosting < len(all) || len(all) == 0:
		return fmt.Sprintf("%s, %d hosting", here, hosting)
	default:
		return here + ", all hosting"
	}
}

// missing returns how many workers the first round still waits for.
func (f *Fleet) missing(m *panel.Host) int {
	if m.Shown.Plan != nil || !m.CanSurvey() || f.updatedAt.IsZero() {
		return 0
	}
	return max(0, f.Now.Wait-len(f.Now.Workers))
}

const (
	fleetFoot    = 1 // lines below the table
	machineLeast = 8 // least cells of a machine name
	machineMost  = 24
)

func fleetColumns(m *panel.Host) []panel.Column[fleetRow] {
	known := func(text func(fleetRow) string) func(fleetRow) string {
		return func(x fleetRow) string {
			if !x.measured {
				return "–"
			}
			return text(x)
		}
	}
	afar := func(text func(fleetRow) string) func(fleetRow) string {
		return known(func(x fleetRow) string {
			if x.inProcess() {
				return "–"
			}
			return text(x)
		})
	}
	_, unit := runRate(m)
	digits := len(fmt.Sprint(len(m.Shown.Members().Members)))
	return []panel.Column[fleetRow]{
		{
			Title:  "state",
			Width:  10,
			Weight: 10,
			Text:   func(x fleetRow) string { glyph, word, _ := x.status(); return glyph + " " + word },
			Role:   func(x fleetRow) cell.Role { _, _, role := x.status(); return role },
		},
		{Title: "members", Width: max(11, digits+2+2*digits+1), Weight: 9, // the count and the range of ids
			Text: func(x fleetRow) string {
				return strings.TrimRight(fmt.Sprintf("%*d  %s", digits, len(x.Members),
					textfmt.MemberRanges(x.Members)), " ")
			}},
		{Title: "computes on", Width: 20, Weight: 1, Text: known(func(x fleetRow) string { return x.computes() })},
		panel.FigureColumn(unit, max(7, len(unit)), 8, func(x fleetRow) string { return perSecond(x.Rate) }),
		panel.FigureColumn("tx/s", 7, 6, afar(func(x fleetRow) string { return textfmt.Size(x.Sent) })),
		panel.FigureColumn("rx/s", 7, 2, afar(func(x fleetRow) string { return textfmt.Size(x.Received) })),
		panel.FigureColumn("RTT", 7, 5, afar(func(x fleetRow) string { return Latency(x.RTT) })),
		panel.FigureColumn("silent", 6, 7, afar(func(x fleetRow) string { return silenceText(x) })).WithRole(silenceRole),
	}
}

// inProcess reports whether the worker runs in the process of the coordinator.
func (x fleetRow) inProcess() bool { return x.Name == "" && x.Address == "" }

// machine returns the name of the machine of the worker.
func (x fleetRow) machine() string {
	switch {
	case !x.measured:
		return "–"
	case x.inProcess():
		return "in-process"
	}
	return x.Name
}

// computes returns the device of the worker, or the processor, and its kernels.
func (x fleetRow) computes() string {
	best, _, _ := strings.Cut(x.Kernels, ",")
	if best = strings.TrimSpace(best); best == "" {
		return "–"
	}
	on, _, _ := strings.Cut(x.Device, " ")
	if on == "" {
		on = "cpu"
	}
	return on + " " + best
}

func silenceRole(x fleetRow) cell.Role {
	if x.late() {
		return cell.Warn
	}
	return cell.Plain
}

// silenceText formats the time since the last message of the worker, with a mark if it is too long.
func silenceText(x fleetRow) string {
	s := fmt.Sprintf("%.1f s", x.Silent.Seconds())
	if x.Silent >= 10*time.Second {
		s = fmt.Sprintf("%.0f s", x.Silent.Seconds())
	}
	if x.late() {
		s = "!" + s
	}
	return s
}

func perSecond(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return textfmt.Rate(x)
}

// Latency formats a short duration in at most seven characters of constant layout.
func Latency(d time.Duration) string {
	if d >= 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return textfmt.ThreeDigits(float64(d)/1e6) + " ms"
}

func (f *Fleet) draw(m *panel.Host, g *cell.Grid, r cell.Rect) {
	rows, at := f.Rows(m)
	switch {
	case m.CanSurvey() && !f.Answered:
		panel.Explain(g, r, m.WaitingText("the workers"))
		return
	case len(f.workers(m)) == 0 && f.err == nil:
		panel.Explain(g, r, noWorkersText(m))
		return
	case len(rows) == 0 && f.err == nil:
		panel.Explain(g, r, m.NoMatchText("fleet", "worker"))
		return
	}
	const left = 7 // cells of the cursor, the mark and the id
	cols, name := panel.FitColumns(fleetColumns(m), r.W-left-1, machineLeast, machineMost)
	g.Text(r.X+3, r.Y, 4, cell.Faint, "id")
	g.Text(r.X+left, r.Y, name, cell.Faint, "machine")
	panel.DrawTableHead(g, r.X+left+name+2, r.Y, cols)
	first, n := panel.TableWindow(r, len(rows), at, fleetFoot)
	for i, x := range rows[first : first+n] {
		y, role := r.Y+1+i, cell.Plain
		if first+i == at {
			role = cell.FocusTitle
			g.Set(r.X+1, y, '▸', role)
		}
		if f.Marked[x.ID] {
			g.Set(r.X+2, y, '✓', cell.Staged)
		}
		g.Text(r.X+3, y, 4, role, textfmt.WorkerLabel(x.ID))
		g.Text(r.X+left, y, name, role, textfmt.CutMiddle(x.machine(), name))
		panel.DrawTableRow(g, r.X+left+name+2, y, cols, role, x)
	}
	panel.DrawMore(g, r.X, r.Y+1, first, n, len(rows))
	if r.H > n+fleetFoot {
		text, role := f.note(m, rows, at)
		g.Text(r.X+1, r.Y+r.H-1, r.W-2, role, text)
	}
}

// noWorkersText returns why there is no worker.
func noWorkersText(m *panel.Host) string {
	if m.CanSurvey() {
		if m.Opt.Session != "" {
			return "no workers: `brood invite " + filepath.Base(m.Opt.Session) +
				" --role worker` prints the command that starts one"
		}
		return "no workers: start one with the command that brood serve printed, `brood worker brood://...`"
	}
	return m.WaitingText("the workers")
}

// note returns the line below the table: why the table is outdated, or the state of the selected worker.
func (f *Fleet) note(m *panel.Host, rows []fleetRow, at int) (string, cell.Role) {
	switch err := f.err; {
	case m.CanSurvey() && err != nil:
		text := "the workers do not answer: " + err.Error()
		if !f.updatedAt.IsZero() {
			text += " · this table is " + textfmt.Duration(m.Opt.Clock().Sub(f.updatedAt)) + " old"
		}
		return text, cell.Alert
	case m.Replay != nil:
		return f.notRecordedText(m), cell.Faint
	case m.Gone():
		return m.EndText() + ": the table shows its last placement", cell.Faint
	case !m.CanSurvey():
		return "from the log: this source does not measure workers", cell.Faint
	}
	return rows[at].summary()
}

// notRecordedText lists what a recording lacks, in place of an empty panel of links.
func (f *Fleet) notRecordedText(m *panel.Host) string {
	if m.Shown.MachinesOf(view.Between) != nil {
		return "not recorded: round trips, silence; the traffic of links is on Network"
	}
	return "not recorded: round trips and losses of links, silence"
}

// summary describes the state of a worker in a sentence.
func (x fleetRow) summary() (string, cell.Role) {
	name := textfmt.WorkerLabel(x.ID)
	_, word, role := x.status()
	switch {
	case x.late():
		return fmt.Sprintf("! %s has been silent for %.1f s: the run removes it if it stays silent", name,
			x.Silent.Seconds()), cell.Warn
	case word == "drained":
		return name + " is drained: it hosts no members and can be stopped · u uncordons it", role
	}
	switch x.State {
	case event.Cordoned:
		return name + " is cordoned: the next plan assigns it no members · u uncordons it", role
	case event.Leaving:
		return name + " is leaving: it ends when its members have moved to the others", role
	case event.Joining:
		return name + " is reading its data: the first plan after that assigns it members", cell.Faint
	case event.Idle:
		if x.missing > 0 {
			return fmt.Sprintf("%s is ready: the first round waits for %s more", name,
				textfmt.Count(x.missing, "worker")), cell.Faint
		}
		return name + " hosts no members: there are more workers than members", cell.Faint
	}
	return fmt.Sprintf("%s hosts %s", name, textfmt.Count(len(x.Members), "member")), cell.Faint
}
