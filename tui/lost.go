package tui

import (
	"fmt"
	"math"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
	"brood/tui/panel"
)

const (
	firstRetryWait = 500 * time.Millisecond
	maxRetryWait   = 10 * time.Second
)

// connectionLost takes an answer that did not come.
func (m *model) connectionLost(err error) {
	l := m.Feed.Lost
	if l == nil {
		l = &panel.Lost{}
		m.Feed.Lost, m.Toast = l, panel.Toast{} // what was said before hides it
	}
	wait := min(firstRetryWait<<min(l.Tries, 10), maxRetryWait)
	l.Err, l.Tries, l.Asking, l.Again = err, l.Tries+1, false, m.Opt.Clock().Add(wait)
}

// retry asks a run that is lost, or has ended, again when it is time.
func (m *model) retry() tea.Cmd {
	l := m.Feed.Lost
	if l == nil {
		return m.pollResumed()
	}
	if l.Asking || m.Opt.Clock().Before(l.Again) {
		return nil
	}
	l.Asking = true
	return m.seek(math.MaxUint64)
}

// showReconnected is told that a run answers.
func (m *model) showReconnected() {
	if m.Feed.Lost != nil {
		m.Feed.Lost = nil
		m.Say(cell.Good, "the run answers again")
	}
}

// lostLine says what is wrong, and when the run is asked again.
func (m *model) lostLine() string {
	l := m.Feed.Lost
	if m.Killed() {
		return m.KilledText()
	}
	when := "asking again"
	if left := l.Again.Sub(m.Opt.Clock()); !l.Asking && left > 0 {
		when = fmt.Sprintf("again in %.0f s", math.Ceil(left.Seconds()))
	}
	return fmt.Sprintf("no answer, %s: %v", when, l.Err)
}
