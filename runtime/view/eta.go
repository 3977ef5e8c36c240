package view

import (
	"math"
	"time"

	"brood/runtime/event"
)

// Elapsed returns the time spent training.
func (v *View) Elapsed() time.Duration { return time.Duration(v.Trained) }

// SinceCommit returns the training time between the last commit and the last record.
func (v *View) SinceCommit() time.Duration { return time.Duration(v.Trained - v.Committed) }

// Left estimates the time until the first limit is reached, from the rates of the last seconds. ahead is the training
// time since the last commit. A commit that takes longer than expected does not shorten the estimate for the rounds
// after it. A limit in seconds counts from the last resume. ok is false if there is no limit or no rate yet.
func (v *View) Left(ahead time.Duration) (d time.Duration, ok bool) {
	n := len(v.Ledger.Ring)
	if v.Rates.Weight == 0 || n == 0 {
		return 0, false
	}
	work, clock := v.Limit, event.Limit{Seconds: v.Limit.Seconds}
	work.Seconds = 0
	left := math.Inf(1)
	if s, ok := work.Left(v.Progress, 0, v.Rates.Rounds, v.Rates.Epochs); ok {
		next := float64(v.Ledger.Ring[n-1].Rounds) / v.Rates.Rounds // expected duration of the next commit
		left = max(0, s-min(ahead.Seconds(), next))
	}
	if s, ok := clock.Left(v.Progress, (time.Duration(v.Committed-v.Before) + ahead).Seconds(), 0, 0); ok {
		left = min(left, s)
	}
	if left > 1e9 {
		return 0, false
	}
	return time.Duration(left * float64(time.Second)), true
}
