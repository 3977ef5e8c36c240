package sourcetest

import (
	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/view"
)

// Swapped is [Run] of so many rounds that goes on for as many with the algorithm "other", which measures the centre and
// another series than the loss; with back, the first one then takes over again for as many. Every fourth round is
// committed.
func Swapped(members, rounds int, back bool) []event.Record {
	out := Run(members, rounds)
	var plan event.Plan
	for _, r := range out {
		if r.Plan != nil {
			plan = *r.Plan
		}
	}
	at, done := out[len(out)-1].At, uint64(rounds)
	put := func(r event.Record) {
		at += 25e6
		r.At = at
		out = append(out, r)
	}
	stretch := func(name, series, op string) {
		p := plan
		p.Epoch, p.At, p.From, p.Old, p.OldAlg, p.Algorithm, p.Cause = p.Epoch+1, done, event.Workers, plan.New,
			plan.Algorithm, name, "swap"
		plan = p
		put(event.Record{Plan: &p})
		for range rounds / 4 {
			done += 4
			values := make([]float64, members)
			for i := range values {
				values[i] = 0.5 + float64(i)/100
			}
			put(event.Record{Points: &event.Points{Round: done, Series: series, Members: plan.New.Members, Values: values}})
			put(event.Record{Points: &event.Points{
				Round:   done,
				Series:  view.CentreLoss,
				Members: []engine.Member{view.Whole},
				Values:  []float64{0.25},
			}})
			sent := map[collective.Op]int64{collective.Op(op): 100}
			put(event.Record{Commit: &event.Commit{
				Epoch:     p.Epoch,
				To:        done,
				Progress:  event.Progress{Rounds: done},
				Sent:      sent,
				Predicted: sent,
				Rounds:    4,
				Nanos:     4e8,
			}})
		}
	}
	stretch("other", "score", "vote")
	if back {
		stretch("sample", "loss", "couple")
	}
	return out
}
