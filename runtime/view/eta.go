package view

import "time"

// Elapsed returns the time spent training.
func (v *View) Elapsed() time.Duration { return time.Duration(v.Trained) }

// Left estimates the time until the first limit is reached. ok is false if there is no limit or no rate yet.
func (v *View) Left() (d time.Duration, ok bool) {
	s, ok := v.Limit.Left(v.Progress, v.Elapsed().Seconds(), v.Rates.Rounds, v.Rates.Epochs)
	if !ok || v.Rates.Weight == 0 || s > 1e9 {
		return 0, false
	}
	return time.Duration(s * float64(time.Second)), true
}
