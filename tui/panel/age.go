package panel

import (
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/textfmt"
)

// WithRound appends the round of a series' last value to its text, if that value is older than one interval of the
// series or outside the shown window.
func (m *Host) WithRound(s *view.Series, text string) string {
	_, hi := m.Rounds()
	_, end := s.Rounds()
	if m.Fresh(s) && (m.Cursor.On || end <= hi) {
		return text
	}
	at := end - 1
	if m.Cursor.On {
		_, at, _ = s.At(view.Whole, m.Cursor.Round)
	}
	return text + " @" + textfmt.Grouped(at)
}

// ScoreSeries returns the series and the title of the metric that the centre is tested by.
func (m *Host) ScoreSeries() (id, title string) {
	s := m.Shown.Config.Score()
	return s.Series, s.Title
}

// ScoreText formats a score with its unit.
func ScoreText(s event.Score, x float64) string { return textfmt.ScoreText(x, s.Percent) }

// EvaluationText formats the score of an evaluation.
func (m *Host) EvaluationText(e *event.Evaluation) string {
	s := m.Shown.Config.Score()
	return ScoreText(s, s.Of(e))
}

// LastScoreText formats the last score, with its round if later rounds have no score. There must be an evaluation.
func (m *Host) LastScoreText() string {
	e := m.Shown.Evaluation
	text := m.EvaluationText(e)
	if e.Round != m.Shown.Progress.Rounds {
		text += " @" + textfmt.Grouped(e.Round)
	}
	return text
}
