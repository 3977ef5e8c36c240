package view

import (
	"slices"

	"brood/runtime/event"
)

// An alert is resolved when the log shows that its condition is over:
//
//	alert                           resolved when
//	the run paused                  it trains again
//	a checkpoint was not written    a checkpoint of that round or a later one is written
//	a worker is lost                a worker that hosted no members hosts some; one for each lost worker
//	no worker is left               any worker hosts members
//	two workers lost their link     a plan places the members again
//	an alert rule                   there is an alert of this kind with level info
//
// Other alerts, such as a rejected command, remain until a user acknowledges them.

// alert adds an alert to the event list.
func (v *View) alert(a *event.Alert) {
	v.Tally.alert(a)
	v.note(a.Level, "alert", a.Round, a.Text)
	v.Lane[len(v.Lane)-1].Alert = a.Kind
	if a.Level == event.LevelInfo && slices.Contains(event.Watched, a.Kind) {
		v.answer(-1, func(e Entry) bool { return e.Alert == a.Kind && e.Level != event.LevelInfo })
	}
	if a.Level == event.LevelError {
		v.mark(Mark{Round: a.Round, Text: string(a.Kind), Alert: true})
	}
}

// answer marks the oldest n unresolved alerts that match as resolved; all if n is negative.
func (v *View) answer(n int, of func(Entry) bool) {
	cloned := false
	for i, e := range v.Lane {
		if n == 0 {
			return
		}
		if e.Alert == "" || e.Answered || !of(e) {
			continue
		}
		if !cloned {
			v.Lane, cloned = slices.Clone(v.Lane), true
		}
		v.Lane[i].Answered = true
		n--
	}
}

// trainsAgain resolves the alerts that paused the run.
func (v *View) trainsAgain() {
	v.answer(-1, func(e Entry) bool {
		return e.Level == event.LevelError && e.Alert != event.AlertLostWorker && e.Alert != event.AlertRejected
	})
}

// saved resolves the alerts about checkpoints that could not be written. Alerts about dropped points, which have
// another level, remain: the points are lost.
func (v *View) saved(c *event.Checkpoint) {
	v.answer(-1, func(e Entry) bool {
		return e.Alert == event.AlertDisk && e.Level == event.LevelError && e.Round <= c.Round
	})
}

// hosted resolves the alerts about workers that plan p replaces. old is the previous plan; nil if there is none.
func (v *View) hosted(old, p *event.Plan) {
	var before []int
	if old != nil {
		before = old.New.Workers()
	}
	now := p.New.Workers()
	if len(now) == 0 {
		return
	}
	v.answer(-1, func(e Entry) bool {
		return e.Alert == event.AlertLostWorker && e.Level == event.LevelError ||
			e.Alert == event.AlertLeave || e.Alert == event.AlertLostLink
	})
	fresh := 0
	for _, w := range now {
		if !slices.Contains(before, w) {
			fresh++
		}
	}
	v.answer(fresh, func(e Entry) bool { return e.Alert == event.AlertLostWorker })
}
