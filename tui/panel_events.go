package tui

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
)

const eventsPanel panelID = "events"

// lane is the state of the list of events. scroll is the number of entries scrolled back from the newest.
type lane struct{ scroll int }

func newLane() *lane { return &lane{} }

func (l *lane) panel() panel {
	return panel{
		id: eventsPanel, title: l.title, draw: l.draw, line: l.line,
		group: "events (focus on the lane)", keys: l.keys(), export: plainly(eventRows),
		list:  &list{name: "events", entries: "events", top: func() { l.scroll = 0 }},
		reset: func() { *l = lane{} },
	}
}

func (l *lane) keys() []binding {
	scroll := func(d int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd {
			l.scroll = min(max(l.scroll+d, 0), max(0, len(l.entries(m))-1))
			return nil
		}
	}
	return []binding{
		{keys: []string{"j", "down"}, title: "later", do: scroll(-1)},
		{keys: []string{"k", "up"}, title: "earlier", do: scroll(1)},
		{keys: []string{"g"}, title: "oldest", do: scroll(1 << 30)},
		{keys: []string{"G"}, title: "newest", do: scroll(-1 << 30)},
	}
}

// entries returns the events and notes that pass the filter.
func (l *lane) entries(m *model) []view.Entry {
	all := m.withNotes(m.shown.Lane)
	if m.filters.text["events"] == "" {
		return all
	}
	var out []view.Entry
	for _, e := range all {
		if m.passes("events", string(e.Level), e.Kind, e.Text) {
			out = append(out, e)
		}
	}
	return out
}

func (l *lane) title(m *model) (string, string) {
	return "events", m.filterNote("events",
		fmt.Sprintf("%d of %d", len(l.entries(m)), m.shown.Events+uint64(len(m.present()))))
}

func level(e view.Entry) (glyph rune, role cell.Role) {
	switch {
	case e.Answered && e.Level == event.LevelError:
		return '✗', cell.Faint
	case e.Answered && e.Level == event.LevelWarning:
		return '!', cell.Faint
	case e.Level == event.LevelError:
		return '✗', cell.Alert
	case e.Level == event.LevelWarning:
		return '!', cell.Warn
	case e.Kind == "edit":
		return '┆', cell.Marks
	case e.Kind == noteKind:
		return '»', cell.Good
	}
	return '·', cell.Plain
}

// draw draws the newest event at the bottom, or the scrolled part.
func (l *lane) draw(m *model, g *cell.Grid, r cell.Rect) {
	lane := l.entries(m)
	switch {
	case len(m.shown.Lane)+len(m.present()) == 0:
		explain(g, r, "edits, plans, alerts and checkpoints appear here")
		return
	case len(lane) == 0:
		explain(g, r, m.nothing("events", "event"))
		return
	}
	y := r.Y + r.H
	for i := max(1, len(lane)-l.scroll) - 1; i >= 0 && y > r.Y; i-- {
		e := lane[i]
		lines := wrap(e.Text, r.W-28)
		if len(lines) == 0 {
			lines = []string{""}
		}
		if e.Level == event.LevelInfo || r.H < 6 {
			lines = []string{e.Text}
		}
		y -= len(lines)
		glyph, role := level(e)
		for j, text := range lines {
			if y+j >= r.Y {
				g.Text(r.X+27, y+j, r.W-28, role, text)
			}
		}
		if y >= r.Y {
			if e.Kind != noteKind { // notes have no time
				g.Right(r.X+9, y, 8, cell.Faint, span(time.Duration(e.Trained)))
			}
			g.Right(r.X+23, y, 13, cell.Faint, "round "+round(e.Round))
			g.Set(r.X+25, y, glyph, role)
		}
	}
}

// line draws the newest unacknowledged error in one line, or the last event if there is none.
func (l *lane) line(m *model, g *cell.Grid, r cell.Rect) {
	lane := l.entries(m)
	x, end := r.X+1, r.X+r.W-1
	more := m.filterNote("events", fmt.Sprintf("%d events", m.shown.Events+uint64(len(m.present()))))
	g.Right(end, r.Y, 40, cell.Faint, more)
	end -= cell.Width(more) + 3
	if len(lane) == 0 {
		text := "no events yet"
		if len(m.shown.Lane)+len(m.present()) > 0 {
			text = "none of the events"
		}
		g.Text(x, r.Y, end-x, cell.Faint, text)
		return
	}
	e := lane[max(0, len(lane)-1-l.scroll)]
	for i := len(lane) - 1; i >= 0 && l.scroll == 0; i-- {
		if a := lane[i]; a.Level == event.LevelError && m.due(a) {
			e = a
			break
		}
	}
	glyph, role := level(e)
	when := span(time.Duration(e.Trained))
	if e.Kind == noteKind {
		when = "round " + round(e.Round)
	}
	x = g.Text(x, r.Y, r.W-2, cell.Faint, when+" ")
	g.Set(x, r.Y, glyph, role)
	g.Text(x+2, r.Y, end-x-2, role, e.Text)
}
