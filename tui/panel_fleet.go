package tui

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
)

// placeFleet lays out the Fleet screen: the table, the matrix of links and, if it fits, the selected worker. A
// recording has no live links: the table takes their place.
func placeFleet(m *model, b cell.Rect) []placement {
	events := 1
	if b.H >= 30 {
		events = 5
	}
	main, lane := b.Top(b.H - events)
	switch {
	case !m.measured() && b.W >= fullW:
		table, one := main.Left(main.W - max(45, main.W/3))
		return []placement{{fleetPanel, table}, {workerPanel, one}, {eventsPanel, lane}}
	case !m.measured():
		return []placement{{fleetPanel, main}, {eventsPanel, lane}}
	case b.W >= wideW && b.H >= 34:
		left, one := main.Left(main.W - max(52, main.W/3))
		table, links := left.Top(left.H / 2)
		return []placement{{fleetPanel, table}, {linksPanel, links}, {workerPanel, one}, {eventsPanel, lane}}
	case b.W >= fullW:
		table, low := main.Top(main.H * 2 / 5)
		links, one := low.Left(low.W - 45)
		return []placement{{fleetPanel, table}, {linksPanel, links}, {workerPanel, one}, {eventsPanel, lane}}
	}
	table, links := main.Top(main.H / 2)
	return []placement{{fleetPanel, table}, {linksPanel, links}, {eventsPanel, lane}}
}

func (f *fleet) title(m *model) (string, string) {
	all := f.workers(m)
	rows, _ := f.rows(m)
	o := fleetOrders()[f.order]
	arrow := "↑"
	if o.down != f.turned {
		arrow = "↓"
	}
	note := f.counted(m, all)
	if len(rows) < len(all) {
		note = fmt.Sprintf("%d of %s shown", len(rows), count(len(all), "worker"))
	}
	if n := len(f.marked); n > 0 {
		note += fmt.Sprintf(" · %d marked", n)
	}
	return "fleet", m.filterNote("fleet", note+" · by "+o.name+" "+arrow)
}

// counted says how many workers there are, and what they are counted by.
func (f *fleet) counted(m *model, all []fleetRow) string {
	hosting := 0
	for _, x := range all {
		if len(x.Members) > 0 {
			hosting++
		}
	}
	switch here := count(len(all), "worker"); {
	case !m.measured() || f.updatedAt.IsZero():
		return here + ", as logged"
	case f.missing(m) > 0:
		return fmt.Sprintf("%d here, %d needed to begin", len(all), f.now.Wait)
	case hosting < len(all) || len(all) == 0:
		return fmt.Sprintf("%s, %d hosting", here, hosting)
	default:
		return here + ", all hosting"
	}
}

// missing returns how many workers the first round still waits for.
func (f *fleet) missing(m *model) int {
	if m.shown.Plan != nil || !m.measured() || f.updatedAt.IsZero() {
		return 0
	}
	return max(0, f.now.Wait-len(f.now.Workers))
}

const (
	fleetFoot    = 1 // lines below the table
	machineLeast = 8 // least cells of a machine name
	machineMost  = 24
)

func fleetColumns(m *model) []column[fleetRow] {
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
			if x.here() {
				return "–"
			}
			return text(x)
		})
	}
	_, unit := m.pace()
	digits := len(fmt.Sprint(len(m.shown.Members().Members)))
	return []column[fleetRow]{
		{
			head:   "state",
			width:  10,
			weight: 10,
			text:   func(x fleetRow) string { glyph, word, _ := x.standing(); return glyph + " " + word },
			role:   func(x fleetRow) cell.Role { _, _, role := x.standing(); return role },
		},
		{head: "members", width: max(11, digits+2+2*digits+1), weight: 9, // the count and the range of ids
			text: func(x fleetRow) string {
				return strings.TrimRight(fmt.Sprintf("%*d  %s", digits, len(x.Members), ranges(x.Members)), " ")
			}},
		{head: "computes by", width: 20, weight: 1, text: known(func(x fleetRow) string { return x.computes() })},
		{
			head:   unit,
			width:  max(7, len(unit)),
			weight: 8,
			right:  true,
			text:   func(x fleetRow) string { return perSecond(x.rate) },
		},
		{head: "tx/s", width: 7, weight: 6, right: true, text: afar(func(x fleetRow) string { return Size(x.Sent) })},
		{head: "rx/s", width: 7, weight: 2, right: true, text: afar(func(x fleetRow) string { return Size(x.Received) })},
		{head: "RTT", width: 7, weight: 5, right: true, text: afar(func(x fleetRow) string { return latency(x.RTT) })},
		{
			head:   "silent",
			width:  6,
			weight: 7,
			right:  true,
			text:   afar(func(x fleetRow) string { return silence(x) }),
			role:   lateness,
		},
	}
}

// here reports whether the worker runs in the process of the coordinator.
func (x fleetRow) here() bool { return x.Name == "" && x.Address == "" }

// machine returns the name of the machine of the worker.
func (x fleetRow) machine() string {
	switch {
	case !x.measured:
		return "–"
	case x.here():
		return "in-process"
	}
	return x.Name
}

// middleCut shortens a name to n cells in the middle: names of machines in a cluster differ at the end.
func middleCut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n || n < 3 {
		return s
	}
	tail := n / 2
	return string(r[:n-1-tail]) + "…" + string(r[len(r)-tail:])
}

// FileCut shortens a path to n cells and keeps the file name, which matters more than its folders.
func FileCut(s string, n int) string {
	at := strings.LastIndexByte(strings.TrimRight(s, "/"), '/')
	if cell.Width(s) <= n || at < 0 {
		return middleCut(s, n)
	}
	if name := s[at:]; cell.Width(name)+1 <= n {
		return "…" + name
	}
	return middleCut(s[at+1:], n)
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

func lateness(x fleetRow) cell.Role {
	if x.late() {
		return cell.Warn
	}
	return cell.Plain
}

// silence formats the time since the last message of the worker, with a mark if it is too long.
func silence(x fleetRow) string {
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
	return Rate(x)
}

// latency formats a short duration in at most seven characters of constant layout.
func latency(d time.Duration) string {
	if d >= 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return three(float64(d)/1e6) + " ms"
}

func (f *fleet) draw(m *model, g *cell.Grid, r cell.Rect) {
	rows, at := f.rows(m)
	switch {
	case m.measured() && !f.answered:
		explain(g, r, m.waiting("the workers"))
		return
	case len(f.workers(m)) == 0 && f.err == nil:
		explain(g, r, m.noWorkersText())
		return
	case len(rows) == 0 && f.err == nil:
		explain(g, r, m.nothing("fleet", "worker"))
		return
	}
	const left = 7 // cells of the cursor, the mark and the id
	cols, name := fitColumns(fleetColumns(m), r.W-left-1, machineLeast, machineMost)
	g.Text(r.X+3, r.Y, 4, cell.Faint, "id")
	g.Text(r.X+left, r.Y, name, cell.Faint, "machine")
	tableHead(g, r.X+left+name+2, r.Y, cols)
	first, n := tableWindow(r, len(rows), at, fleetFoot)
	for i, x := range rows[first : first+n] {
		y, role := r.Y+1+i, cell.Plain
		if first+i == at {
			role = cell.FocusTitle
			g.Set(r.X+1, y, '▸', role)
		}
		if f.marked[x.ID] {
			g.Set(r.X+2, y, '✓', cell.Staged)
		}
		g.Text(r.X+3, y, 4, role, label(x.ID))
		g.Text(r.X+left, y, name, role, middleCut(x.machine(), name))
		tableRow(g, r.X+left+name+2, y, cols, role, x)
	}
	tableMore(g, r, r.X, first, n, len(rows))
	if r.H > n+fleetFoot {
		text, role := f.says(m, rows, at)
		g.Text(r.X+1, r.Y+r.H-1, r.W-2, role, text)
	}
}

// noWorkersText returns why there is no worker.
func (m *model) noWorkersText() string {
	if m.measured() {
		if m.opt.Session != "" {
			return "no worker is here: `brood invite " + filepath.Base(m.opt.Session) +
				" --role worker` prints the line that starts one"
		}
		return "no worker is here: start one with the line that brood serve printed, `brood worker brood://...`"
	}
	return m.waiting("the workers")
}

// says returns the line below the table: why the table is outdated, or the state of the selected worker.
func (f *fleet) says(m *model, rows []fleetRow, at int) (string, cell.Role) {
	switch err := f.err; {
	case m.measured() && err != nil:
		text := "the workers cannot be asked: " + err.Error()
		if !f.updatedAt.IsZero() {
			text += " · this is " + span(m.opt.Clock().Sub(f.updatedAt)) + " old"
		}
		return text, cell.Alert
	case m.replay != nil:
		return f.unrecorded(m), cell.Faint
	case m.gone():
		return m.ending() + ": who hosted what then, with nobody left to measure", cell.Faint
	case !m.measured():
		return "from the log: this source does not measure workers", cell.Faint
	}
	return rows[at].says()
}

// unrecorded returns what a recording lacks, in place of an empty panel of links.
func (f *fleet) unrecorded(m *model) string {
	if m.shown.MachinesOf(view.Between) != nil {
		return "not recorded: round trips, silence; what links carried is on Network"
	}
	return "not recorded: round trips and losses of links, silence"
}

// says describes the state of a worker in a sentence.
func (x fleetRow) says() (string, cell.Role) {
	name := label(x.ID)
	_, word, role := x.standing()
	switch {
	case x.late():
		return fmt.Sprintf("! %s says nothing for %.1f s: if that goes on it counts as dead", name, x.Silent.Seconds()),
			cell.Warn
	case word == "drained":
		return name + " is drained: it hosts nothing and may be ended · u uncordons it", role
	}
	switch x.State {
	case event.Cordoned:
		return name + " gets no members from the next plan on · u uncordons it", role
	case event.Leaving:
		return name + " leaves: its members move to the others, and then it ends", role
	case event.Joining:
		return name + " reads its data: it gets members with the next plan after that", cell.Faint
	case event.Idle:
		if x.missing > 0 {
			return fmt.Sprintf("%s is ready: the first round waits for %s more", name, count(x.missing, "worker")), cell.Faint
		}
		return name + " hosts nothing: there are more workers than members", cell.Faint
	}
	return fmt.Sprintf("%s hosts %s", name, count(len(x.Members), "member")), cell.Faint
}
