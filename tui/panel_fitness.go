package tui

import (
	"fmt"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

func fitnessTitle(m *model) (string, string) {
	if l := m.shown.Find(view.Spread).Latest(m.shown.Members()); len(l) > 0 {
		return "fitness  validation", "spread " + num(middle(l))
	}
	return "fitness  validation", ""
}

func drawFitness(m *model, g *cell.Grid, r cell.Rect) {
	s := m.shown.Find(view.Fitness)
	if s == nil || r.H < 4 {
		explain(g, r, m.waiting("fitness"))
		return
	}
	area, legend := r.Top(r.H - 1)
	area, _ = area.Left(area.W - 1)
	lo, hi := m.window()
	n := 2 * chart.Plot(area).W
	band, median := s.Band(lo, hi, n), s.Median(lo, hi, n)
	best := make([]view.Bucket, n)
	for i, b := range band {
		if !b.Empty() {
			best[i] = view.Bucket{Min: b.Max, Max: b.Max, Sum: b.Max, Count: 1}
		}
	}
	layers := []chart.Layer{
		{Columns: band, Role: cell.Band, Style: chart.Fill},
		{Columns: median, Role: cell.Median, Style: chart.Thin},
		{Columns: best, Role: cell.Centre, Style: chart.Thin},
	}
	glyphs(layers)
	chart.Draw(g, area, chart.Chart{Layers: layers, Marks: m.bare(), From: lo, To: hi, Axis: chart.Fit(false, band), ASCII: m.opt.ASCII})
	l := s.Latest(m.shown.Members())
	if len(l) == 0 {
		return
	}
	worst := l[len(l)-1]
	entries := []entry{
		{"━━", "best", fmt.Sprintf("%s m%-2d", num(l[0].X), l[0].Member), cell.Centre},
		{"──", "median", num(middle(l)), cell.Median},
		{"▒", "worst", fmt.Sprintf("%s m%d", num(worst.X), worst.Member), cell.Band},
	}
	if r.W < 58 {
		entries = []entry{{"", "best", fmt.Sprintf("%s m%d", num(l[0].X), l[0].Member), 0}, {"", "worst", num(worst.X), 0}, {"", "med", num(middle(l)), 0}}
	}
	m.legendLine(g, legend, entries)
}

// bare are the marks without words: one panel with them is enough.
func (m *model) bare() []chart.Mark {
	out := m.marks()
	for i := range out {
		out[i].Text = ""
	}
	return out
}
