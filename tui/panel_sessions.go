package tui

import (
	"fmt"

	"brood/runtime/session"
	"brood/tui/cell"
)

func (s *sessions) title(m *model) (string, string) {
	rows, _ := s.rows(m)
	note := fmt.Sprintf("running first, then the newest · %d of %d", len(rows), len(s.all))
	return "sessions", m.filterNote("sessions", note)
}

func sessionColumns() []column[session.Info] {
	return []column[session.Info]{
		{head: "state", width: 8, weight: 9, text: standing},
		{head: "algorithm", width: 10, weight: 6, text: func(x session.Info) string { return x.Algorithm }},
		{head: "model", width: 14, weight: 3, text: func(x session.Info) string { return x.Model }},
		{head: "data", width: 10, weight: 2, text: func(x session.Info) string { return x.Data }},
		{head: "round", width: 8, weight: 8, right: true, text: func(x session.Info) string {
			if x.Err != "" {
				return "–"
			}
			return round(x.Round)
		}},
		{head: "test error", width: 10, weight: 7, right: true, text: func(x session.Info) string {
			if x.TestError == nil {
				return "–"
			}
			return fmt.Sprintf("%.2f %%", *x.TestError)
		}},
		{head: "started", width: 12, weight: 5, text: func(x session.Info) string { return x.Started.Format("01-02 15:04") }},
		{head: "size", width: 8, weight: 4, right: true, text: func(x session.Info) string { return size(float64(x.Size)) }},
	}
}

const (
	nameLeast = 28 // cells that the name of a session keeps
	nameMost  = 44

	sessionsFoot = 2 // lines below the list
)

func (s *sessions) draw(m *model, g *cell.Grid, r cell.Rect) {
	rows, at := s.rows(m)
	switch {
	case !s.loaded:
		explain(g, r, "reading the sessions")
		return
	case s.err != nil && len(s.all) == 0:
		explain(g, r, s.err.Error())
		return
	case len(s.all) == 0:
		explain(g, r, "nothing is recorded yet: a run appears here as soon as it begins")
		return
	case len(rows) == 0:
		explain(g, r, m.nothing("sessions", "session"))
		return
	}
	const left = 5 // cursor and marks
	cols, name := fitColumns(sessionColumns(), r.W-left-1, nameLeast, nameMost)
	g.Text(r.X+left, r.Y, name, cell.Faint, "session")
	tableHead(g, r.X+left+name+2, r.Y, cols)
	first, n := tableWindow(r, len(rows), at, sessionsFoot)
	for i, x := range rows[first : first+n] {
		y, role := r.Y+1+i, cell.Plain
		if first+i == at {
			role = cell.FocusTitle
			g.Set(r.X+1, y, '▸', role)
		}
		if x.Running {
			g.Set(r.X+2, y, '●', cell.Good)
		}
		if x.Dir == m.opt.Session {
			g.Set(r.X+3, y, '◇', cell.Centre)
		}
		g.Text(r.X+left, y, name, role, x.Name)
		if x.Err != "" {
			role = cell.Alert
		}
		tableRow(g, r.X+left+name+2, y, cols, role, x)
	}
	foot := r.Y + r.H - 1
	if r.H < n+1+sessionsFoot {
		return
	}
	about, role := fmt.Sprintf("seed %d  %s", rows[at].Seed, rows[at].Dir), cell.Faint
	if e := rows[at].Err; e != "" {
		about, role = e, cell.Alert
	}
	g.Text(r.X+1, foot-1, r.W-2, role, about)
	g.Text(r.X+1, foot, r.W-2, cell.Faint, "● running   ◇ in view")
}
