package live

import (
	"fmt"
	"slices"
	"strings"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// NewScore returns the chart of the centre's score on the test set.
func NewScore() panel.Panel {
	return panel.Panel{ID: panel.Score, Title: scoreTitle, Draw: drawScore, Plot: panel.PlotRound,
		Export: panel.SeriesExport(view.TestBits, view.TestError, view.TestHamming, view.TestRMSE, view.TestR2,
			view.TestFitness, view.TestLoss)}
}

func scoreTitle(m *panel.Host) (string, string) {
	title := m.Shown.Config.Score().Heading()
	if m.Shown.Evaluations == 0 {
		return title, ""
	}
	return title, textfmt.Count(int(m.Shown.Evaluations), "score")
}

// NoScoreText returns the message when the next score is expected.
func NoScoreText(m *panel.Host) string {
	c := m.Shown.Config
	if m.Shown.Plan == nil || c == nil || m.Shown.Over() || m.Killed() {
		return m.WaitingText("the first score on the test set")
	}
	if c.Evaluate == 0 {
		return "the test set is scored at the end of each epoch"
	}
	return fmt.Sprintf("the test set is scored every %s", textfmt.Count(int(c.Evaluate), "round"))
}

func drawScore(m *panel.Host, g *cell.Grid, r cell.Rect) {
	id, _ := m.ScoreSeries()
	s, e := m.Shown.Find(id), m.Shown.Evaluation
	if s == nil || e == nil || r.H < 4 {
		panel.Explain(g, r, NoScoreText(m))
		return
	}
	area, legend := panel.ChartArea(r)
	edges := m.Edges(2 * chart.Plot(area).W)
	c := panel.Curves{Over: []chart.Layer{{
		Columns: s.Band(edges),
		Void:    s.Unmeasured(edges),
		Role:    cell.Centre,
		Style:   chart.Thin,
	}}}
	chart.Draw(g, area, m.WithAxis(chart.Chart{Layers: c.Layers(), Marks: m.UnlabelledMarks(), Axis: c.Axis(m, false)}))
	plain := func(x float64) string { return strings.TrimSuffix(panel.ScoreText(m.Shown.Config.Score(), x), " %") }
	entries := []panel.Entry{
		{Glyph: "━━", Name: "last", Value: plain(m.Shown.Config.Score().Of(e)) + " @" + textfmt.Grouped(e.Round),
			Role: cell.Centre},
		{Name: "best", Value: plain(m.Shown.BestError)},
	}
	withLoss := m.Shown.Config.Score().Series != view.TestLoss && !m.Shown.Config.Maximises()
	if withLoss {
		entries = append(entries, panel.Entry{Name: "test loss", Value: textfmt.Number(e.TestLoss)})
	}
	for _, s := range m.Shown.Config.Scores()[1:] {
		entries = append(entries, panel.Entry{Name: strings.TrimPrefix(s.Title, "test "),
			Value: panel.ScoreText(s, s.Of(e))})
	}
	if m.Cursor.On {
		entries[0].Name, entries[0].Value = "at cursor", m.CursorScoreText()
		if withLoss {
			entries[2].Value = "–"
			if x, ok := m.ShownValue(m.Shown.Find(view.TestLoss), view.Whole); ok {
				entries[2].Value = textfmt.Number(x)
			}
		}
	}
	if held := m.Shown.Config.ValidationScores(); e.Validation != nil && len(held) > 0 {
		value := "–"
		if x, ok := m.ShownValue(m.Shown.Find(held[0].Series), view.Whole); ok {
			value = plain(x)
		}
		entries = slices.Insert(entries, 1, panel.Entry{Name: "validation", Value: value})
	}
	m.LegendLine(g, legend, entries)
}

// threeChartsW is the least width in cells for three charts side by side.
const threeChartsW = 144

// lowPanels places the panels below the loss, side by side: those that have something to show.
func lowPanels(m *panel.Host, r cell.Rect) []panel.Placement {
	ids := []panel.ID{panel.Fitness, panel.Bandwidth}
	switch {
	case m.HasTestSet() && len(m.Shown.Members().Workers()) == 1 && m.NothingSent():
		ids = []panel.ID{panel.Fitness, panel.Score}
	case m.HasTestSet() && r.W >= threeChartsW:
		ids = []panel.ID{panel.Fitness, panel.Score, panel.Bandwidth}
	}
	var out []panel.Placement
	for i, id := range ids {
		left, rest := r.Left(r.W / (len(ids) - i))
		out, r = append(out, panel.Placement{Panel: id, Area: left}), rest
	}
	return out
}
