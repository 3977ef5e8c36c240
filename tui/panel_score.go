package tui

import (
	"fmt"
	"strings"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

const scorePanel panelID = "score"

// newScore is the centre on the test set, over the rounds after which it was scored.
func newScore() panel {
	return panel{id: scorePanel, title: scoreTitle, draw: drawScore, point: pointRound,
		export: func(*model) func(*view.View) rows {
			return func(v *view.View) rows {
				return seriesRows(v, view.TestBits, view.TestError, view.TestHamming, view.TestRMSE, view.TestR2, view.TestFitness,
					view.TestLoss)
			}
		}}
}

func scoreTitle(m *model) (string, string) {
	_, title := m.scoreSeries()
	if m.shown.Config.Score().Percent {
		title += "  percent"
	}
	if m.shown.Evaluations == 0 {
		return title, ""
	}
	return title, count(int(m.shown.Evaluations), "score")
}

// unscored says when there will be a score, which may be many rounds ahead.
func (m *model) unscored() string {
	c := m.shown.Config
	if m.shown.Plan == nil || c == nil || m.shown.Over() || m.killed() {
		return m.waiting("the first score on the test set")
	}
	if c.Evaluate == 0 {
		return "the test set is scored at the end of each epoch"
	}
	return fmt.Sprintf("the test set is scored every %s", count(int(c.Evaluate), "round"))
}

func drawScore(m *model, g *cell.Grid, r cell.Rect) {
	id, _ := m.scoreSeries()
	s, e := m.shown.Find(id), m.shown.Evaluation
	if s == nil || e == nil || r.H < 4 {
		explain(g, r, m.unscored())
		return
	}
	area, legend := r.Top(r.H - 1)
	area, _ = area.Left(area.W - 1)
	edges := m.edges(2 * chart.Plot(area).W)
	c := curves{front: []chart.Layer{{
		Columns: s.Band(edges),
		Void:    s.Unmeasured(edges),
		Role:    cell.Centre,
		Style:   chart.Thin,
	}}}
	layers := c.layers()
	glyphs(layers)
	chart.Draw(g, area, m.scaled(chart.Chart{Layers: layers, Marks: m.unlabelledMarks(), Axis: c.axis(m, false)}))
	plain := func(x float64) string { return strings.TrimSuffix(scoreText(m.shown.Config.Score(), x), " %") }
	entries := []entry{
		{"━━", "last", fmt.Sprintf("%s @%d", plain(m.shown.Config.Score().Of(e)), e.Round), cell.Centre},
		{"", "best", plain(m.shown.BestError), 0},
	}
	lost := m.shown.Config.Score().Series != view.TestLoss && !m.shown.Config.Maximises()
	if lost {
		entries = append(entries, entry{"", "loss", Number(e.TestLoss), 0})
	}
	for _, s := range m.shown.Config.Scores()[1:] {
		entries = append(entries, entry{"", strings.TrimPrefix(s.Title, "test "), scoreText(s, s.Of(e)), 0})
	}
	if m.cursor.on {
		entries[0].name, entries[0].value = "then", m.testedThen()
		if lost {
			entries[2].value = "–"
			if x, ok := m.last(m.shown.Find(view.TestLoss), view.Whole); ok {
				entries[2].value = Number(x)
			}
		}
	}
	m.legendLine(g, legend, entries)
}

// quiet says that nothing crosses a link: one worker hosts everybody, and has done so from the first round on.
func (m *model) quiet() bool {
	return len(m.shown.Members().Workers()) == 1 && m.nothingSent()
}

// scores says whether there is a test set to score on.
func (m *model) scores() bool { return m.shown.Config != nil && m.shown.Config.Data != "" }

// threeW is the least width in cells for three charts side by side.
const threeW = 144

// low places the panels under the loss: what has something to say, side by side.
func (m *model) low(r cell.Rect) []placement {
	ids := []panelID{fitnessPanel, bandwidthPanel}
	switch {
	case m.scores() && m.quiet():
		ids = []panelID{fitnessPanel, scorePanel}
	case m.scores() && r.W >= threeW:
		ids = []panelID{fitnessPanel, scorePanel, bandwidthPanel}
	}
	var out []placement
	for i, id := range ids {
		left, rest := r.Left(r.W / (len(ids) - i))
		out, r = append(out, placement{id, left}), rest
	}
	return out
}
