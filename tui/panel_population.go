package tui

import (
	"fmt"

	"brood/models/engine"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

const (
	replicasPanel   panelID = "replicas"
	populationPanel panelID = "population"
)

func newReplicas() panel {
	return panel{id: replicasPanel, title: replicasTitle, draw: drawReplicas, export: replicaRows}
}

func newPopulation() panel {
	return panel{id: populationPanel, title: heatTitle, draw: drawHeat, export: populationRows}
}

func replicasTitle(m *model) (string, string) {
	if m.shown.Plan == nil {
		return "members", ""
	}
	return count(len(m.shown.Members().Members), "member"), "by id · [ ] focus, b best"
}

// drawReplicas draws a cell for each member, in columns: id, worker, sparkline, value. If not all fit, it shows those
// around the focused one.
func drawReplicas(m *model, g *cell.Grid, r cell.Rect) {
	s, roster := m.strip(), m.shown.Members()
	if s == nil {
		explain(g, r, m.waiting("a line for each member"))
		return
	}
	cols := max(1, (r.W-1)/30)
	w := (r.W - 1) / cols
	rows := r.H
	first := 0
	if n := len(roster.Members); n > rows*cols {
		first = min(max(0, roster.Rank(m.member)-rows*cols/2), n-rows*cols)
	}
	spark := w - 19
	edges := m.edges(max(0, spark))
	axis, void := m.fit(m.logAxis, nil, s.Band(edges)), s.Unmeasured(edges)
	for i := range min(rows*cols, len(roster.Members)-first) {
		id := roster.Members[first+i]
		x, y := r.X+1+i/rows*w, r.Y+i%rows
		role, line := cell.Plain, cell.Median
		if id == m.member {
			role, line = cell.Member, cell.Member
			g.Set(x, y, '▸', role)
		}
		g.Text(x+1, y, 4, role, fmt.Sprintf("m%d", id))
		g.Text(x+7, y, 4, cell.Faint, fmt.Sprintf("w%d", roster.Owner[first+i]))
		if f, ok := m.shown.Find(view.Founder).Last(id); ok && id < 1000 {
			letter, role := chart.Letter(int(f))
			g.Set(x+5, y, letter, role)
		}
		chart.Spark(g, x+11, y, s.Columns(id, edges), void, axis, line)
		if v, ok := m.last(s, id); ok {
			if v != v {
				role = cell.Alert
			} else if !m.fresh(s) {
				role = cell.Faint
			}
			g.Right(x+w-1, y, 6, role, Number(v))
		}
	}
}

func heatTitle(m *model) (string, string) {
	what := m.mainSeries()
	if s := m.strip(); s != nil {
		what = s.Name
	}
	return "population  " + what, "░ lower ▒ alike ▓█ higher"
}

// ofOneModel reports whether the members are candidates or parts of a batch, as far as the view shows it: a probe
// found no separate models. Such members have no state between rounds, so a map over the rounds would show no more
// than the distribution.
func (m *model) ofOneModel() bool {
	return m.shown.Find(view.CentreLoss) != nil && m.shown.Find(view.Spread) == nil
}

// drawHeat draws a map of members (down) by rounds (across) over the full height. With more members than rows, each
// row is the mean of a block of members of equal size. The lower half shows the pairings of an algorithm that pairs
// members, or the lineages of one that breeds.
func drawHeat(m *model, g *cell.Grid, r cell.Rect) {
	s, roster := m.strip(), m.shown.Members()
	if s == nil || len(roster.Members) < 2 || r.W < 20 || r.H < 3 {
		explain(g, r, m.waiting("the population"))
		return
	}
	upper, lower := r, cell.Rect{}
	line := m.shown.Find(view.Founder)
	if r.H >= 8 && (line != nil || m.shown.Meetings != nil) {
		upper, lower = r.Top(r.H / 2)
	}
	switch {
	case lower.H == 0:
	case m.shown.Meetings != nil:
		m.drawMeetings(g, lower)
	default:
		m.drawLines(g, lower, line)
	}
	at := m.gutter()
	w := upper.W - at - 1
	edges := m.edges(w)
	void := s.Unmeasured(edges)
	rows := m.rows(g, upper, func(ids []engine.Member) []view.Bucket { return chart.Hold(meanOf(s, ids, edges), void) })
	if x, even := chart.Even(rows); even {
		explain(g, cell.Rect{
			X: upper.X + at,
			Y: upper.Y,
			W: w + 1,
			H: len(rows),
		}, fmt.Sprintf("%s is %s of every member in all of these rounds", s.Name, Number(x)))
	} else {
		chart.Heat(g, upper.X+at, upper.Y, rows, cell.Median)
	}
	if lower.H == 0 || m.shown.Meetings != nil { // else the axis of the lineages below serves both
		m.roundAxis(g, upper.X, upper.Y+len(rows), upper.W)
	}
}

// drawLines draws the lineage of each member.
func (m *model) drawLines(g *cell.Grid, r cell.Rect, line *view.Series) {
	left := map[int]bool{}
	for _, v := range line.Latest(m.shown.Members()) {
		left[int(v.X)] = true
	}
	title := "lineage  " + count(len(left), "founder") + " left" // the initial number is unknown after a resize
	g.Text(r.X+1, r.Y, r.W-2, cell.Faint, title)
	_, body := r.Top(1)
	at := m.gutter()
	edges := m.edges(r.W - at - 1)
	rows := m.rows(g, body, func(ids []engine.Member) []view.Bucket { return line.Columns(ids[0], edges) })
	chart.Kinds(g, r.X+at, body.Y, rows)
	m.roundAxis(g, r.X, body.Y+len(rows), r.W)
}

// rows labels as many lines for each member, or a line for as many members each, above the last line of r, and asks for
// their columns.
func (m *model) rows(g *cell.Grid, r cell.Rect, of func(ids []engine.Member) []view.Bucket) (rows [][]view.Bucket) {
	members := m.shown.Members().Members
	n, h := len(members), r.H-1
	each, tall := (n+h-1)/h, max(1, h/n)
	for from := 0; from < n; from += each {
		to, y := min(n, from+each), len(rows)
		rows = append(rows, of(members[from:to]))
		for range tall - 1 {
			rows = append(rows, rows[y])
		}
		role := cell.Faint
		if members[from] <= m.member && m.member <= members[to-1] {
			role = cell.Member
		}
		g.Text(r.X+1, r.Y+y, m.gutter()-1, role, blockName(members[from:to]))
	}
	return rows
}

// gutter returns the width of the labels of members, or of blocks of members.
func (m *model) gutter() int {
	if ids := m.shown.Members().Members; len(ids) >= 100 {
		return cell.Width(blockName(ids[len(ids)-2:])) + 2
	}
	return 8
}

// roundAxis labels both ends of the axis in a line of w cells.
func (m *model) roundAxis(g *cell.Grid, x, y, w int) {
	lo, hi := m.rounds()
	first, last := m.spotText(lo), m.spotText(max(hi, 1)-1)
	from := x + m.gutter()
	at := m.arrow(g, from, y, w-m.gutter()-1)
	if at < 0 || at > from+len(first) {
		g.Text(from, y, 20, cell.Faint, first)
	}
	if at < x+w-2-len(last) {
		g.Right(x+w-1, y, 20, cell.Faint, last)
	}
}

// meanOf sums the columns of several members.
func meanOf(s *view.Series, ids []engine.Member, edges []uint64) []view.Bucket {
	row := s.Columns(ids[0], edges)
	for _, id := range ids[1:] {
		for i, b := range s.Columns(id, edges) {
			if row[i].Empty() {
				row[i] = b
			} else if !b.Empty() {
				row[i] = view.Bucket{Min: min(row[i].Min, b.Min), Max: max(row[i].Max, b.Max), Sum: row[i].Sum + b.Sum,
					Count: row[i].Count + b.Count}
			}
		}
	}
	return row
}
