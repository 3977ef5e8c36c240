package tui

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// recordsUntil returns the records of a run up to a round.
func recordsUntil(rs []event.Record, round uint64) []event.Record {
	return slices.DeleteFunc(slices.Clone(rs), func(r event.Record) bool {
		return r.Points != nil && r.Points.Round > round || r.Commit != nil && r.Commit.To > round ||
			r.Evaluation != nil && r.Evaluation.Round > round
	})
}

// startBranch starts a branch of seed-1, which runs, after round 100. When it has started both are at round 128. The
// list of runs is older.
func startBranch(t testing.TB, w, h int) (*desk, *fakeLibrary) {
	s := studyLibrary()
	parent := s.list[0]
	at := slices.IndexFunc(s.list, func(x session.Info) bool { return x.Name == "fork" })
	fork := s.list[at]
	s.list = slices.Delete(s.list, at, at+1)
	d := openLibrary(t, w, h, s, "")
	s.branch = func(_ context.Context, b panel.Branch) (panel.Opened, error) {
		fork.Round, s.list[0].Round = 128, 128
		s.list = append(s.list, fork)
		for _, dir := range []string{parent.Dir, fork.Dir} {
			s.records[dir] = recordsUntil(s.records[dir], 128)
		}
		return panel.Opened{Session: fork.Dir, Source: sourcetest.NewMemory(s.records[fork.Dir]...), Commander: d}, nil
	}
	d.deliver(panel.OpenedMsg{Opened: panel.Opened{Session: parent.Dir,
		Source: sourcetest.NewMemory(recordsUntil(s.records[parent.Dir], 100)...), Commander: d}})
	d.take()
	d.press("B", "y")
	return d, s
}

// TestBranchIsOverlaidWithItsParent checks that a started branch is overlaid with its parent from the fork on, although
// the list does not have it yet.
func TestBranchIsOverlaidWithItsParent(t *testing.T) {
	d, s := startBranch(t, 200, 50)
	if len(s.asked) != 1 || d.screen != d.HomeScreen() || d.Opt.Session != "/s/fork" {
		t.Fatalf("asked %v, on screen %d of %s", s.asked, d.screen, d.Opt.Session)
	}
	if want := []string{"/s/seed-1", "/s/fork"}; !slices.Equal(d.runs.Marks, want) || d.runs.Chosen != want[1] {
		t.Fatalf("marked %v, chosen %s", d.runs.Marks, d.runs.Chosen)
	}
	d.shows("fork branched off after round 100 of seed-1: 1 opens it")
	d.Toast = panel.Toast{}
	d.shows("2 runs overlaid", "fork at 100, 0 shows all")
	o := &d.runs.Overlay
	if x, ok := o.ForkPosition(); !ok || x != 100 || o.Lo != 96.5 || o.Hi != 128 {
		t.Errorf("forked at %g (%v), drawn from %g to %g", x, ok, o.Lo, o.Hi)
	}
	d.press("0")
	if d.screenText(); o.Lo != 0 || o.Hi != 128 {
		t.Errorf("all of it is drawn from %g to %g", o.Lo, o.Hi)
	}
	d.hides("0 shows all")
	d.press("0")

	// The parent continues, and the charts follow.
	s.records["/s/seed-1"] = sourcetest.Run(4, 160)
	for i := range s.list {
		s.list[i].Round++ // which makes the logs longer
	}
	d.now = d.now.Add(time.Hour)
	d.deliver(d.rescan())
	if d.screenText(); o.Lo != 92.5 || o.Hi != 160 {
		t.Errorf("with the parent at 160 it is drawn from %g to %g", o.Lo, o.Hi)
	}

	// A deleted branch loses its mark, and without it no fork is overlaid.
	s.list = slices.DeleteFunc(s.list, func(x session.Info) bool { return x.Name == "fork" })
	d.now = d.now.Add(time.Hour)
	d.deliver(d.rescan())
	if want := []string{"/s/seed-1"}; !slices.Equal(d.runs.Marks, want) {
		t.Errorf("marked %v", d.runs.Marks)
	}
	d.screenText()
	if d.press("0"); !strings.Contains(d.Toast.Text, "no branch is overlaid with its parent") {
		t.Errorf("it says %q", d.Toast.Text)
	}
}

func TestGoldenBranchOverlay(t *testing.T) {
	for name, size := range map[string][2]int{"race-80x24": {80, 24}, "race-200x50": {200, 50}} {
		d, _ := startBranch(t, size[0], size[1])
		d.Toast = panel.Toast{}
		golden(t, name, d.screenText())
	}
}
