package tui

import (
	"fmt"
	"math"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

const (
	distributionPanel panelID = "distribution"
	rankingPanel      panelID = "ranking"
)

// traitKeys are those of all panels on the Population screen, but for those that geometry has in their place.
func traitKeys(geometry *places) []binding {
	place := func(d int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { m.placeBy(d); return nil }
	}
	return []binding{
		{keys: []string{"t"}, title: "next quantity of members", do: (*model).turnTrait},
		{keys: []string{"w"}, title: "where members stand", do: geometry.show},
		{keys: []string{"j", "down"}, title: "next in the ranking", do: place(1)},
		{keys: []string{"up"}, title: "one before", do: place(-1)},
		{keys: []string{"g", "home"}, title: "first in the ranking", do: place(-math.MaxInt32)},
		{keys: []string{"G", "end"}, title: "last in the ranking", do: place(math.MaxInt32)},
	}
}

// newTraits are the panels that the Population screen has of its own: how values are distributed over the rounds, and
// who has which now.
func newTraits(geometry *places) []panel {
	const group = "population (on its screen)"
	hints := func(*model) [][2]string {
		return [][2]string{{"t", "measured"}, {"w", "where"}, {"↑↓", "member"}, {"b", "best"}}
	}
	return []panel{
		{
			id: distributionPanel, title: distributionTitle, draw: drawDistribution, export: replicaRows,
			screen: &screen{
				digit:   4,
				name:    "Population",
				short:   "Pop",
				charts:  true,
				place:   geometry.place,
				instead: "Positions",
				show:    geometry.show,
			},
			group: group, keys: traitKeys(geometry), hints: hints, point: pointRound,
		},
		{
			id: rankingPanel, title: rankingTitle, draw: drawRanking, export: replicaRows,
			group: group, keys: traitKeys(geometry), hints: hints, point: pointRanking,
		},
	}
}

func distributionTitle(m *model) (string, string) {
	s := m.strip()
	if s == nil {
		return "distribution", ""
	}
	note := m.smoothNote(s) + m.windowNote()
	if len(m.traits()) > 1 {
		note = "t next · " + note
	}
	return "distribution  " + s.Name, note
}

// drawDistribution shades each round's values by how many members have them, and lays the best, the median and the
// focused member over it.
func drawDistribution(m *model, g *cell.Grid, r cell.Rect) {
	s, roster := m.strip(), m.shown.Members()
	if s == nil || len(roster.Members) == 0 || r.H < 5 {
		explain(g, r, m.waiting("the population"))
		return
	}
	area, legend := r.Top(r.H - 1)
	area, _ = area.Left(area.W - 1)
	w := chart.Plot(area).W
	edges := m.edges(w)
	void := s.Unmeasured(edges)
	density := make([][]view.Bucket, len(roster.Members))
	for i, id := range roster.Members {
		density[i] = chart.Hold(s.Columns(id, edges), void)
	}
	c := curves{}
	c.add(m, s, s.Median, 2*w, cell.Median, chart.Thin)
	c.add(m, s, columnsOf(s, m.member), 2*w, cell.Member, chart.Dots)
	layers := c.layers()
	glyphs(layers)
	chart.Draw(g, area, m.scaled(chart.Chart{
		Layers: layers, Density: density, Marks: m.unlabelledMarks(), Axis: m.fit(m.logAxis, nil, s.Band(m.edges(2*w))),
	}))
	m.legendLine(g, legend, distributionLegend(m, s))
}

// distributionLegend says what the shades mean, and how the values of now are spread.
func distributionLegend(m *model, s *view.Series) (out []entry) {
	l := m.ranked(s)
	if len(l) == 0 || m.dropped(s) {
		return nil
	}
	if x, ok := m.last(s, m.member); ok {
		out = append(out, entry{"╌╌", fmt.Sprintf("m%d", m.member), m.dated(s, lead(Number(x), 6)), cell.Member})
	}
	out = append(out, entry{"──", "median", m.dated(s, lead(Number(middle(l)), 6)), cell.Median})
	if d := deviation(l); d == d {
		out = append(out, entry{"", "deviation", lead(Number(d), 6), cell.Plain})
	}
	return append(out, entry{"", "░ few ▒ ▓ █ half of the members", "", cell.Plain})
}

// deviation is the standard deviation of finite values, NaN of fewer than two.
func deviation(l []view.Value) float64 {
	n, mean, sum := 0.0, 0.0, 0.0
	for _, v := range l {
		if v.X-v.X == 0 {
			n++
			d := v.X - mean
			mean += d / n
			sum += d * (v.X - mean)
		}
	}
	if n < 2 {
		return math.NaN()
	}
	return math.Sqrt(sum / (n - 1))
}
