package tui

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/session"
	"brood/runtime/view"
	"brood/tui/cell"
)

const logPanel panelID = "said"

// processKind is the kind of an entry from the output of a process. It belongs to no record, so its round is unknown.
const processKind = "host"

const logPollPeriod = 2 * time.Second

// Teller is optionally implemented by a Source. Said returns the output of the processes of the run, oldest first. It
// may run concurrently with Snapshot and Next.
type Teller interface {
	Said(ctx context.Context) ([]session.Line, error)
}

// logView is the state of the log panel, which replaces the Alerts screen: the events of the run and the output of
// its processes, in the order of time.
type logView struct {
	open   bool
	back   int // lines scrolled from the end
	lines  []session.Line
	hosted []view.Entry // entries made from lines, sorted by time
	merged mergedLog
	err    error
	asking bool
	asked  time.Time
}

func newLogView() *logView { return &logView{} }

func (p *logView) panel() panel {
	scroll := func(d int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd {
			most := max(0, len(p.entries(m))-1)
			p.back = min(max(p.back+d, 0), most)
			return nil
		}
	}
	return panel{
		id: logPanel, title: p.title, draw: p.draw, group: "log (w on Alerts)", export: p.rows, poll: p.poll,
		hints: func(*model) [][2]string {
			return [][2]string{{"jk", "later, earlier"}, {"/", "search"}, {"w", "back"}, {"E", "export"}}
		},
		back: func(m *model) bool {
			if p.open {
				p.show(m)
				return true
			}
			return false
		},
		keys: []binding{
			{keys: []string{"w"}, title: "back to the alerts", do: p.turn},
			{keys: []string{"j", "down"}, title: "later", do: scroll(-1)},
			{keys: []string{"k", "up"}, title: "earlier", do: scroll(1)},
			{keys: []string{"pgdown"}, title: "a page later", do: scroll(-logPageLines)},
			{keys: []string{"pgup"}, title: "a page earlier", do: scroll(logPageLines)},
			{keys: []string{"g", "home"}, title: "oldest", do: scroll(1 << 30)},
			{keys: []string{"G", "end"}, title: "newest", do: scroll(-1 << 30)},
		},
		list:  &list{name: "log", entries: "lines of the log", top: func() { p.back = 0 }},
		reset: func() { *p = logView{} },
	}
}

// logPageLines is how many lines a page key scrolls.
const logPageLines = 10

// key is the binding that opens the panel from others on the Alerts screen.
func (p *logView) key() binding {
	return binding{keys: []string{"w"}, title: "the log: all that was said", do: p.turn}
}

// show toggles between the log and the alerts.
func (p *logView) show(m *model) tea.Cmd {
	p.open = !p.open
	if m.focus = alertsPanel; p.open {
		m.focus = logPanel
	}
	return nil
}

// turn toggles the panel and requests the lines.
func (p *logView) turn(m *model) tea.Cmd {
	p.show(m)
	return p.poll(m)
}

// place lays out the Alerts screen.
func (p *logView) place(m *model, b cell.Rect) []placement {
	if p.open {
		return []placement{{logPanel, b}}
	}
	return placeAlerts(m, b)
}

// poll requests the lines every logPollPeriod while the panel is visible.
func (p *logView) poll(m *model) tea.Cmd {
	teller, ok := m.opt.Source.(Teller)
	if !ok || !p.open || p.asking || !m.leads(alertsPanel) || !p.asked.IsZero() &&
		m.opt.Clock().Sub(p.asked) < logPollPeriod {
		return nil
	}
	ctx, gen := m.reading.ctx, m.feed.gen
	p.asking, p.asked = true, m.opt.Clock()
	return m.task(func() tea.Msg {
		lines, err := teller.Said(ctx)
		return reply(func(m *model) tea.Cmd {
			if m.feed.gen != gen { // the user has opened another run
				return nil
			}
			if p.asking, p.err = false, err; err == nil {
				p.setLines(lines)
			}
			return nil
		})
	})
}

func (p *logView) title(m *model) (string, string) {
	entries := p.entries(m) // updates p.merged, which is read below
	return "log", m.filterNote("log", fmt.Sprintf("%d of %d", len(entries), p.merged.all))
}

const logTimeCells = 19 // cells of a date and a time

// draw renders the lines, wrapped in full, with the newest at the bottom unless scrolled.
func (p *logView) draw(m *model, g *cell.Grid, r cell.Rect) {
	entries, least := p.entries(m), r.Y
	if why := p.missing(m); why != "" {
		for _, line := range wrap(why, r.W-2) {
			g.Text(r.X+1, least, r.W-2, cell.Warn, line)
			least++
		}
	}
	if len(entries) == 0 {
		text := "nothing was said so far"
		if m.filters.text["log"] != "" {
			text = m.nothing("log", "line of the log")
		}
		explain(g, cell.Rect{X: r.X, Y: least, W: r.W, H: r.Y + r.H - least}, text)
		return
	}
	format, cells := "2006-01-02 15:04:05", logTimeCells
	if r.W < panelsW {
		format, cells = "15:04:05", 8
	}
	left := r.X + cells + 20
	y := r.Y + r.H
	for i := max(1, len(entries)-p.back) - 1; i >= 0 && y > least; i-- {
		e := entries[i]
		lines := wrap(e.Text, max(1, r.X+r.W-left-1))
		if len(lines) == 0 {
			lines = []string{""}
		}
		y -= len(lines)
		glyph, role := level(e)
		if e.Kind == processKind {
			glyph, role = '›', cell.Centre
		}
		for j, text := range lines {
			if y+j >= least {
				g.Text(left, y+j, r.X+r.W-left-1, role, text)
			}
		}
		if y >= least {
			when := "–"
			if e.When != 0 {
				when = time.Unix(0, e.When).Format(format)
			}
			g.Text(r.X+1, y, cells, cell.Faint, when)
			if e.Kind != processKind {
				g.Right(left-4, y, 14, cell.Faint, "round "+round(e.Round))
			}
			g.Set(left-2, y, glyph, role)
		}
	}
}

// whole reports whether a recording is at its end.
func (m *model) whole() bool {
	e := m.replay.Extent()
	return m.feed.ended || e.Whole && m.shown.Position >= e.Records
}

// missing returns why the output of the processes is not among the lines; "" if it is.
func (p *logView) missing(m *model) string {
	if _, ok := m.opt.Source.(Teller); !ok {
		return "what the host says is not told here"
	}
	if p.err != nil {
		return "what the host says is not told: " + p.err.Error()
	}
	return ""
}

func (p *logView) rows(m *model) func(*view.View) rows {
	entries := p.entries(m)
	return func(*view.View) rows {
		out := rows{{"time", "round", "level", "kind", "text"}}
		for _, e := range entries {
			when, at := "", uints(e.Round)
			if e.When != 0 {
				when = time.Unix(0, e.When).UTC().Format(time.RFC3339Nano)
			}
			if e.Kind == processKind {
				at = ""
			}
			out = append(out, []string{when, at, string(e.Level), e.Kind, e.Text})
		}
		return out
	}
}
