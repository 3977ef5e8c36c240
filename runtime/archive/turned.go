package archive

import (
	"fmt"

	"brood/runtime/view"
)

// turnedRounds is the greatest number of rounds after a fork that [Run.Turned] compares.
const turnedRounds = 50

// Turned describes what a branch did to the loss since its fork, next to its parent, which went on without its changes:
// "loss -0.012 (-3 %) in 50 rounds, the parent -0.004". It is "" for a run that is not joined with its parent, and if
// one of them has too few values around the fork.
func (r *Run) Turned() string {
	if r.parent == nil {
		return ""
	}
	first := r.ParentAt + 1
	end := min(first+turnedRounds, r.View.Progress.Rounds+1, r.parent.View.Progress.Rounds+1)
	if end <= first {
		return ""
	}
	unturned, ok := r.parent.View.Effect(first-min(end-first, r.ParentAt), first, end)
	if !ok {
		return ""
	}
	after := r.View.Find(unturned.Series).Mean(first, end)
	if after.Count < view.EffectPoints {
		return ""
	}
	turned := unturned
	turned.After = after.Mean()
	return fmt.Sprintf("%s, the parent %+.2g", turned, unturned.After-unturned.Before)
}
