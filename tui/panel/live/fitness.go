package live

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"brood/optim"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// SecondarySeries returns the series shown next to the main one: the fitness, or in a run without a model the series of
// the algorithm that was measured first.
func SecondarySeries(m *panel.Host) (name, title string) {
	name, title = view.Fitness, m.Shown.Config.Fitness()
	if m.Alg == nil || m.Shown.Config == nil || m.Shown.Config.Data != "" {
		return name, title
	}
	first := uint64(math.MaxUint64)
	for _, s := range m.Alg.Series {
		if x := m.Shown.Find(s.Name); x != nil && s.Name != m.MainSeries() {
			if lo, _ := x.Rounds(); lo < first {
				first, name, title = lo, s.Name, s.Title
			}
		}
	}
	return name, title
}

// NewFitness returns the chart of the fitness, or of another series if the run has no model.
func NewFitness() panel.Panel {
	return panel.Panel{ID: panel.Fitness, Title: fitnessTitle, Draw: drawFitness, Plot: panel.PlotRound,
		Export: panel.SeriesExport(view.Fitness, view.Spread)}
}

func fitnessTitle(m *panel.Host) (string, string) {
	name, title := SecondarySeries(m)
	note := m.SmoothNote(m.Shown.Find(name))
	if name != view.Fitness {
		return title, strings.TrimSuffix(note, " · ")
	}
	spread := m.Shown.Find(view.Spread)
	if l := m.MemberValues(spread); len(l) > 0 && !m.Dropped(spread) {
		return title, note + "parameter spread " + m.WithRound(spread, textfmt.Number(panel.Median(l)))
	}
	return title, strings.TrimSuffix(note, " · ")
}

// NoFitnessText returns the message why there is no fitness. An algorithm that declares the series measures it at the
// end of a cycle. For other algorithms a probe measures it together with the loss of the centre, unless all members are
// one model.
func NoFitnessText(m *panel.Host) string {
	switch {
	case declares(m, view.Fitness):
		if text := firstScores(m); text != "" && m.Running() {
			return text
		}
	case m.Shown.Find(view.CentreLoss) == nil:
	case m.Knobs != nil && m.Knobs.Counts().Replicas > 1: // the last probe measured the previous algorithm
		return "no fitness yet: the next probe measures it"
	default:
		return "all members train one model, so none has a separate fitness: the thick line of the training loss is " +
			"its loss on validation samples"
	}
	return m.WaitingText("fitness")
}

func declares(m *panel.Host, series string) bool {
	return m.Alg != nil && slices.ContainsFunc(m.Alg.Series, func(s optim.Series) bool { return s.Name == series })
}

// firstScores returns the message in which round members are scored first; "" without a plan, and if every round scores
// them.
func firstScores(m *panel.Host) string {
	if m.Knobs == nil || m.Shown.Plan == nil {
		return ""
	}
	cycle, since := uint64(m.Knobs.Counts().Cycle), uint64(0)
	if cycle <= 1 {
		return ""
	}
	for _, k := range m.Shown.Marks {
		if k.Swap {
			since = k.Round - 1 // a mark is at the first round of the algorithm
		}
	}
	if first := since + cycle; first > m.Shown.Progress.Rounds { // otherwise the cycle was changed meanwhile
		return "no fitness yet: members are scored at the end of a cycle, first in round " + textfmt.Grouped(first)
	}
	return "no fitness yet: members are scored at the end of a cycle, which is " + textfmt.Count(int(cycle), "round")
}

func drawFitness(m *panel.Host, g *cell.Grid, r cell.Rect) {
	name, _ := SecondarySeries(m)
	s := m.Shown.Find(name)
	if s == nil || r.H < 4 {
		panel.Explain(g, r, NoFitnessText(m))
		return
	}
	area, legend := panel.ChartArea(r)
	n := 2 * chart.Plot(area).W
	edges := m.Edges(n)
	c := panel.Curves{Under: []chart.Layer{{Columns: s.Band(edges), Void: s.Unmeasured(edges), Role: cell.Band,
		Style: chart.Fill}}}
	c.Add(m, s, s.Median, n, cell.Median, chart.Thin)
	c.Add(m, s, best(s), n, cell.Centre, chart.Thin)
	chart.Draw(g, area, m.WithAxis(chart.Chart{Layers: c.Layers(), Marks: m.UnlabelledMarks(), Axis: c.Axis(m, false)}))
	l := m.MemberValues(s)
	if len(l) == 0 || m.Dropped(s) {
		return
	}
	if !m.Fresh(s) {
		m.LegendLine(g, legend, []panel.Entry{{Name: "best", Value: m.WithRound(s, textfmt.Number(l[0].X))},
			{Name: "worst", Value: m.WithRound(s, textfmt.Number(l[len(l)-1].X))}})
		return
	}
	worst := l[len(l)-1]
	entries := []panel.Entry{
		{Glyph: "━━", Name: "best", Value: fmt.Sprintf("%s m%-2d", textfmt.Number(l[0].X), l[0].Member),
			Role: cell.Centre},
		{Glyph: "──", Name: "median", Value: textfmt.Number(panel.Median(l)), Role: cell.Median},
		{Glyph: "▒", Name: "worst", Value: fmt.Sprintf("%s m%d", textfmt.Number(worst.X), worst.Member),
			Role: cell.Band},
	}
	if r.W < 62 {
		entries = []panel.Entry{
			{Name: "best", Value: fmt.Sprintf("%s m%d", textfmt.Number(l[0].X), l[0].Member)},
			{Name: "worst", Value: textfmt.Number(worst.X)},
			{Name: "med", Value: textfmt.Number(panel.Median(l))},
		}
	}
	m.LegendLine(g, legend, entries)
}

// best returns the largest value of each column. Its count is the number of rounds of the column that have a median.
func best(s *view.Series) func(edges []uint64) []view.Bucket {
	return func(edges []uint64) []view.Bucket {
		band, median := s.Band(edges), s.Median(edges)
		for i, b := range band {
			if !b.Empty() {
				k := max(1, median[i].Count)
				band[i] = view.Bucket{Min: b.Max, Max: b.Max, Sum: float64(k) * b.Max, Count: k}
			}
		}
		return band
	}
}
