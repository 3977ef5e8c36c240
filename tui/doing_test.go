package tui

import (
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// TestPreparing checks that before the first round the screens name the members being initialised and the elapsed time,
// and that they only mention waiting if workers are missing.
func TestPreparing(t *testing.T) {
	here := view.Fleet{Wait: 1, Workers: []view.Worker{{ID: 0, State: event.Idle}}}
	here.Doing = &view.Doing{Stage: "memory", Of: 3, Members: 4096, For: time.Second}
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		c := &fleetSource{Memory: sourcetest.NewMemory(sourcetest.Run(12, 400)[:1]...), now: here}
		d := open(t, size[0], size[1], nil, func(o *panel.Options) { o.Source = c })
		d.nextSurvey()
		d.shows("○ preparing", "preparing 4 096 members: allocating memory")
		d.hides("waiting for workers")
		c.now.Doing = &view.Doing{Stage: "members", Done: 1203, Of: 4096, Members: 4096, For: 8 * time.Second}
		d.nextSurvey()
		d.shows("preparing 4 096 members: 1 203 initialised, 8s")
		d.now = d.now.Add(4 * time.Second)
		d.shows("1 203 initialised, 12s")
		if x := d.Elapsed(); x != 12*time.Second {
			t.Errorf("the clock shows %v", x)
		}
		c.now.Doing.Done = 4096 // what follows has no count
		d.nextSurvey()
		d.shows("preparing 4 096 members: filling their state")
		c.now.Workers, c.now.Doing, c.now.Wait = nil, nil, 2
		d.nextSurvey()
		d.shows("waiting for workers: 0 of 2")
		waited := d.now.Sub(time.Unix(0, d.Shown.Last)) // also before the viewer connected
		d.shows("○ waiting " + textfmt.Duration(waited))
		d.now = d.now.Add(time.Second)
		d.shows("○ waiting " + textfmt.Duration(waited+time.Second))
	}
}

// TestLongRound checks that within a long round the elapsed time grows and the progress is shown, also after a record
// of the load of machines, which is measured every second. An overdue round does not shorten the remaining time.
func TestLongRound(t *testing.T) {
	c := &fleetSource{Memory: sourcetest.NewMemory(sourcetest.Run(6, 400)...),
		now: view.Fleet{Wait: 1, Workers: []view.Worker{{ID: 0, State: event.Hosting}}}}
	d := open(t, 120, 40, nil, func(o *panel.Options) { o.Source = c })
	d.shows("40s      40s left")
	d.now = d.now.Add(time.Second)
	d.shows("41s      40s left")
	if d.fleet.Survey(d.model.Host) != nil {
		t.Error("the run is asked within an ordinary round")
	}
	c.now.Doing = &view.Doing{Stage: "round", Round: 401, Done: 1024, Of: 4096, Members: 4096, For: 11 * time.Second}
	d.now = d.now.Add(9 * time.Second)
	d.nextSurvey()
	d.shows("25 % of round 401")
	if x := d.Elapsed(); x != 51*time.Second { // the round started before the viewer connected
		t.Errorf("the clock shows %v", x)
	}
	d.apply(event.Record{At: d.Shown.Last + 10e9, Machines: &event.Machines{Round: 400}})
	d.shows("25 % of round 401", "51s", "40s left")
	if d.now = d.now.Add(time.Second); d.Elapsed() != 52*time.Second {
		t.Errorf("the clock shows %v", d.Elapsed())
	}
	d.apply(event.Record{At: 1e18 + 52e9, Commit: &event.Commit{To: 401, Rounds: 1,
		Progress: event.Progress{Rounds: 401}}})
	d.hides("of round 401")
	d.press("f")
	was := d.Elapsed()
	if d.now = d.now.Add(time.Minute); d.Elapsed() != was {
		t.Errorf("the clock of a frozen screen advances from %v to %v", was, d.Elapsed())
	}
}
