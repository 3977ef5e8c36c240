package live

import (
	"fmt"
	"math"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// traitKeys returns the keys of all panels on the Population screen, except those of the positions.
func traitKeys(positions panel.Instead) []panel.Binding {
	place := panel.Steps((*panel.Host).MoveInRanking)
	return []panel.Binding{
		{Keys: []string{"t"}, Title: "next quantity of members", Do: (*panel.Host).NextTrait},
		{Keys: []string{"w"}, Title: "positions of members", Do: positions.Show},
		{Keys: []string{"j", "down"}, Title: "next in the ranking", Do: place(1)},
		{Keys: []string{"up"}, Title: "previous in the ranking", Do: place(-1)},
		{Keys: []string{"g", "home"}, Title: "first in the ranking", Do: place(-math.MaxInt32)},
		{Keys: []string{"G", "end"}, Title: "last in the ranking", Do: place(math.MaxInt32)},
	}
}

// NewPopulationPanels returns the panels of the Population screen: the distribution of a series over the rounds, and
// the ranking of the members. Key w shows positions instead.
func NewPopulationPanels(positions panel.Instead) []panel.Panel {
	const group = "population (on its screen)"
	hints := func(*panel.Host) [][2]string {
		return [][2]string{{"t", "measured"}, {"w", "where"}, {"↑↓", "member"}, {"b", "best"}}
	}
	return []panel.Panel{
		{
			ID: panel.Distribution, Title: distributionTitle, Draw: drawDistribution, Export: replicaRows,
			Screen: &panel.Screen{
				Digit:   4,
				Name:    "Population",
				Short:   "Pop",
				Charts:  true,
				Place:   positions.Place,
				Instead: "Positions",
				Show:    positions.Show,
			},
			Group:   group,
			Example: "t b: best by another quantity",
			Keys:    traitKeys(positions), Hints: hints, Plot: panel.PlotRound,
		},
		{
			ID: panel.Ranking, Title: rankingTitle, Draw: drawRanking, Export: replicaRows,
			Group: group, Keys: traitKeys(positions), Hints: hints, Point: pointRanking,
		},
	}
}

func distributionTitle(m *panel.Host) (string, string) {
	s := m.TraitSeries()
	if s == nil {
		return "distribution", ""
	}
	note := m.SmoothNote(s) + m.WindowNote()
	if len(m.Traits()) > 1 {
		note = "t next · " + note
	}
	return "distribution  " + m.SeriesName(s.Name), note
}

// drawDistribution shades the values of each round by the number of members that have them, and draws the median and
// the focused member over it.
func drawDistribution(m *panel.Host, g *cell.Grid, r cell.Rect) {
	s, roster := m.TraitSeries(), m.Shown.Members()
	if s == nil || len(roster.Members) == 0 || r.H < 5 {
		panel.Explain(g, r, m.WaitingText("the population"))
		return
	}
	area, legend := panel.ChartArea(r)
	w := chart.Plot(area).W
	c := panel.Curves{}
	c.Add(m, s, s.Median, 2*w, cell.Median, chart.Thin)
	c.Add(m, s, panel.MemberColumns(s, m.Member), 2*w, cell.Member, chart.Dots)
	chart.Draw(g, area, m.WithAxis(chart.Chart{
		Layers: c.Layers(), Density: density(m, s, w), Marks: m.UnlabelledMarks(), Axis: m.FitAxis(m.LogAxis, nil,
			s.Band(m.Edges(2*w))),
	}))
	m.LegendLine(g, legend, distributionLegend(m, s))
}

// density returns the curves of all members in w columns, for [chart.Chart].
func density(m *panel.Host, s *view.Series, w int) [][]view.Bucket {
	members, edges := m.Shown.Members().Members, m.Edges(w)
	void := s.Unmeasured(edges)
	out := make([][]view.Bucket, len(members))
	for i, id := range members {
		out[i] = chart.FillGaps(s.Columns(id, edges), void)
	}
	return out
}

// distributionLegend returns the legend: the values of now, their deviation and the shades.
func distributionLegend(m *panel.Host, s *view.Series) (out []panel.Entry) {
	l := m.MemberValues(s)
	if len(l) == 0 || m.Dropped(s) {
		return nil
	}
	if x, ok := m.ShownValue(s, m.Member); ok {
		out = append(out, m.ValueEntry(s, "╌╌", fmt.Sprintf("m%d", m.Member), x, cell.Member))
	}
	out = append(out, m.ValueEntry(s, "──", "median", panel.Median(l), cell.Median))
	if d := Deviation(l); d == d {
		out = append(out, panel.Entry{Name: "deviation", Value: textfmt.PadLeft(textfmt.Number(d), 6),
			Role: cell.Plain})
	}
	return append(out, panel.Entry{Name: "░ few ▒ ▓ █ half of the members", Role: cell.Plain})
}

// Deviation returns the standard deviation of the finite values; NaN for fewer than two.
func Deviation(l []view.Value) float64 {
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
