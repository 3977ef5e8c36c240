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

// connectionLost records that a live run did not answer, and schedules the next request.
func (m *model) connectionLost(err error) {
	l := m.Feed.Lost
	if l == nil {
		l = &panel.Lost{}
		m.Feed.Lost, m.Toast = l, panel.Toast{} // an older message would hide it
	}
	wait := min(firstRetryWait<<min(l.Tries, 10), maxRetryWait)
	l.Err, l.Tries, l.Asking, l.Again = err, l.Tries+1, false, m.Opt.Clock().Add(wait)
}

// retry sends the next request to a run that does not answer, or has ended, when it is due.
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

// showReconnected clears the loss of the connection after an answer.
func (m *model) showReconnected() {
	if m.Feed.Lost != nil {
		m.Feed.Lost = nil
		m.Say(cell.Good, "the run answers again")
	}
}

// lostLine returns the connection error and the time of the next request.
func (m *model) lostLine() string {
	l := m.Feed.Lost
	if m.Killed() {
		return m.KilledText()
	}
	when := "retrying"
	if left := l.Again.Sub(m.Opt.Clock()); !l.Asking && left > 0 {
		when = fmt.Sprintf("retry in %.0f s", math.Ceil(left.Seconds()))
	}
	return fmt.Sprintf("no answer, %s: %v", when, l.Err)
}
