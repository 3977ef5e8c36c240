package tui

import (
	"fmt"
	"time"

	"brood/runtime/event"
	"brood/runtime/view"
)

// longRound is the time without a record after which a run is asked what its workers do.
const longRound = 2 * time.Second

// DoingText describes what workers do: the phase of a preparation, or the round and its progress.
func DoingText(d view.Doing) string {
	prepares := "preparing " + count(d.Members, "member")
	switch d.Stage {
	case view.StageMemory:
		return prepares + ": allocating memory"
	case view.StageMembers:
		switch d.Done { // 0 where all begin with one model
		case 0, d.Of:
			return prepares + ": filling their state"
		}
		return prepares + ": " + round(uint64(d.Done)) + " initialised"
	case view.StageRound:
		text := "round " + round(d.Round)
		if d.Done > 0 {
			text += ": " + round(uint64(d.Done)) + " of " + count(d.Of, "member") + " stepped"
		}
		return text
	}
	return "the workers are busy"
}

// doing is what the workers do now and for how long, nil where that is unknown.
func (m *model) doing() (d *view.Doing, since time.Duration) {
	if d = m.activity; d == nil || !m.measured() || m.silent() || m.frozen() {
		return nil, 0
	}
	return d, d.For + m.opt.Clock().Sub(m.activityAt)
}

// preparing reports whether the workers of the first round make its members.
func (m *model) preparing() bool {
	d, _ := m.doing()
	return d != nil && m.shown.Plan == nil
}

// working is what a panel that has nothing to show yet says of the workers, "" where that is unknown.
func (m *model) working() string {
	if d, since := m.doing(); d != nil {
		return DoingText(*d) + ", " + span(since)
	}
	return ""
}

// sinceRecord is the time since the newest record of a run that is followed live.
func (m *model) sinceRecord() time.Duration {
	if m.replay != nil || m.frozen() || m.silent() || m.lastRecordAt.IsZero() {
		return 0
	}
	return max(0, m.opt.Clock().Sub(m.lastRecordAt))
}

// elapsed is the time spent training, with the round in progress; before the first round the time of its preparation.
func (m *model) elapsed() time.Duration {
	v := m.shown
	if !m.running() {
		if m.preparing() {
			_, since := m.doing()
			return since
		}
		return v.Elapsed()
	}
	ahead := m.sinceRecord()
	if d, since := m.doing(); d != nil && d.Round == v.Progress.Rounds+1 { // it began before somebody looked
		ahead = max(ahead, since)
	}
	return v.Elapsed() + ahead
}

// left is the time to the first limit, with the round in progress.
func (m *model) left() (d time.Duration, ok bool) {
	d, ok = m.shown.Left()
	return max(0, d-(m.elapsed()-m.shown.Elapsed())), ok
}

// within is the progress within a long round, as a share, or "" where nothing counts it.
func (m *model) within() string {
	d, _ := m.doing()
	if d == nil || d.Done == 0 || d.Of == 0 || d.Round <= m.shown.Progress.Rounds || m.sinceRecord() < longRound {
		return ""
	}
	return fmt.Sprintf("%d %% of round %s", 100*min(d.Done, d.Of)/d.Of, round(d.Round))
}

// stale reports whether a run should be asked what its workers do.
func (m *model) stale() bool {
	return m.feed.loaded && (m.shown.Plan == nil || m.shown.State.Phase == event.Training && m.sinceRecord() >= longRound)
}
