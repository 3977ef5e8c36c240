package view

import (
	"math"
	"time"
)

// Elapsed is the time spent training.
func (v *View) Elapsed() time.Duration { return time.Duration(v.Trained) }

// Left estimates the time to the first limit that will be reached; ok is false without one, or before the first rates.
func (v *View) Left() (d time.Duration, ok bool) {
	best := math.Inf(1)
	take := func(limit, done, rate float64) {
		if limit > 0 && rate > 0 {
			best = min(best, max(0, (limit-done)/rate))
		}
	}
	take(float64(v.Limit.Rounds), float64(v.Progress.Rounds), v.Rates.Rounds)
	take(v.Limit.Epochs, v.Progress.Epochs, v.Rates.Epochs)
	take(v.Limit.Seconds, v.Elapsed().Seconds(), 1)
	if v.Rates.Weight == 0 || best > 1e9 {
		return 0, false
	}
	return time.Duration(best * float64(time.Second)), true
}
