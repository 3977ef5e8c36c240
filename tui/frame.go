package tui

import (
	"fmt"
	"math"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// View draws a frame.
func (m *model) View() tea.View {
	if !m.same {
		m.frame = m.theme.String(m.paint())
	}
	v := tea.NewView(m.frame)
	v.AltScreen = true
	v.MouseMode = tea.MouseModeAllMotion // the legends show the values under the mouse
	v.WindowTitle = "brood " + m.title()
	return v
}

// paint draws a frame: lines at the top and bottom, panels between, and the open dialog above them.
func (m *model) paint() *cell.Grid {
	if m.grid == nil || m.grid.W != m.W || m.grid.H != m.H {
		m.grid = cell.New(m.W, m.H)
	}
	g := m.grid
	if m.hover.at.On {
		defer func(c panel.Cursor) { m.Cursor = c }(m.Cursor)
		m.Cursor = m.hover.at
	}
	g.Clear(g.Rect())
	m.tabs, m.timelineAt = m.tabs[:0], cell.Rect{}
	m.PlacePanels()
	if m.W < panel.MinW || m.H < panel.MinH {
		m.drawSmall(g)
	} else {
		m.statusLine(g)
		m.screenLine(g)
		for _, p := range m.Placed {
			m.paintPanel(g, p)
		}
		if m.showsTimeline() {
			m.drawTimeline(g)
		}
		m.keyLine(g, g.H-1)
	}
	if m.Popup != nil {
		m.popupInside = m.Popup.Draw(m.Host, g)
	}
	return g
}

// leastPanelH is the height of a border around one line.
const leastPanelH = 3

func (m *model) paintPanel(g *cell.Grid, p panel.Placement) {
	t := m.panel(p.Panel)
	g.Clear(p.Area)
	if p.Area.H < leastPanelH {
		if t.Line != nil {
			t.Line(m.Host, g, p.Area)
		}
		return
	}
	border := cell.Border
	if m.Focus == p.Panel {
		border = cell.Focus
	}
	title, note := t.Title(m.Host)
	in := g.Box(p.Area, border, title, note)
	chart.TintShades(g, cell.Rect{X: in.X, Y: p.Area.Y, W: in.W, H: 1}) // legends of maps
	t.Draw(m.Host, g, in)
}

// drawSmall draws the main numbers in a terminal that is too small for panels.
func (m *model) drawSmall(g *cell.Grid) {
	if m.Opt.Source == nil {
		g.Text(1, 0, g.W-2, cell.Strong, "brood: no run is open")
		g.Text(1, g.H-1, g.W-2, cell.Faint, fmt.Sprintf("%d x %d shows your runs   q leave", panel.MinW, panel.MinH))
		return
	}
	v := m.Shown
	glyph, word, role := m.phase()
	_, score := m.ScoreSeries()
	headline, x := m.headline()
	lines := []struct {
		name, value string
		role        cell.Role
	}{
		{"", "brood " + glyph + " " + word, role},
		{"", m.title(), cell.Plain},
		{"round", textfmt.Grouped(v.Progress.Rounds), cell.Plain},
		{"epoch", fmt.Sprintf("%.2f", v.Progress.Epochs), cell.Plain},
		{headline, "-", cell.Plain},
		{score, "-", cell.Plain},
		{"time", textfmt.Duration(m.Elapsed()), cell.Plain},
	}
	if !math.IsNaN(x) {
		lines[4].value = textfmt.Number(x)
	}
	if v.Evaluation != nil {
		lines[5].value = m.LastScoreText()
	}
	for y, l := range lines {
		if y >= g.H-1 {
			break
		}
		if l.name == "" {
			g.Text(1, y, g.W-2, l.role, l.value)
			continue
		}
		g.Text(1, y, g.W-2, cell.Faint, l.name)
		g.Right(min(30, g.W-1), y, 12, l.role, l.value)
	}
	hint := fmt.Sprintf("%d x %d shows panels   q leave", panel.MinW, panel.MinH)
	if m.Feed.Lost != nil {
		hint = m.lostLine()
	}
	if m.Toast.Text != "" {
		hint = m.Toast.Text
	}
	if m.prompt != nil {
		m.drawPrompt(g, g.H-1)
		return
	}
	g.Text(1, g.H-1, g.W-2, cell.Faint, hint)
}

// headline returns the loss of the centre, for an objective its fitness, or the median of the members if there is none;
// NaN if nothing was measured. name says which.
func (m *model) headline() (name string, x float64) {
	if s := m.Shown.Find(view.CentreLoss); !m.Shown.Dropped(s) {
		if x, ok := s.Last(view.Whole); ok && m.Shown.Config.Maximises() {
			return "centre " + m.Shown.Config.Fitness(), 0 - x
		} else if ok {
			return "centre loss", x
		}
	}
	name = m.SeriesName(m.MainSeries())
	s := m.Shown.Find(m.MainSeries())
	if m.Shown.Dropped(s) {
		return name, math.NaN()
	}
	l := s.Latest(m.Shown.Members())
	if len(l) == 0 {
		x, ok := s.Last(view.Whole)
		if !ok {
			return name, math.NaN()
		}
		return name, x
	}
	return name, panel.Median(l)
}
