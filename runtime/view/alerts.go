package view

import (
	"slices"

	"brood/runtime/event"
)

// An alert is answered by what ends what it told of, as far as the log says that:
//
//	what paused the run             it trains again
//	a checkpoint was not written    one of that round or a later one is written
//	a worker is lost                a worker hosts members that hosted none, one for each that was lost
//	no worker is left               any worker hosts members
//	two workers lost each other     members are placed anew
//	what a run is watched for       an alert of its kind in level info
//
// All others, such as a command that was rejected, stay until a person acknowledges them.

// alert adds one to the lane.
func (v *View) alert(a *event.Alert) {
	v.note(a.Level, "alert", a.Round, a.Text)
	v.Lane[len(v.Lane)-1].Alert = a.Kind
	if a.Level == event.LevelInfo && slices.Contains(event.Watched, a.Kind) {
		v.answer(-1, func(e Entry) bool { return e.Alert == a.Kind && e.Level != event.LevelInfo })
	}
	if a.Level == event.LevelError {
		v.mark(Mark{Round: a.Round, Text: string(a.Kind), Alert: true})
	}
}

// answer takes the oldest n of the alerts of a kind as answered.
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

func (v *View) trainsAgain() {
	v.answer(-1, func(e Entry) bool {
		return e.Level == event.LevelError && e.Alert != event.AlertLostWorker && e.Alert != event.AlertRejected
	})
}

// saved follows a checkpoint. What was lost before, such as points that were not recorded, stays lost.
func (v *View) saved(c *event.Checkpoint) {
	v.answer(-1, func(e Entry) bool {
		return e.Alert == event.AlertDisk && e.Level == event.LevelError && e.Round <= c.Round
	})
}

// hosted follows a plan that installs other hosts; old is the plan before, nil for none.
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
		return e.Alert == event.AlertLostWorker && e.Level == event.LevelError || e.Alert == event.AlertLeave || e.Alert == event.AlertLostLink
	})
	fresh := 0
	for _, w := range now {
		if !slices.Contains(before, w) {
			fresh++
		}
	}
	v.answer(fresh, func(e Entry) bool { return e.Alert == event.AlertLostWorker })
}
