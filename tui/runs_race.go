package tui

import (
	tea "charm.land/bubbletea/v2"

	"brood/runtime/compare"
)

// raced puts a run and the branch that has begun off it over each other, from the fork on. The branch is awaited: a
// list that was read before it began does not take its mark away.
func (r *runs) raced(m *model, parent, branch string) tea.Cmd {
	r.marks, r.chosen, r.awaited = []string{parent, branch}, branch, branch
	r.overlay.race, r.overlay.stale, r.overlay.at = true, true, -1
	return r.again(m)
}

// gone says whether a marked run is no longer listed.
func (r *runs) gone(dir string) bool {
	_, ok := r.entry(dir)
	if ok && dir == r.awaited {
		r.awaited = ""
	}
	return !ok && dir != r.awaited
}

// forked is where the first branch sets out whose parent is among the runs overlaid.
func (o *laid) forked() (x float64, ok bool) {
	for _, run := range o.set {
		if from, _ := run.Span(o.axis); run.Joined() && (!ok || from < x) {
			x, ok = from, true
		}
	}
	return x, ok
}

// near begins the charts shortly before the fork: what both came to since then is seen from its first rounds on.
func (o *laid) near() {
	if x, ok := o.forked(); ok && o.race {
		o.lo = max(o.lo, x-max((o.hi-x)/8, (o.hi-o.lo)/50))
	}
}

func (r *runs) mayRace(*model) string {
	if _, ok := r.overlay.forked(); !ok {
		return "there is no branch beside its parent: mark both with space, or begin one with B where a run's charts are"
	}
	return ""
}

// turnRace shows the whole of the runs, or what came of them since the fork.
func (r *runs) turnRace(*model) tea.Cmd {
	o := &r.overlay
	o.race, o.stale, o.at = !o.race, true, -1
	return nil
}

// raceNote says where the charts begin.
func (o *laid) raceNote() string {
	x, ok := o.forked()
	if first, _ := compare.Spanned(o.set, o.axis); !ok || !o.race || o.lo <= first {
		return ""
	}
	return "fork at " + placeText(o.axis, x) + ", 0 shows all · "
}
