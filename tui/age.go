package tui

import (
	"brood/runtime/event"
	"brood/runtime/view"
)

// dated is the text of a series' last value, with its round where it is older than the series' interval, or lies behind
// the window that charts show.
func (m *model) dated(s *view.Series, text string) string {
	if m.fresh(s) && (m.cursor.on || !m.beyond(s)) {
		return text
	}
	if m.cursor.on {
		_, at, _ := s.At(view.Whole, m.cursor.round)
		return text + " @" + round(at)
	}
	_, end := s.Rounds()
	return text + " @" + round(end-1)
}

// beyond says whether a series goes on behind the window.
func (m *model) beyond(s *view.Series) bool {
	_, hi := m.rounds()
	_, end := s.Rounds()
	return end > hi
}

// scoreSeries is what the centre is tested by, and what that is called.
func (m *model) scoreSeries() (id, title string) {
	s := m.shown.Config.Score()
	return s.Series, s.Title
}

// scoreText is a score with its unit.
func scoreText(s event.Score, x float64) string { return ScoreText(x, s.Percent) }

// scored is the score of an evaluation.
func (m *model) scored(e *event.Evaluation) string {
	s := m.shown.Config.Score()
	return scoreText(s, s.Of(e))
}

// tested is the last score, with its round where that is not the last; there is one.
func (m *model) tested() string {
	e := m.shown.Evaluation
	text := m.scored(e)
	if e.Round != m.shown.Progress.Rounds {
		text += " @" + round(e.Round)
	}
	return text
}
