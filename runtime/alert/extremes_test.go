package alert

import (
	"testing"

	"brood/models/engine"
	"brood/optim/population"
	"brood/runtime/event"
)

// TestExtremes: a monitor that takes the extremes of a log raises the same warnings after it as one that takes all.
func TestExtremes(t *testing.T) {
	type values struct {
		series string
		before []float64
		after  []float64
		want   string
	}
	for _, c := range []values{
		{event.SeriesCentre, []float64{2.3, 0.4, 0.9, 1}, []float64{1.3, 1.3, 1.3}, "+diverged"},
		{population.SeriesDiversity.Name, []float64{3, 5, 2}, []float64{1e-9, 1e-9, 1e-9}, "+collapse"},
		{event.SeriesSpread, []float64{3, 5, 2}, []float64{1e-9, 1e-9, 1e-9}, "+collapse"},
	} {
		for _, shortened := range []bool{false, true} {
			r, log := newRun(), &Extremes{}
			feed := func(x float64) {
				r.round++
				p := &event.Points{Round: r.round, Series: c.series, Members: []engine.Member{0, 1}, Values: []float64{x, x}}
				log.Take(event.Record{Points: p})
				r.take(event.Record{Points: p})
			}
			feed(1e-9)
			log.Take(event.Record{Plan: &event.Plan{From: event.Saved, Cause: event.CauseRollback}})
			r.take(event.Record{Plan: &event.Plan{From: event.Saved, Cause: event.CauseRollback}})
			for _, x := range c.before {
				feed(x)
			}
			r.expect(t)
			if shortened {
				r = newRun()
				for _, x := range log.Records() {
					r.take(x)
				}
			}
			for _, x := range c.after {
				feed(x)
			}
			r.expect(t, c.want)
		}
	}
}
