package panel

import (
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/textfmt"
)

// WithRound is the text of a series' last value, with its round where it is older than the series' interval, or lies behind
// the window that charts show.
func (m *Host) WithRound(s *view.Series, text string) string {
	if m.Fresh(s) && (m.Cursor.On || !m.extendsPastWindow(s)) {
		return text
	}
	if m.Cursor.On {
		_, at, _ := s.At(view.Whole, m.Cursor.Round)
		return text + " @" + textfmt.Grouped(at)
	}
	_, end := s.Rounds()
	return text + " @" + textfmt.Grouped(end-1)
}

// extendsPastWindow says whether a series goes on behind the window.
func (m *Host) extendsPastWindow(s *view.Series) bool {
	_, hi := m.Rounds()
	_, end := s.Rounds()
	return end > hi
}

// ScoreSeries is what the centre is tested by, and what that is called.
func (m *Host) ScoreSeries() (id, title string) {
	s := m.Shown.Config.Score()
	return s.Series, s.Title
}

// ScoreText is a score with its unit.
func ScoreText(s event.Score, x float64) string { return textfmt.ScoreText(x, s.Percent) }

// EvaluationText is the score of an evaluation.
func (m *Host) EvaluationText(e *event.Evaluation) string {
	s := m.Shown.Config.Score()
	return ScoreText(s, s.Of(e))
}

// LastScoreText is the last score, with its round where that is not the last; there is one.
func (m *Host) LastScoreText() string {
	e := m.Shown.Evaluation
	text := m.EvaluationText(e)
	if e.Round != m.Shown.Progress.Rounds {
		text += " @" + textfmt.Grouped(e.Round)
	}
	return text
}
