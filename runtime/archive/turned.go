package archive

import "fmt"

// Turned describes what a branch did to the loss since its fork, next to its parent, which went on without its changes:
// "centre loss -0.012 (-3 %) in 50 rounds, without it -0.004". It is "" for a run that is not joined with its parent,
// and if one of them has too few values around the fork.
func (r *Run) Turned() string {
	if r.parent == nil {
		return ""
	}
	parent := r.parent.View
	beyond := parent.Progress.Rounds - min(parent.Progress.Rounds, r.ParentAt) // rounds of the parent since the fork
	e, ok := r.View.ForkEffect(parent, beyond)
	if !ok {
		return ""
	}
	if change, ok := parent.Change(e); ok {
		return fmt.Sprintf("%s, without it %+.2g", e, change)
	}
	return ""
}
