package alerts

import (
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// eventList is the state of the list of events.
type eventList struct {
	scroll int  // entries scrolled back from the newest
	all    bool // checkpoints are shown too
}

// NewEventList returns the panel of events.
func NewEventList() panel.Panel {
	l := &eventList{}
	return panel.Panel{
		ID: panel.Events, Title: l.title, Draw: l.draw, Line: l.line,
		Group:   "events (focus on the list)",
		Example: "/ edit enter: the edits alone", Keys: l.keys(), Export: panel.ViewExport(eventRows),
		List:  &panel.List{Name: "events", Entries: "events", Top: func() { l.scroll = 0 }},
		Reset: func() { *l = eventList{} },
	}
}

func (l *eventList) keys() []panel.Binding {
	scroll := panel.Steps(func(m *panel.Host, d int) {
		l.scroll = min(max(l.scroll+d, 0), max(0, len(l.entries(m))-1))
	})
	return []panel.Binding{
		{Keys: []string{"j", "down"}, Title: "later", Do: scroll(-1)},
		{Keys: []string{"k", "up"}, Title: "earlier", Do: scroll(1)},
		{Keys: []string{"g"}, Title: "oldest", Do: scroll(1 << 30)},
		{Keys: []string{"G"}, Title: "newest", Do: scroll(-1 << 30)},
		{Keys: []string{"t"}, Title: "show or hide checkpoints",
			Do: func(*panel.Host) tea.Cmd { l.all, l.scroll = !l.all, 0; return nil }},
	}
}

// entries returns the events and notes that pass the filter. Saved checkpoints are too frequent to show unless the user
// asks for them, or filters.
func (l *eventList) entries(m *panel.Host) (out []view.Entry) {
	filtered := m.Filters.Text["events"] != ""
	for _, e := range m.WithNotes(m.Events()) {
		if (l.all || filtered || !isCheckpoint(e)) &&
			(!filtered || m.MatchesFilter("events", string(e.Level), e.Kind, e.Text)) {
			out = append(out, e)
		}
	}
	return out
}

func isCheckpoint(e view.Entry) bool { return e.Kind == view.KindCheckpoint }

func (l *eventList) title(m *panel.Host) (string, string) {
	note := m.FilterNote("events",
		fmt.Sprintf("%d of %d", len(l.entries(m)), m.Shown.Events+uint64(len(m.ShownNotes()))))
	if !l.all && slices.ContainsFunc(m.Shown.Lane, isCheckpoint) {
		note = "t shows checkpoints · " + note
	}
	return "events", note
}

// levelGlyph returns the glyph and the role of an entry.
func levelGlyph(e view.Entry) (glyph rune, role cell.Role) {
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
	case e.Kind == view.KindEffect:
		return '→', cell.Marks
	case e.Kind == view.KindEvaluation:
		return '◆', cell.Plain
	case e.Kind == panel.NoteKind:
		return '»', cell.Good
	}
	return '·', cell.Plain
}

// draw draws the newest event at the bottom, or the scrolled part. A narrow list omits the times.
func (l *eventList) draw(m *panel.Host, g *cell.Grid, r cell.Rect) {
	lane := l.entries(m)
	switch {
	case len(m.Shown.Lane)+len(m.ShownNotes()) == 0:
		panel.Explain(g, r, "edits, plans, alerts and checkpoints appear here")
		return
	case len(lane) == 0 && m.Filters.Text["events"] == "":
		panel.Explain(g, r, "only checkpoints so far: t shows them")
		return
	case len(lane) == 0:
		panel.Explain(g, r, m.NoMatchText("events", "event"))
		return
	}
	left, timed := 27, r.W >= 60 // cells of the time, the round and the glyph
	if !timed {
		left -= 9
	}
	y := r.Y + r.H
	for i := max(1, len(lane)-l.scroll) - 1; i >= 0 && y > r.Y; i-- {
		e := lane[i]
		lines := []string{e.Text}
		if r.H >= 4 && e.Text != "" {
			lines = textfmt.Wrap(e.Text, r.W-left-1)
		}
		y -= len(lines)
		glyph, role := levelGlyph(e)
		for j, text := range lines {
			if y+j >= r.Y {
				g.Text(r.X+left, y+j, r.W-left-1, role, text)
			}
		}
		if y >= r.Y {
			if e.Kind != panel.NoteKind && timed { // notes have no time
				g.Right(r.X+9, y, 8, cell.Faint, textfmt.Duration(time.Duration(e.Trained)))
			}
			g.Right(r.X+left-4, y, 13, cell.Faint, "round "+textfmt.Grouped(e.Round))
			g.Set(r.X+left-2, y, glyph, role)
		}
	}
}

// line draws the newest unacknowledged error in one line, or the last event if there is none.
func (l *eventList) line(m *panel.Host, g *cell.Grid, r cell.Rect) {
	lane := l.entries(m)
	x, end := r.X+1, r.X+r.W-1
	more := m.FilterNote("events", fmt.Sprintf("%d events", m.Shown.Events+uint64(len(m.ShownNotes()))))
	g.Right(end, r.Y, 40, cell.Faint, more)
	end -= cell.Width(more) + 3
	if len(lane) == 0 {
		text := "no events yet"
		if len(m.Shown.Lane)+len(m.ShownNotes()) > 0 {
			text = "no event matches"
		}
		g.Text(x, r.Y, end-x, cell.Faint, text)
		return
	}
	e := lane[max(0, len(lane)-1-l.scroll)]
	for i := len(lane) - 1; i >= 0 && l.scroll == 0; i-- {
		if a := lane[i]; a.Level == event.LevelError && m.Due(a) {
			e = a
			break
		}
	}
	glyph, role := levelGlyph(e)
	x = g.Text(x, r.Y, r.W-2, cell.Faint, "r "+textfmt.Grouped(e.Round)+" ") // as in the status line
	g.Set(x, r.Y, glyph, role)
	g.Text(x+2, r.Y, end-x-2, role, e.Text)
}

func eventRows(v *view.View) panel.Rows {
	out := panel.Rows{{"time", "trained_seconds", "round", "level", "kind", "text"}}
	for _, e := range v.Lane {
		out = append(out, []string{time.Unix(0, e.When).UTC().Format(time.RFC3339Nano),
			textfmt.Exact(time.Duration(e.Trained).Seconds()), textfmt.Uint(e.Round), string(e.Level), e.Kind, e.Text})
	}
	return out
}
