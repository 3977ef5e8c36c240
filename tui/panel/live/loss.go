// Package live has the panels of training: loss, fitness, bandwidth, score, population, traffic and the free charts.
package live

import (
	"fmt"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// NewLoss returns the chart of the training objective, the main panel of the Live screen. Key w shows other panels
// instead.
func NewLoss(other panel.Instead) panel.Panel {
	return panel.Panel{
		ID: panel.Loss, Title: lossTitle, Draw: drawLoss, Export: lossRows, Plot: panel.PlotRound,
		Group: "the loss (on Live)", Example: "left { B c: branch at a mark",
		Keys: []panel.Binding{{Keys: []string{"w"}, Title: "mistakes of the model", Do: other.Show}},
		Screen: &panel.Screen{
			Digit:   1,
			Name:    "Live",
			Charts:  true,
			Place:   other.Place,
			Instead: "Mistakes",
			Show:    other.Show,
		},
	}
}

func lossTitle(m *panel.Host) (string, string) {
	s, title, unit := m.LossSeries()
	if unit != "" {
		unit = "  " + unit
	}
	scale := "linear y"
	if m.LogAxis && !m.Shown.Config.Maximises() {
		scale = "log y"
	}
	return title + unit, scale + " · " + m.SmoothNote(s) + m.WindowNote()
}

// maxShaded is the largest number of members whose band is shaded by the number of members at each value. With more the
// shades would cost too much for each frame, and the band is stippled.
const maxShaded = 64

func drawLoss(m *panel.Host, g *cell.Grid, r cell.Rect) {
	s, _, _ := m.LossSeries()
	centre := m.Shown.Find(view.CentreLoss)
	if s == nil && centre == nil || r.H < 4 {
		panel.Explain(g, r, m.WaitingText("the loss"))
		return
	}
	area, legend := panel.ChartArea(r)
	n := 2 * chart.Plot(area).W
	var c panel.Curves
	var shaded [][]view.Bucket
	lines := m.LineMembers(s)
	if s != nil {
		edges := m.Edges(n)
		c.Under = []chart.Layer{{Columns: s.Band(edges), Void: s.Unmeasured(edges), Role: cell.Band, Style: chart.Fill}}
	}
	switch members := len(m.Shown.Members().Members); {
	case s == nil:
	case lines != nil:
		c.AddMembers(m, s, lines, n)
	case len(s.Members) > 1 && members <= maxShaded:
		shaded = density(m, s, n/2)
		fallthrough
	default:
		c.Add(m, s, s.Median, n, cell.Median, chart.Thin)
		if len(s.Members) > 1 {
			c.Add(m, s, panel.MemberColumns(s, m.Member), n, cell.Member, chart.Dots)
		}
	}
	if centre != nil {
		c.Add(m, centre, m.CentreColumns(centre), n, cell.Centre, chart.Thick)
	}
	axis := c.Axis(m, m.LogAxis && !m.Shown.Config.Maximises())
	if shaded != nil { // instead of the stippled band
		c.Under = c.Under[1:]
	}
	chart.Draw(g, area, m.WithAxis(chart.Chart{Layers: c.Layers(), Density: shaded, Marks: m.Marks(), Axis: axis}))
	lossLegend(m, g, legend, s, centre)
}

func lossLegend(m *panel.Host, g *cell.Grid, r cell.Rect, s, centre *view.Series) {
	var out []panel.Entry
	v := m.Shown
	if x, ok := m.ShownValue(centre, view.Whole); ok && !m.Dropped(centre) {
		if v.Config.Maximises() {
			x = 0 - x
		}
		out = append(out, m.ValueEntry(centre, "━━", "centre val", x, cell.Centre))
	}
	lines := m.LineMembers(s)
	switch {
	case m.Dropped(s):
		out = append(out, scoreEntries(m)...)
	case lines != nil: // the score is first, since narrow panels cut the members off
		out = append(append(out, scoreEntries(m)...), m.LineEntries(s, lines)...)
		out = append(out, rangeEntries(m, s)...)
	default:
		out = append(append(out, bandEntries(m, s)...), scoreEntries(m)...)
	}
	m.LegendLine(g, r, out)
}

// bandEntries returns the legend of the focused member, the median and the band.
func bandEntries(m *panel.Host, s *view.Series) (out []panel.Entry) {
	l := m.MemberValues(s)
	if len(l) == 0 {
		if x, ok := m.ShownValue(s, view.Whole); ok {
			out = append(out, m.ValueEntry(s, "──", "population", x, cell.Median))
		}
		return out
	}
	if x, ok := m.ShownValue(s, m.Member); ok && len(l) > 1 {
		out = append(out, m.ValueEntry(s, "╌╌", fmt.Sprintf("m%d", m.Member), x, cell.Member))
	}
	out = append(out, m.ValueEntry(s, "──", "median", panel.Median(l), cell.Median))
	return append(out, rangeEntries(m, s)...)
}

// rangeEntries returns the legend of the band: the least and the greatest value.
func rangeEntries(m *panel.Host, s *view.Series) []panel.Entry {
	l := m.MemberValues(s)
	if len(l) == 0 {
		return nil
	}
	return []panel.Entry{{Glyph: "▒", Name: fmt.Sprintf("all %d", len(l)),
		Value: m.WithRound(s, textfmt.PadLeft(textfmt.Number(l[len(l)-1].X), 6)+"–"+textfmt.Number(l[0].X)),
		Role:  cell.Band}}
}

// scoreEntries returns the test score as the entry of a legend; none before the first evaluation.
func scoreEntries(m *panel.Host) []panel.Entry {
	switch {
	case m.Shown.Evaluation == nil:
		return nil
	case m.Cursor.On:
		return []panel.Entry{{Name: "test", Value: m.CursorScoreText()}}
	}
	return []panel.Entry{{Name: "test", Value: m.LastScoreText()}}
}

func lossRows(m *panel.Host) func(*view.View) panel.Rows {
	main := m.MainSeries()
	return func(v *view.View) panel.Rows {
		return panel.SeriesRows(v, main, view.CentreLoss, view.TestLoss, view.TestBits, view.TestError,
			view.TestHamming,
			view.TestRMSE, view.TestR2, view.TestFitness)
	}
}

// PlaceLive lays out the Live screen.
func PlaceLive(m *panel.Host, b cell.Rect) []panel.Placement {
	switch {
	case b.W < panel.FullW:
		return liveNarrow(m, b)
	case b.W >= panel.WideW && b.H >= 34:
		return liveWide(m, b)
	}
	events := 5
	if b.H < 30 {
		events = 1
	}
	main, lane := b.Top(b.H - events)
	var strip cell.Rect
	if b.H >= 30 {
		main, strip = main.Top(main.H - 4)
	}
	top, low := main.Top((main.H*3 + 2) / 5)
	loss, knobs := top.Left(top.W - panel.RailW)
	out := append([]panel.Placement{{Panel: panel.Loss, Area: loss}, {Panel: panel.Knobs, Area: knobs}},
		lowPanels(m, low)...)
	if strip.H > 0 {
		out = append(out, panel.Placement{Panel: panel.Replicas, Area: strip})
	}
	return append(out, panel.Placement{Panel: panel.Events, Area: lane})
}

func liveNarrow(m *panel.Host, b cell.Rect) []panel.Placement {
	main, lane := b.Top(b.H - 1)
	top, low := main.Top((main.H*11 + 9) / 18)
	return append(append([]panel.Placement{{Panel: panel.Loss, Area: top}}, lowPanels(m, low)...),
		panel.Placement{Panel: panel.Events, Area: lane})
}

func liveWide(m *panel.Host, b cell.Rect) []panel.Placement {
	left, right := b.Left(b.W - panel.RailW - 4)
	main, lane := left.Top(left.H - 7)
	top, low := main.Top((main.H*11 + 9) / 18)
	out := []panel.Placement{{Panel: panel.Loss, Area: top}}
	if !isOneModel(m) {
		loss, heat := top.Left(top.W * 5 / 8)
		out = []panel.Placement{{Panel: panel.Loss, Area: loss}, {Panel: panel.Population, Area: heat}}
	}
	knobs, strip := right.Top((right.H*5 + 4) / 9)
	out = append(append(out, panel.Placement{Panel: panel.Knobs, Area: knobs}), lowPanels(m, low)...)
	return append(out, panel.Placement{Panel: panel.Replicas, Area: strip},
		panel.Placement{Panel: panel.Events, Area: lane})
}
