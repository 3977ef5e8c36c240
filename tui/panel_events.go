package tui

import (
	"fmt"
	"time"

	"brood/runtime/view"
	"brood/tui/cell"
)

func eventsTitle(m *model) (string, string) {
	return "events", m.filterNote("events", fmt.Sprintf("%d of %d", len(m.lane()), m.shown.Events))
}

func level(e view.Entry) (glyph rune, role cell.Role) {
	switch {
	case e.Answered && e.Level == "error":
		return '✗', cell.Faint
	case e.Answered && e.Level == "warning":
		return '!', cell.Faint
	case e.Level == "error":
		return '✗', cell.Alert
	case e.Level == "warning":
		return '!', cell.Warn
	case e.Kind == "edit":
		return '┆', cell.Marks
	}
	return '·', cell.Plain
}

// drawEvents is the lane: the newest at the bottom, or scrolled.
func drawEvents(m *model, g *cell.Grid, r cell.Rect) {
	lane := m.lane()
	switch {
	case len(m.shown.Lane) == 0:
		explain(g, r, "edits, plans, alerts and checkpoints appear here")
		return
	case len(lane) == 0:
		explain(g, r, m.nothing("events", "event"))
		return
	}
	y := r.Y + r.H
	for i := max(1, len(lane)-m.scroll) - 1; i >= 0 && y > r.Y; i-- {
		e := lane[i]
		lines := wrap(e.Text, r.W-28)
		if len(lines) == 0 {
			lines = []string{""}
		}
		if e.Level == "info" || r.H < 6 {
			lines = []string{e.Text}
		}
		y -= len(lines)
		glyph, role := level(e)
		for j, l := range lines {
			if y+j >= r.Y {
				g.Text(r.X+27, y+j, r.W-28, role, l)
			}
		}
		if y >= r.Y {
			g.Right(r.X+9, y, 8, cell.Faint, span(time.Duration(e.Trained)))
			g.Right(r.X+23, y, 13, cell.Faint, "round "+round(e.Round))
			g.Set(r.X+25, y, glyph, role)
		}
	}
}

// eventLine is the lane where it has one line: the newest error that is due, else the last event.
func (m *model) eventLine(g *cell.Grid, r cell.Rect) {
	lane := m.lane()
	x, end := r.X+1, r.X+r.W-1
	more := m.filterNote("events", fmt.Sprintf("%d events", m.shown.Events))
	g.Right(end, r.Y, 40, cell.Faint, more)
	end -= cell.Width(more) + 3
	if len(lane) == 0 {
		text := "no events yet"
		if len(m.shown.Lane) > 0 {
			text = "none of the events"
		}
		g.Text(x, r.Y, end-x, cell.Faint, text)
		return
	}
	e := lane[max(0, len(lane)-1-m.scroll)]
	for i := len(lane) - 1; i >= 0 && m.scroll == 0; i-- {
		if a := lane[i]; a.Level == "error" && m.due(a) {
			e = a
			break
		}
	}
	glyph, role := level(e)
	x = g.Text(x, r.Y, r.W-2, cell.Faint, span(time.Duration(e.Trained))+" ")
	g.Set(x, r.Y, glyph, role)
	g.Text(x+2, r.Y, end-x-2, role, e.Text)
}
