package tui

import (
	"errors"
	"fmt"
	"math"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/tui/cell"
)

// lost is a live run that does not answer. It is asked again, after ever longer waits, until the person leaves: whoever
// resumes it finds this screen following.
type lost struct {
	err    error
	tries  int
	again  time.Time // when it is asked again
	asking bool
}

const (
	firstWait = 500 * time.Millisecond
	lastWait  = 10 * time.Second
)

// miss takes an answer that did not come.
func (m *model) miss(err error) {
	l := m.feed.lost
	if l == nil {
		l = &lost{}
		m.feed.lost, m.toast = l, toast{} // what was said before hides it
	}
	wait := min(firstWait<<min(l.tries, 10), lastWait)
	l.err, l.tries, l.asking, l.again = err, l.tries+1, false, m.opt.Clock().Add(wait)
}

// retry asks a run that is lost, or has ended, again when it is time.
func (m *model) retry() tea.Cmd {
	l := m.feed.lost
	if l == nil {
		return m.pollResumed()
	}
	if l.asking || m.opt.Clock().Before(l.again) {
		return nil
	}
	l.asking = true
	return m.seek(math.MaxUint64)
}

// found is told that a run answers.
func (m *model) found() {
	if m.feed.lost != nil {
		m.feed.lost = nil
		m.say(cell.Good, "the run answers again")
	}
}

// killed says whether the run's process has gone without a word.
func (m *model) killed() bool {
	return m.vanished() || m.feed.lost != nil && errors.Is(m.feed.lost.err, view.ErrKilled)
}

// vanished says whether it has gone on another machine, so that nobody here knows whether the run ended before.
func (m *model) vanished() bool {
	return m.feed.lost != nil && errors.Is(m.feed.lost.err, view.ErrNoProcess)
}

// silent says that nobody knows what the run does now.
func (m *model) silent() bool { return m.feed.lost != nil || m.feed.err != nil }

// gone says that there is no process that could be asked or told anything.
func (m *model) gone() bool { return m.live.Over() || m.killed() }

// ending says how a run that is gone came to its end.
func (m *model) ending() string {
	switch {
	case m.vanished():
		return "the run's process is gone"
	case m.killed():
		return "the run was killed"
	}
	return "the run has ended"
}

// running says whether rounds are being done, as far as is known.
func (m *model) running() bool { return m.shown.Running() && !m.silent() && !m.cutOff() }

// cutOff says that a recording stands at its end, which is not that of the run: it was killed, its log was cut, or it
// goes on.
func (m *model) cutOff() bool { return m.replay != nil && m.feed.ended && !m.live.Over() }

// killedText says that the run was killed, or that its process is gone, and how to resume it.
func (m *model) killedText() string {
	if m.vanished() {
		return "process gone after round " + round(m.live.Progress.Rounds) + ": where it ran, brood serve --resume"
	}
	text := "killed after round " + round(m.live.Progress.Rounds)
	if m.opt.Resume != "" {
		text += ": " + m.opt.Resume
	}
	return text
}

// lostLine says what is wrong, and when the run is asked again.
func (m *model) lostLine() string {
	l := m.feed.lost
	if m.killed() {
		return m.killedText()
	}
	when := "asking again"
	if left := l.again.Sub(m.opt.Clock()); !l.asking && left > 0 {
		when = fmt.Sprintf("again in %.0f s", math.Ceil(left.Seconds()))
	}
	return fmt.Sprintf("no answer, %s: %v", when, l.err)
}
