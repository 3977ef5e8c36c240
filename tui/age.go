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
	if m.shown.Config.Graded() {
		return view.TestError, "test error"
	}
	return view.TestFitness, "test fitness"
}

// scored is the score of an evaluation.
func (m *model) scored(e *event.Evaluation) string {
	if m.shown.Config.Graded() {
		return fmt.Sprintf("%.2f %%", e.TestError)
	}
	return num(-e.TestLoss)
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
