package panel

import (
	"fmt"
	"time"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/textfmt"
)

// longRound is the time without a record after which a run is asked what its workers do.
const longRound = 2 * time.Second

// DoingText describes what workers do: the phase of a preparation, or the round and its progress.
func DoingText(d view.Doing) string {
	prepares := "preparing " + textfmt.Count(d.Members, "member")
	switch d.Stage {
	case view.StageMemory:
		return prepares + ": allocating memory"
	case view.StageMembers:
		switch d.Done { // 0 where all begin with one model
		case 0, d.Of:
			return prepares + ": filling their state"
		}
		return prepares + ": " + textfmt.Grouped(uint64(d.Done)) + " initialised"
	case view.StageRound:
		text := "round " + textfmt.Grouped(d.Round)
		if d.Done > 0 {
			text += ": " + textfmt.Grouped(uint64(d.Done)) + " of " + textfmt.Count(d.Of, "member") + " done"
		}
		return text
	}
	return "the workers are busy"
}

// activity is what the workers do now and for how long, nil where that is unknown.
func (m *Host) activity() (d *view.Doing, since time.Duration) {
	if d = m.Activity; d == nil || !m.CanSurvey() || m.StateUnknown() || m.Frozen() {
		return nil, 0
	}
	return d, d.For + m.Opt.Clock().Sub(m.ActivityAt)
}

// Preparing reports whether the workers of the first round make its members.
func (m *Host) Preparing() bool {
	d, _ := m.activity()
	return d != nil && m.Shown.Plan == nil
}

// activityText is what a panel that has nothing to show yet says of the workers, "" where that is unknown.
func (m *Host) activityText() string {
	if d, since := m.activity(); d != nil {
		return DoingText(*d) + ", " + textfmt.Duration(since)
	}
	return ""
}

// sinceRecord is the time since the newest record of a run that is followed live.
func (m *Host) sinceRecord() time.Duration {
	if m.Replay != nil || m.Frozen() || m.StateUnknown() || m.LastRecordAt.IsZero() {
		return 0
	}
	return max(0, m.Opt.Clock().Sub(m.LastRecordAt))
}

// Elapsed is the time spent training, with the round in progress; before the first round the time of its preparation.
func (m *Host) Elapsed() time.Duration {
	v := m.Shown
	if !m.Running() {
		if m.Preparing() {
			_, since := m.activity()
			return since
		}
		return v.Elapsed()
	}
	ahead := m.sinceRecord()
	if d, since := m.activity(); d != nil && d.Round == v.Progress.Rounds+1 { // it began before somebody looked
		ahead = max(ahead, since)
	}
	return v.Elapsed() + ahead
}

// RemainingTime is the time to the first limit, with the round in progress.
func (m *Host) RemainingTime() (d time.Duration, ok bool) {
	d, ok = m.Shown.Left()
	return max(0, d-(m.Elapsed()-m.Shown.Elapsed())), ok
}

// RoundProgress is the progress within a long round, as a share, or "" where nothing counts it.
func (m *Host) RoundProgress() string {
	d, _ := m.activity()
	if d == nil || d.Done == 0 || d.Of == 0 || d.Round <= m.Shown.Progress.Rounds || m.sinceRecord() < longRound {
		return ""
	}
	return fmt.Sprintf("%d %% of round %s", 100*min(d.Done, d.Of)/d.Of, textfmt.Grouped(d.Round))
}

// NeedsSurvey reports whether a run should be asked what its workers do.
func (m *Host) NeedsSurvey() bool {
	return m.Feed.Loaded && (m.Shown.Plan == nil || m.Shown.State.Phase == event.Training && m.sinceRecord() >= longRound)
}
