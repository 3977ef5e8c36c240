package panel

import (
	"fmt"
	"time"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/textfmt"
)

// longRound is the time without a commit after which the workbench asks the run for the activity of its workers.
const longRound = 2 * time.Second

// DoingText describes the activity of the workers: a phase of the preparation, or a round and its progress.
func DoingText(d view.Doing) string {
	prepares := "preparing " + textfmt.Count(d.Members, "member")
	switch d.Stage {
	case view.StageMemory:
		return prepares + ": allocating memory"
	case view.StageMembers:
		switch d.Done { // 0 if all members start from one model
		case 0, d.Of:
			return prepares + ": filling their state"
		}
		return prepares + ": " + textfmt.Grouped(d.Done) + " initialised"
	case view.StageRound:
		text := "round " + textfmt.Grouped(d.Round)
		if d.Done > 0 {
			text += ": " + textfmt.Grouped(d.Done) + " of " + textfmt.Count(d.Of, "member") + " done"
		}
		return text
	}
	return "the workers are busy"
}

// activity returns the current activity of the workers and its duration; nil if it is unknown.
func (m *Host) activity() (d *view.Doing, since time.Duration) {
	if d = m.Activity; d == nil || !m.CanSurvey() || m.StateUnknown() || m.Frozen() {
		return nil, 0
	}
	return d, d.For + m.Opt.Clock().Sub(m.ActivityAt)
}

// Preparing reports whether the workers initialise the members of the first round.
func (m *Host) Preparing() bool {
	d, _ := m.activity()
	return d != nil && m.Shown.Plan == nil
}

// activityText describes the current activity of the workers and its duration; "" if it is unknown.
func (m *Host) activityText() string {
	if d, since := m.activity(); d != nil {
		return DoingText(*d) + ", " + textfmt.Duration(since)
	}
	return ""
}

// sinceRecord returns the time since the newest record of a live run; 0 if the run is not live or not reachable.
func (m *Host) sinceRecord() time.Duration {
	if m.Replay != nil || m.Frozen() || m.StateUnknown() || m.LastRecordAt.IsZero() {
		return 0
	}
	return max(0, m.Opt.Clock().Sub(m.LastRecordAt))
}

// Waited returns the time for which a live run has waited for workers; 0 if it does not wait. The clocks of the run's
// machine and of this one must agree, since a viewer may connect later.
func (m *Host) Waited() time.Duration {
	if m.Shown.State.Phase != event.Waiting || m.Shown.Last == 0 || m.Gone() {
		return 0
	}
	here := m.sinceRecord()
	if here == 0 {
		return 0
	}
	return max(here, m.Opt.Clock().Sub(time.Unix(0, m.Shown.Last)))
}

// sinceCommit returns the training time since the last commit. Other records, such as the load of machines, may have
// arrived since then.
func (m *Host) sinceCommit() time.Duration {
	ahead := m.Shown.SinceCommit() + m.sinceRecord()
	if d, since := m.activity(); d != nil &&
		d.Round == m.Shown.Progress.Rounds+1 { // the round started before this viewer connected
		ahead = max(ahead, since)
	}
	return ahead
}

// Elapsed returns the training time including the round in progress; before the first round the time of its
// preparation.
func (m *Host) Elapsed() time.Duration {
	v := m.Shown
	if !m.Running() {
		if m.Preparing() {
			_, since := m.activity()
			return since
		}
		return v.Elapsed()
	}
	return v.Elapsed() - v.SinceCommit() + m.sinceCommit()
}

// RemainingTime returns the estimated time until the run reaches its first limit.
func (m *Host) RemainingTime() (d time.Duration, ok bool) {
	return m.Shown.Left(m.sinceCommit())
}

// RoundProgress describes the progress within a long round as a percentage; "" if the workers do not count it.
func (m *Host) RoundProgress() string {
	d, _ := m.activity()
	if d == nil || d.Done == 0 || d.Of == 0 || d.Round <= m.Shown.Progress.Rounds || m.sinceCommit() < longRound {
		return ""
	}
	return fmt.Sprintf("%d %% of round %s", 100*min(d.Done, d.Of)/d.Of, textfmt.Grouped(d.Round))
}

// NeedsSurvey reports whether the workbench has to ask the run for the activity of its workers.
func (m *Host) NeedsSurvey() bool {
	return m.Feed.Loaded && (m.Shown.Plan == nil || m.Shown.State.Phase == event.Training &&
		m.sinceCommit() >= longRound)
}
