package tui

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"brood/optim"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

// secondSeries returns the series shown next to the main one: the fitness, or in a run without a model the series of
// the algorithm that was measured first.
func (m *model) secondSeries() (name, title string) {
	name, title = view.Fitness, m.shown.Config.Fitness()
	if m.alg == nil || m.shown.Config == nil || m.shown.Config.Data != "" {
		return name, title
	}
	first := uint64(math.MaxUint64)
	for _, s := range m.alg.Series {
		if x := m.shown.Find(s.Name); x != nil && s.Name != m.mainSeries() {
			if lo, _ := x.Rounds(); lo < first {
				first, name, title = lo, s.Name, s.Title
			}
		}
	}
	return name, title
}

const fitnessPanel panelID = "fitness"

func newFitness() panel {
	return panel{id: fitnessPanel, title: fitnessTitle, draw: drawFitness, export: fitnessRows, point: pointRound}
}

func fitnessTitle(m *model) (string, string) {
	name, title := m.secondSeries()
	note := m.smoothNote(m.shown.Find(name))
	if name != view.Fitness {
		return title, strings.TrimSuffix(note, " · ")
	}
	spread := m.shown.Find(view.Spread)
	if l := m.ranked(spread); len(l) > 0 && !m.dropped(spread) {
		return title, note + "parameter spread " + m.dated(spread, Number(middle(l)))
	}
	return title, strings.TrimSuffix(note, " · ")
}

// unmeasured returns the message why there is no fitness. An algorithm that declares the series measures it at the end
// of a cycle. For other algorithms a probe measures it together with the loss of the centre, unless all members are one
// model.
func (m *model) unmeasured() string {
	switch {
	case m.declares(view.Fitness):
		if text := m.firstScores(); text != "" && m.running() {
			return text
		}
	case m.shown.Find(view.CentreLoss) == nil:
	case m.knobs != nil && m.knobs.Counts().Replicas > 1: // the last probe measured the previous algorithm
		return "no fitness yet: the next probe measures it"
	default:
		return "all members train one model, so that none has a fitness of its own: its loss on validation samples is the thick line of the training loss"
	}
	return m.waiting("fitness")
}

func (m *model) declares(series string) bool {
	return m.alg != nil && slices.ContainsFunc(m.alg.Series, func(s optim.Series) bool { return s.Name == series })
}

// firstScores returns the message in which round members are scored first; "" without a plan, and if every round scores
// them.
func (m *model) firstScores() string {
	if m.knobs == nil || m.shown.Plan == nil {
		return ""
	}
	cycle, since := uint64(m.knobs.Counts().Cycle), uint64(0)
	if cycle <= 1 {
		return ""
	}
	for _, k := range m.shown.Marks {
		if k.Swap {
			since = k.Round - 1 // a mark is at the first round of the algorithm
		}
	}
	if first := since + cycle; first > m.shown.Progress.Rounds { // otherwise the cycle was changed meanwhile
		return "no fitness yet: members are scored at the end of a cycle, first in round " + round(first)
	}
	return "no fitness yet: members are scored at the end of a cycle, which is " + count(int(cycle), "round")
}

func drawFitness(m *model, g *cell.Grid, r cell.Rect) {
	name, _ := m.secondSeries()
	s := m.shown.Find(name)
	if s == nil || r.H < 4 {
		explain(g, r, m.unmeasured())
		return
	}
	area, legend := r.Top(r.H - 1)
	area, _ = area.Left(area.W - 1)
	n := 2 * chart.Plot(area).W
	edges := m.edges(n)
	band := s.Band(edges)
	c := curves{behind: []chart.Layer{{Columns: band, Void: s.Unmeasured(edges), Role: cell.Band, Style: chart.Fill}}}
	c.add(m, s, s.Median, n, cell.Median, chart.Thin)
	c.add(m, s, best(s), n, cell.Centre, chart.Thin)
	layers := c.layers()
	glyphs(layers)
	chart.Draw(g, area, m.scaled(chart.Chart{Layers: layers, Marks: m.unlabelledMarks(), Axis: c.axis(m, false)}))
	l := m.ranked(s)
	if len(l) == 0 || m.dropped(s) {
		return
	}
	if !m.fresh(s) {
		m.legendLine(g, legend, []entry{{"", "best", m.dated(s, Number(l[0].X)), 0},
			{"", "worst", m.dated(s, Number(l[len(l)-1].X)), 0}})
		return
	}
	worst := l[len(l)-1]
	entries := []entry{
		{"━━", "best", fmt.Sprintf("%s m%-2d", Number(l[0].X), l[0].Member), cell.Centre},
		{"──", "median", Number(middle(l)), cell.Median},
		{"▒", "worst", fmt.Sprintf("%s m%d", Number(worst.X), worst.Member), cell.Band},
	}
	if r.W < 62 {
		entries = []entry{{"", "best", fmt.Sprintf("%s m%d", Number(l[0].X), l[0].Member), 0},
			{"", "worst", Number(worst.X), 0}, {"", "med", Number(middle(l)), 0}}
	}
	m.legendLine(g, legend, entries)
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

// unlabelledMarks returns the marks without texts, which another panel shows.
func (m *model) unlabelledMarks() []chart.Mark {
	out := m.marks()
	for i := range out {
		out[i].Text = ""
	}
	return out
}
