package tui

import (
	"fmt"

	"brood/runtime/session"
	"brood/tui/cell"
)

// placeSessions is the Sessions screen.
func placeSessions(_ *model, b cell.Rect) []placement { return []placement{{"sessions", b}} }

func sessionsTitle(m *model) (string, string) {
	rows, _ := m.sessions.rows(m)
	return "sessions", m.filterNote("sessions", fmt.Sprintf("running first, then the newest · %d of %d", len(rows), len(m.sessions.all)))
}

// column of the table; those of the least weight leave first where it is narrow.
type column struct {
	head   string
	width  int
	weight int
	right  bool
	text   func(session.Info) string
}

func sessionColumns() []column {
	return []column{
		{"state", 8, 9, false, standing},
		{"algorithm", 10, 6, false, func(x session.Info) string { return x.Algorithm }},
		{"model", 14, 3, false, func(x session.Info) string { return x.Model }},
		{"data", 10, 2, false, func(x session.Info) string { return x.Data }},
		{"round", 8, 8, true, func(x session.Info) string {
			if x.Err != "" {
				return "–"
			}
			return round(x.Round)
		}},
		{"test error", 10, 7, true, func(x session.Info) string {
			if x.TestError == nil {
				return "–"
			}
			return fmt.Sprintf("%.2f %%", *x.TestError)
		}},
		{"started", 12, 5, false, func(x session.Info) string { return x.Started.Format("01-02 15:04") }},
		{"size", 8, 4, true, func(x session.Info) string { return size(float64(x.Size)) }},
	}
}

const (
	nameLeast = 28 // cells that the name of a session keeps
	nameMost  = 44
)

// fitColumns drops columns until the rest leaves the name its room, and says how much that is.
func fitColumns(all []column, room int) (kept []column, name int) {
	for {
		used, least := 0, 0
		for i, c := range all {
			used += c.width + 2
			if c.weight < all[least].weight {
				least = i
			}
		}
		if len(all) == 0 || room-used >= nameLeast {
			return all, min(max(0, room-used), nameMost)
		}
		all = append(all[:least:least], all[least+1:]...)
	}
}

// window is the first row that is shown and how many are: the heading and two lines below are not for them.
func (s *sessions) window(r cell.Rect, total, at int) (first, n int) {
	n = min(total, max(1, r.H-3))
	return min(max(0, at-n/2), total-n), n
}

func drawSessions(m *model, g *cell.Grid, r cell.Rect) {
	s := &m.sessions
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
	cols, name := fitColumns(sessionColumns(), r.W-left-1)
	g.Text(r.X+left, r.Y, name, cell.Faint, "session")
	tableRow(g, r.X+left+name+2, r.Y, cols, cell.Faint, func(c column) string { return c.head })
	first, n := s.window(r, len(rows), at)
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
		tableRow(g, r.X+left+name+2, y, cols, role, func(c column) string { return c.text(x) })
	}
	foot := r.Y + r.H - 1
	if r.H < n+3 {
		return
	}
	about, role := fmt.Sprintf("seed %d  %s", rows[at].Seed, rows[at].Dir), cell.Faint
	if e := rows[at].Err; e != "" {
		about, role = e, cell.Alert
	}
	g.Text(r.X+1, foot-1, r.W-2, role, about)
	g.Text(r.X+1, foot, r.W-2, cell.Faint, "● running   ◇ in view")
}

func tableRow(g *cell.Grid, x, y int, cols []column, role cell.Role, text func(column) string) {
	for _, c := range cols {
		if c.right {
			g.Right(x+c.width, y, c.width, role, text(c))
		} else {
			g.Text(x, y, c.width, role, text(c))
		}
		x += c.width + 2
	}
}
