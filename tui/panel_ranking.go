package tui

import (
	"fmt"
	"slices"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

func rankingTitle(m *model) (string, string) {
	s := m.strip()
	if s == nil {
		return "ranking", ""
	}
	return "ranking  " + s.Name, order(s)
}

// order returns the direction in which a series ranks members, see [model.inOrder].
func order(s *view.Series) string {
	if s.Name == view.Fitness {
		return "highest first"
	}
	return "lowest first"
}

// placing is a row of the ranking.
type placing struct {
	place int
	view.Value
	worker string
	line   rune // letter of the line of descent; a blank if there is none
	role   cell.Role
}

// placings returns the members in the order of the ranking.
func (m *model) placings(s *view.Series) (out []placing) {
	roster, founders := m.shown.Members(), m.shown.Find(view.Founder)
	for i, v := range m.inOrder(s) {
		row := placing{place: i + 1, Value: v, line: ' '}
		if at := roster.Rank(v.Member); at >= 0 {
			row.worker = label(roster.Owner[at])
		}
		if f, ok := founders.Last(v.Member); ok {
			row.line, row.role = chart.Letter(int(f))
		}
		out = append(out, row)
	}
	return out
}

// rankingWindow returns the index of the first shown row and the number of rows, around the focused member.
func (m *model) rankingWindow(r cell.Rect, all []placing) (first, n int) {
	at := slices.IndexFunc(all, func(s placing) bool { return s.Member == m.member })
	return tableWindow(r, len(all), max(at, 0), 0)
}

// drawRanking draws a line for each member: place, worker, line of descent, value, and a bar that is empty for the
// value of the last place and full for the first.
func drawRanking(m *model, g *cell.Grid, r cell.Rect) {
	s := m.strip()
	if s == nil || r.H < 2 {
		explain(g, r, m.waiting("the population"))
		return
	}
	all := m.placings(s)
	first, n := m.rankingWindow(r, all)
	g.Text(r.X+1, r.Y, r.W-2, cell.Faint, "   # member  on")
	g.Right(r.X+27, r.Y, 9, cell.Faint, "value")
	var from, to float64
	for _, x := range all { // values that are not finite come last
		if x.X-x.X == 0 {
			if x.place == 1 {
				to = x.X
			}
			from = x.X
		}
	}
	for i, x := range all[first : first+n] {
		y, role, bar := r.Y+1+i, cell.Plain, cell.Band
		if x.Member == m.member {
			role, bar = cell.Member, cell.Member
			g.Set(r.X, y, '▸', role)
		}
		g.Right(r.X+5, y, 4, cell.Faint, fmt.Sprint(x.place))
		g.Text(r.X+6, y, 6, role, fmt.Sprintf("m%d", x.Member))
		g.Set(r.X+12, y, x.line, x.role)
		g.Text(r.X+14, y, 4, cell.Faint, x.worker)
		switch {
		case x.X != x.X:
			role = cell.Alert
		case !m.fresh(s):
			role = cell.Faint
		}
		g.Right(r.X+27, y, 9, role, Number(x.X))
		if w := r.W - 30; w > 3 && to != from && x.X-x.X == 0 {
			chart.Bar(g, r.X+29, y, w, (x.X-from)/(to-from), bar)
		}
	}
	tableMore(g, r, r.X+r.W-1, first, n, len(all))
}

// pointRanking focuses the member under the mouse.
func pointRanking(m *model, r cell.Rect, _, y int) {
	s := m.strip()
	if s == nil {
		return
	}
	all := m.placings(s)
	first, n := m.rankingWindow(r, all)
	if i := y - r.Y - 1; i >= 0 && i < n {
		m.member = all[first+i].Member
	}
}
