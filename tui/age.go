package tui

import (
	"fmt"

	"brood/runtime/view"
)

// dated is the text of a series' last value, with its round where it is older than the series' interval.
func (m *model) dated(s *view.Series, text string) string {
	if m.shown.Fresh(s) {
		return text
	}
	_, end := s.Rounds()
	return text + " @" + round(end-1)
}

// tested is the last test error; there is one.
func (m *model) tested() string {
	text := fmt.Sprintf("%.2f %%", m.shown.Evaluation.TestError)
	if s := m.shown.Find(view.TestError); s != nil {
		return m.dated(s, text)
	}
	return text
}
