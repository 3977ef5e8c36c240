package runs

import (
	tea "charm.land/bubbletea/v2"

	"brood/runtime/archive"
	"brood/tui/panel"
)

// overlayBranch overlays a run and a new branch of it from the fork on. A scan that started before the branch does not
// remove its mark, see isGone.
func (r *Runs) overlayBranch(m *panel.Host, parent, branch string) tea.Cmd {
	r.Marks, r.Chosen, r.awaited = []string{parent, branch}, branch, branch
	r.Overlay.sinceFork, r.Overlay.Stale, r.Overlay.At = true, true, -1
	return r.rescan(m)
}

// isGone reports whether a marked run is no longer listed. An awaited branch is not gone before its first scan.
func (r *Runs) isGone(dir string) bool {
	_, ok := r.entry(dir)
	if ok && dir == r.awaited {
		r.awaited = ""
	}
	return !ok && dir != r.awaited
}

// ForkPosition returns the axis position of the earliest fork of a branch whose parent is overlaid too.
func (o *OverlayState) ForkPosition() (x float64, ok bool) {
	for _, run := range o.Set {
		if from, _ := run.Span(o.Axis); run.Joined() && (!ok || from < x) {
			x, ok = from, true
		}
	}
	return x, ok
}

// applySinceFork moves the start of the charts to shortly before the fork if sinceFork is set.
func (o *OverlayState) applySinceFork() {
	if x, ok := o.ForkPosition(); ok && o.sinceFork {
		o.Lo = max(o.Lo, x-max((o.Hi-x)/8, (o.Hi-o.Lo)/50))
	}
}

func (r *Runs) whyNoFork(*panel.Host) string {
	if _, ok := r.Overlay.ForkPosition(); !ok {
		return "no branch is overlaid with its parent: mark both with space, or start a branch with B in an open run"
	}
	return ""
}

// toggleSinceFork toggles between the whole runs and the part since the fork.
func (r *Runs) toggleSinceFork(*panel.Host) tea.Cmd {
	o := &r.Overlay
	o.sinceFork, o.Stale, o.At = !o.sinceFork, true, -1
	return nil
}

// forkNote returns the part of the title that names the position of the fork; "" if the charts show the whole runs.
func (o *OverlayState) forkNote() string {
	x, ok := o.ForkPosition()
	if first, _ := archive.Spanned(o.Set, o.Axis); !ok || !o.sinceFork || o.Lo <= first {
		return ""
	}
	return "fork at " + panel.AxisValueText(o.Axis, x) + ", 0 shows all · "
}
