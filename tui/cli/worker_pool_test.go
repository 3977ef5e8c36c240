package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"brood/runtime/remote"
	"brood/runtime/sweep"
)

// TestPoolCommands: only workers of a plan with fast frames get the flag for them.
func TestPoolCommands(t *testing.T) {
	for _, c := range []struct {
		of   *workerPool
		want string
	}{
		{&workerPool{slow: 2.5}, "worker - --threads 1 --slow 2.5 --retry 20s"},
		{&workerPool{slow: 20, fast: true}, "worker - --threads 1 --slow 20 --retry 20s --fast-frames"},
	} {
		if got := strings.Join(c.of.args(), " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestPoolLateness: the largest lateness in the output of workers is stored; other lines are ignored.
func TestPoolLateness(t *testing.T) {
	c := &workerPool{size: 3, slow: 2.5, lateReports: make(chan int, 8), file: filepath.Join(t.TempDir(), "late.json")}
	for _, line := range []string{"joined as worker 0", fmt.Sprintf(remote.LateNote, 2.5, 4), "99 % longer",
		fmt.Sprintf(remote.LateNote, 2.5, 17), fmt.Sprintf(remote.LateNote, 2.5, 0)} {
		c.parseLate(line)
	}
	if n := c.maxLate(); n != 17 {
		t.Errorf("late by %d %%, want 17", n)
	}
	if err := c.loadLate(); err != nil || len(c.lateByRun) != 0 {
		t.Errorf("without a file: %v, %v", c.lateByRun, err)
	}
	if err := c.saveLate(&sweep.Trial{Dir: "x/CU"}, 17); err != nil {
		t.Fatal(err)
	}
	again := &workerPool{file: c.file}
	if err := again.loadLate(); err != nil || again.lateByRun["CU"] != 17 {
		t.Errorf("kept %v, %v", again.lateByRun, err)
	}
}
