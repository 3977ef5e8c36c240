package tui

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/tui/panel/runs"
)

// TestMarkAFolder checks that space on a folder, also a closed one, marks all its runs or those that match the
// filter, and removes the marks again.
func TestMarkAFolder(t *testing.T) {
	one, two := "/s/sweep-grid/eta=0.1,seed=1", "/s/sweep-grid/eta=0.1,seed=2"
	d := openLibrary(t, 120, 36, studyLibrary(), "g space G space")
	if want := []string{"/s/fork", one, two}; !slices.Equal(d.runs.Marks, want) {
		t.Fatalf("marked %v, want %v", d.runs.Marks, want)
	}
	d.now = d.now.Add(time.Minute)
	d.deliver(d.rescan())
	d.shows("a to c: marked")
	if len(d.runs.Marks) != 3 {
		t.Errorf("after a list: %v", d.runs.Marks)
	}
	d.press("space")
	if want := []string{"/s/fork"}; !slices.Equal(d.runs.Marks, want) {
		t.Errorf("again: marked %v, want %v", d.runs.Marks, want)
	}
	d.press("enter", "j", "space") // one of them by itself: the folder adds the other
	d.runs.Chosen = "/s/sweep-grid"
	d.press("space")
	if want := []string{"/s/fork", one, two}; !slices.Equal(d.runs.Marks, want) {
		t.Errorf("the rest: marked %v, want %v", d.runs.Marks, want)
	}
	d.press("U", "/")
	d.write("seed=2").press("enter", "g")
	d.runs.Chosen = "/s/sweep-grid"
	d.press("space")
	if want := []string{two}; !slices.Equal(d.runs.Marks, want) {
		t.Errorf("filtered: marked %v, want %v", d.runs.Marks, want)
	}
}

// TestMarkALargeFolder checks the message with the number of runs that could not be marked.
func TestMarkALargeFolder(t *testing.T) {
	s := studyLibrary()
	for i := range 30 {
		name := fmt.Sprintf("eta=0.2,seed=%02d", i)
		s.folders["/s/sweep-grid"] = append(s.folders["/s/sweep-grid"],
			session.Info{Name: name, Dir: "/s/sweep-grid/" + name, Phase: event.Finished})
	}
	d := openLibrary(t, 120, 36, s, "G space")
	if len(d.runs.Marks) != runs.MaxMarks {
		t.Errorf("%d marks, want %d", len(d.runs.Marks), runs.MaxMarks)
	}
	d.shows("16 of 32 runs are marked: more could not be distinguished")
	d.press("space")
	if len(d.runs.Marks) != 0 {
		t.Errorf("again: %d marks", len(d.runs.Marks))
	}
	s.folders["/s/sweep-grid"] = nil
	d = openLibrary(t, 120, 36, s, "G space")
	d.shows("sweep-grid has no runs")
}

// TestFilterOfClosedFolders checks that a filter shows the matching runs of closed folders, which are closed
// again without the filter.
func TestFilterOfClosedFolders(t *testing.T) {
	d := openLibrary(t, 120, 36, studyLibrary(), "/")
	d.write("seed=2").press("enter")
	d.now = d.now.Add(time.Minute)
	d.deliver(d.rescan())
	d.shows("sweep-grid/", "eta=0.1,seed=2")
	d.hides("eta=0.1,seed=1", "seed-1")
	d.runs.Chosen = "/s/sweep-grid"
	d.press("enter")
	d.shows("the runs that match the filter are shown")
	d.press("esc")
	d.shows("seed-1", "sweep-grid/")
	d.hides("eta=0.1,seed=2")
}
