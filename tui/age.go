package tui

import (
	"fmt"

	"brood/runtime/event"
	"brood/runtime/view"
)

// dated is the text of a series' last value, with its round where it is older than the series' interval.
func (m *model) dated(s *view.Series, text string) string {
	if m.fresh(s) {
		return text
	}
	if m.cursor.on {
		_, at, _ := s.At(view.Whole, m.cursor.round)
		return text + " @" + round(at)
	}
	_, end := s.Rounds()
	return text + " @" + round(end-1)
}

// scoreSeries is what the centre is tested by, and what that is called.
func (m *model) scoreSeries() (id, title string) {
	kind := m.shown.Config.Score()
	return view.ScoreSeries(kind), kind.Name()
}

// scored is the score of an evaluation.
func (m *model) scored(e *event.Evaluation) string { return m.scoreText(m.shown.Config.Score().Of(e)) }

// scoreText writes a score, with its unit if it has one.
func (m *model) scoreText(x float64) string {
	if m.shown.Config.Score() == event.ErrorScore {
		return fmt.Sprintf("%.2f %%", x)
	}
	return num(x)
}

// tested is the last test error, with its round where that is not the last; there is one.
func (m *model) tested() string {
	e := m.shown.Evaluation
	text := m.scored(e)
	if e.Round != m.shown.Progress.Rounds {
		text += " @" + round(e.Round)
	}
	return text
}
