package live

import (
	"fmt"
	"slices"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

func rankingTitle(m *panel.Host) (string, string) {
	s := m.TraitSeries()
	if s == nil {
		return "ranking", ""
	}
	return "ranking  " + m.SeriesName(s.Name), RankingOrder(s)
}

// RankingOrder returns the direction in which a series ranks members, see [panel.Host.Ranking].
func RankingOrder(s *view.Series) string {
	if s.Name == view.Fitness {
		return "highest first"
	}
	return "lowest first"
}

// rankingRow is a row of the ranking.
type rankingRow struct {
	place int
	view.Value
	worker string
	line   rune // letter of the line of descent; a blank if there is none
	role   cell.Role
}

// rankingRows returns the members in the order of the ranking.
func rankingRows(m *panel.Host, s *view.Series) (out []rankingRow) {
	roster, founders := m.Shown.Members(), m.Shown.Find(view.Founder)
	for i, v := range m.Ranking(s) {
		row := rankingRow{place: i + 1, Value: v, line: ' '}
		if at := roster.Rank(v.Member); at >= 0 {
			row.worker = textfmt.WorkerLabel(roster.Owner[at])
		}
		if f, ok := founders.Last(v.Member); ok {
			row.line, row.role = chart.KindLetter(int(f))
		}
		out = append(out, row)
	}
	return out
}

// rankingWindow returns the index of the first shown row and the number of rows, around the focused member.
func rankingWindow(m *panel.Host, r cell.Rect, all []rankingRow) (first, n int) {
	at := slices.IndexFunc(all, func(s rankingRow) bool { return s.Member == m.Member })
	return panel.TableWindow(r, len(all), max(at, 0), 0)
}

// drawRanking draws a line for each member: place, worker, line of descent, value, and a bar that is empty for the
// value of the last place and full for the first.
func drawRanking(m *panel.Host, g *cell.Grid, r cell.Rect) {
	s := m.TraitSeries()
	if s == nil || r.H < 2 {
		panel.Explain(g, r, m.WaitingText("the population"))
		return
	}
	all := rankingRows(m, s)
	first, n := rankingWindow(m, r, all)
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
		if x.Member == m.Member {
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
		case !m.Fresh(s):
			role = cell.Faint
		}
		g.Right(r.X+27, y, 9, role, textfmt.Number(x.X))
		if w := r.W - 30; w > 3 && to != from && x.X-x.X == 0 {
			chart.Bar(g, r.X+29, y, w, (x.X-from)/(to-from), bar)
		}
	}
	panel.DrawMore(g, r.X+r.W-1, r.Y+1, first, n, len(all))
}

func pointRanking(m *panel.Host, r cell.Rect, _, y int) {
	s := m.TraitSeries()
	if s == nil {
		return
	}
	all := rankingRows(m, s)
	first, n := rankingWindow(m, r, all)
	if i := y - r.Y - 1; i >= 0 && i < n {
		m.Member = all[first+i].Member
	}
}
