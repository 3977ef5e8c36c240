package tui

import (
	tea "charm.land/bubbletea/v2"

	"brood/runtime/archive"
)

// overlayBranch overlays a run and a new branch of it from the fork on. A scan that started before the branch does not
// remove its mark, see gone.
func (r *runs) overlayBranch(m *model, parent, branch string) tea.Cmd {
	r.marks, r.chosen, r.awaited = []string{parent, branch}, branch, branch
	r.overlay.race, r.overlay.stale, r.overlay.at = true, true, -1
	return r.rescan(m)
}

// gone reports whether a marked run is no longer listed. The awaited branch is not gone before its first scan.
func (r *runs) gone(dir string) bool {
	_, ok := r.entry(dir)
	if ok && dir == r.awaited {
		r.awaited = ""
	}
	return !ok && dir != r.awaited
}

// forked returns the axis position of the earliest fork of a branch whose parent is overlaid too.
func (o *overlayState) forked() (x float64, ok bool) {
	for _, run := range o.set {
		if from, _ := run.Span(o.axis); run.Joined() && (!ok || from < x) {
			x, ok = from, true
		}
	}
	return x, ok
}

// near moves the start of the charts to shortly before the fork if race is set.
func (o *overlayState) near() {
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

// turnRace toggles between the whole runs and the part since the fork.
func (r *runs) turnRace(*model) tea.Cmd {
	o := &r.overlay
	o.race, o.stale, o.at = !o.race, true, -1
	return nil
}

// raceNote returns the part of the title that says where the fork is; "" if the charts show the whole runs.
func (o *overlayState) raceNote() string {
	x, ok := o.forked()
	if first, _ := archive.Spanned(o.set, o.axis); !ok || !o.race || o.lo <= first {
		return ""
	}
	return "fork at " + placeText(o.axis, x) + ", 0 shows all · "
}
