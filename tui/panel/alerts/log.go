package alerts

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/session"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// processKind is the kind of an entry from the output of a process. It belongs to no record, so its round is unknown.
const processKind = "host"

const logPollPeriod = 2 * time.Second

// Teller is optionally implemented by a Source. ProcessLog returns the output of the processes of the run, oldest
// first. It may run concurrently with Snapshot and Next.
type Teller interface {
	ProcessLog(ctx context.Context) ([]session.Line, error)
}

// logView is the state of the log panel, which replaces the Alerts screen: the events of the run and the output of
// its processes, in the order of time.
type logView struct {
	panel.Page
	at     *view.Entry // lowest shown line of a log that is scrolled back; nil: the newest
	lines  []session.Line
	hosted []view.Entry // entries made from lines, sorted by time
	err    error
	asking bool
	asked  time.Time
}

func newLogView() *logView { return &logView{Page: panel.Page{Own: panel.Log, Lead: panel.Alerts}} }

func (p *logView) panel() panel.Panel {
	scroll := panel.Steps(func(m *panel.Host, d int) {
		entries := p.entries(m)
		i := max(p.lowest(entries)-d, 0)
		if p.at = nil; i < len(entries)-1 {
			p.at = &entries[i]
		}
	})
	return panel.Panel{
		ID: panel.Log, Title: p.title, Draw: p.draw, Group: "log (w on Alerts)",
		Example: "/ worker enter: lines on workers", Export: p.rows, Poll: p.poll,
		Hints: func(*panel.Host) [][2]string {
			return [][2]string{{"jk", "later, earlier"}, {"/", "search"}, {"w", "back"}, {"E", "export"}}
		},
		Back: p.Close,
		Keys: []panel.Binding{
			{Keys: []string{"w"}, Title: "back to the alerts", Do: p.turn},
			{Keys: []string{"j", "down"}, Title: "later", Do: scroll(-1)},
			{Keys: []string{"k", "up"}, Title: "earlier", Do: scroll(1)},
			{Keys: []string{"pgdown"}, Title: "a page later", Do: scroll(-logPageLines)},
			{Keys: []string{"pgup"}, Title: "a page earlier", Do: scroll(logPageLines)},
			{Keys: []string{"g", "home"}, Title: "oldest", Do: scroll(1 << 30)},
			{Keys: []string{"G", "end"}, Title: "newest", Do: scroll(-1 << 30)},
		},
		List:  &panel.List{Name: "log", Entries: "lines of the log", Top: func() { p.at = nil }},
		Reset: func() { *p = *newLogView() },
	}
}

// logPageLines is how many lines a page key scrolls.
const logPageLines = 10

// turn toggles the panel and requests the lines.
func (p *logView) turn(m *panel.Host) tea.Cmd {
	p.Toggle(m)
	return p.poll(m)
}

// place lays out the Alerts screen.
func (p *logView) place(m *panel.Host, b cell.Rect) []panel.Placement {
	if p.Open {
		return []panel.Placement{{Panel: panel.Log, Area: b}}
	}
	return placeAlerts(m, b)
}

// poll requests the lines every logPollPeriod while the panel is visible.
func (p *logView) poll(m *panel.Host) tea.Cmd {
	source, ok := m.Opt.Source.(Teller)
	if !ok || !p.Open || p.asking || !m.LeadsScreen(panel.Alerts) || !p.asked.IsZero() &&
		m.Opt.Clock().Sub(p.asked) < logPollPeriod {
		return nil
	}
	ctx, gen := m.Reading.Ctx, m.Feed.Gen
	p.asking, p.asked = true, m.Opt.Clock()
	return m.SessionJob(func() tea.Msg {
		lines, err := source.ProcessLog(ctx)
		return panel.Reply(func(m *panel.Host) tea.Cmd {
			if m.Feed.Gen != gen { // the user has opened another run
				return nil
			}
			if p.asking, p.err = false, err; err == nil {
				p.setLines(lines)
			}
			return nil
		})
	})
}

func (p *logView) title(m *panel.Host) (string, string) {
	all := len(m.Shown.Lane) + len(p.output(m))
	passed := all
	if m.Filters.Text["log"] != "" {
		passed = len(p.entries(m))
	}
	return "log", m.FilterNote("log", fmt.Sprintf("%d of %d", passed, all))
}

const logTimeCells = 19 // cells of a date and a time

// draw renders the lines, wrapped in full, with the newest at the bottom unless scrolled.
func (p *logView) draw(m *panel.Host, g *cell.Grid, r cell.Rect) {
	entries, least := p.entries(m), r.Y
	if why := p.missing(m); why != "" {
		for _, line := range textfmt.Wrap(why, r.W-2) {
			g.Text(r.X+1, least, r.W-2, cell.Warn, line)
			least++
		}
	}
	if len(entries) == 0 {
		text := "the log is empty"
		if m.Filters.Text["log"] != "" {
			text = m.NoMatchText("log", "line of the log")
		}
		panel.Explain(g, cell.Rect{X: r.X, Y: least, W: r.W, H: r.Y + r.H - least}, text)
		return
	}
	format, cells := "2006-01-02 15:04:05", logTimeCells
	if r.W < panel.PanelsW {
		format, cells = "15:04:05", 8
	}
	left := r.X + cells + 20
	y := r.Y + r.H
	for i := p.lowest(entries); i >= 0 && y > least; i-- {
		e := entries[i]
		lines := textfmt.Wrap(e.Text, max(1, r.X+r.W-left-1))
		if len(lines) == 0 {
			lines = []string{""}
		}
		y -= len(lines)
		glyph, role := levelGlyph(e)
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
				g.Right(left-4, y, 14, cell.Faint, "round "+textfmt.Grouped(e.Round))
			}
			g.Set(left-2, y, glyph, role)
		}
	}
}

// atEnd reports whether a recording is at its end.
func atEnd(m *panel.Host) bool {
	e := m.Replay.Extent()
	return m.Feed.Ended || e.Whole && m.Shown.Position >= e.Records
}

// missing returns why the output of the processes is not among the lines; "" if it is.
func (p *logView) missing(m *panel.Host) string {
	if _, ok := m.Opt.Source.(Teller); !ok {
		return "without the output of the processes, which this source does not report"
	}
	if p.err != nil {
		return "without the output of the processes: " + p.err.Error()
	}
	return ""
}

func (p *logView) rows(m *panel.Host) func(*view.View) panel.Rows {
	entries := p.entries(m)
	return func(*view.View) panel.Rows {
		out := panel.Rows{{"time", "round", "level", "kind", "text"}}
		for _, e := range entries {
			when, at := "", textfmt.Uint(e.Round)
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
