package tui

import (
	"fmt"

	"brood/optim"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

func replicasTitle(m *model) (string, string) {
	return count(len(m.shown.Members().Members), "member"), "by id · [ ] focus, b best"
}

// strip is the series of the members' panels: the algorithm's, or fitness where it measures no other.
func (m *model) strip() *view.Series {
	if s := m.shown.Find(m.mainSeries()); s != nil && len(s.Members) > 0 {
		return s
	}
	if s := m.shown.Find(view.Fitness); s != nil && len(s.Members) > 0 {
		return s
	}
	return nil
}

// drawReplicas is a cell for each member, in columns: id, worker, sparkline, value. Those that do not fit are around the
// focused one.
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
	lo, hi := m.rounds()
	spark := w - 18
	all := s.Band(lo, hi, 1)
	axis := chart.Fit(m.logAxis, all)
	for i := range min(rows*cols, len(roster.Members)-first) {
		id := roster.Members[first+i]
		x, y := r.X+1+i/rows*w, r.Y+i%rows
		role, line := cell.Plain, cell.Median
		if id == m.member {
			role, line = cell.Member, cell.Member
			g.Set(x, y, '▸', role)
		}
		g.Text(x+1, y, 4, role, fmt.Sprintf("m%d", id))
		g.Text(x+6, y, 4, cell.Faint, fmt.Sprintf("w%d", roster.Owner[first+i]))
		chart.Spark(g, x+10, y, s.Columns(id, lo, hi, spark), axis, line)
		if v, ok := s.Last(id); ok {
			if v != v {
				role = cell.Alert
			}
			g.Right(x+w-1, y, 6, role, num(v))
		}
	}
}

func heatTitle(m *model) (string, string) {
	what := m.mainSeries()
	if s := m.strip(); s != nil {
		what = s.Name
	}
	return "population  " + what, "light is low in its column"
}

// drawHeat is members down and rounds across, over the whole height: where there are more members than rows, a row is the
// mean of its members.
func drawHeat(m *model, g *cell.Grid, r cell.Rect) {
	s, roster := m.strip(), m.shown.Members()
	if s == nil || len(roster.Members) < 2 || r.W < 20 || r.H < 3 {
		explain(g, r, m.waiting("the population"))
		return
	}
	lo, hi := m.rounds()
	n, h, w := len(roster.Members), r.H-1, r.W-9
	rows, last := make([][]view.Bucket, h), -1
	for y := range rows {
		from, to := y*n/h, max(y*n/h+1, (y+1)*n/h)
		if from == last {
			rows[y] = rows[y-1]
			continue
		}
		last = from
		rows[y] = meanOf(s, roster.Members[from:to], lo, hi, w)
		first, end := roster.Members[from], roster.Members[to-1]
		role, name := cell.Faint, fmt.Sprintf("m%d", first)
		if to-from > 1 {
			name += fmt.Sprintf("-%d", end)
		}
		if first <= m.member && m.member <= end {
			role = cell.Member
		}
		g.Text(r.X+1, r.Y+y, 7, role, name)
	}
	chart.Heat(g, r.X+8, r.Y, rows, cell.Median)
	y := r.Y + r.H - 1
	g.Text(r.X+8, y, 20, cell.Faint, round(lo))
	g.Right(r.X+8+w, y, 20, cell.Faint, round(max(hi, 1)-1))
}

// meanOf sums the columns of some members.
func meanOf(s *view.Series, ids []optim.Member, lo, hi uint64, w int) []view.Bucket {
	row := s.Columns(ids[0], lo, hi, w)
	for _, id := range ids[1:] {
		for i, b := range s.Columns(id, lo, hi, w) {
			row[i].Sum, row[i].Count = row[i].Sum+b.Sum, row[i].Count+b.Count
		}
	}
	return row
}
