package tui

import (
	"fmt"
	"math"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

func round(n uint64) string { return chart.Count(n) }

// View draws a frame.
func (m *model) View() tea.View {
	v := tea.NewView(m.theme.String(m.paint()))
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	v.WindowTitle = "brood " + m.title()
	return v
}

// paint fills the grid: lines at the top and bottom, panels between, and what is open above them.
func (m *model) paint() *cell.Grid {
	if m.grid == nil || m.grid.W != m.w || m.grid.H != m.h {
		m.grid = cell.New(m.w, m.h)
	}
	g := m.grid
	g.Clear(g.Rect())
	m.tabs = m.tabs[:0]
	m.layout()
	if m.w < leastW || m.h < leastH {
		m.vital(g)
	} else {
		m.statusLine(g)
		m.screenLine(g)
		for _, p := range m.placed {
			m.paintPanel(g, p)
		}
		if m.replay != nil {
			m.replayLine(g, g.H-2)
		}
		m.keyLine(g, g.H-1)
	}
	if m.popup != nil {
		m.inside = m.popup.draw(m, g)
	}
	return g
}

// leastPanelH is the height of a border around one line.
const leastPanelH = 3

func (m *model) paintPanel(g *cell.Grid, p placement) {
	t := m.panel(p.panel)
	g.Clear(p.at)
	if p.at.H < leastPanelH {
		if t.line != nil {
			t.line(m, g, p.at)
		}
		return
	}
	border := cell.Border
	if m.focus == p.panel {
		border = cell.Focus
	}
	title, note := t.title(m)
	t.draw(m, g, g.Box(p.at, border, title, note))
}

// vital is the screen for terminals that are too small for panels.
func (m *model) vital(g *cell.Grid) {
	if m.opt.Source == nil {
		g.Text(1, 0, g.W-2, cell.Strong, "brood: no run is open")
		g.Text(1, g.H-1, g.W-2, cell.Faint, fmt.Sprintf("%d x %d shows your runs   q leave", leastW, leastH))
		return
	}
	v := m.shown
	glyph, word, role := m.phase()
	_, name := m.scoreSeries()
	lines := []struct {
		name, value string
		role        cell.Role
	}{
		{"", "brood " + glyph + " " + word, role},
		{"", m.title(), cell.Plain},
		{"round", round(v.Progress.Rounds), cell.Plain},
		{"epoch", fmt.Sprintf("%.2f", v.Progress.Epochs), cell.Plain},
		{"loss", "-", cell.Plain},
		{name, "-", cell.Plain},
		{"time", span(m.elapsed()), cell.Plain},
	}
	if x := m.headline(); !math.IsNaN(x) {
		lines[4].value = Number(x)
	}
	if v.Evaluation != nil {
		lines[5].value = m.tested()
	}
	for y, l := range lines {
		if y >= g.H-1 {
			break
		}
		x := 1
		if l.name != "" {
			g.Text(x, y, g.W-2, cell.Faint, l.name)
			g.Right(24, y, 12, l.role, l.value)
			continue
		}
		g.Text(x, y, g.W-2, l.role, l.value)
	}
	hint := fmt.Sprintf("%d x %d shows panels   q leave", leastW, leastH)
	if m.feed.lost != nil {
		hint = m.lostLine()
	}
	if m.toast.text != "" {
		hint = m.toast.text
	}
	if m.prompt != nil {
		m.drawPrompt(g, g.H-1)
		return
	}
	g.Text(1, g.H-1, g.W-2, cell.Faint, hint)
}

// headline is the loss that stands for the run: the centre's, or the population's median.
func (m *model) headline() float64 {
	if s := m.shown.Find(view.CentreLoss); !m.shown.Dropped(s) {
		if x, ok := s.Last(view.Whole); ok {
			return x
		}
	}
	s := m.shown.Find(m.mainSeries())
	if m.shown.Dropped(s) {
		return math.NaN()
	}
	l := s.Latest(m.shown.Members())
	if len(l) == 0 {
		x, ok := s.Last(view.Whole)
		if !ok {
			return math.NaN()
		}
		return x
	}
	return middle(l)
}

// middle is the median of values in order.
func middle(l []view.Value) float64 {
	x := make([]float64, len(l))
	for i, v := range l {
		x[i] = v.X
	}
	return view.Median(x)
}
