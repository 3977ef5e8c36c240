package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"brood/runtime/remote"
	"brood/runtime/sweep"
)

// Workers of a plan with fast frames are told so; others are not.
func TestStaffOrders(t *testing.T) {
	for _, c := range []struct {
		of   *staff
		want string
	}{
		{&staff{slow: 2.5}, "worker - --threads 1 --slow 2.5 --patience 20s"},
		{&staff{slow: 20, fast: true}, "worker - --threads 1 --slow 20 --patience 20s --fast-frames"},
	} {
		if got := strings.Join(c.of.orders(), " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// What workers say of their pace is heard, the worst of all, and kept; other lines are not.
func TestStaffHears(t *testing.T) {
	c := &staff{size: 3, slow: 2.5, heard: make(chan int, 8), file: filepath.Join(t.TempDir(), "late.json")}
	for _, line := range []string{"joined as worker 0", fmt.Sprintf(remote.LateNote, 2.5, 4), "99 % longer", fmt.Sprintf(remote.LateNote, 2.5, 17), fmt.Sprintf(remote.LateNote, 2.5, 0)} {
		c.hear(line)
	}
	if n := c.late(); n != 17 {
		t.Errorf("late by %d %%, want 17", n)
	}
	if err := c.recall(); err != nil || len(c.kept) != 0 {
		t.Errorf("without a file: %v, %v", c.kept, err)
	}
	if err := c.keep(&sweep.Trial{Dir: "x/CU"}, 17); err != nil {
		t.Fatal(err)
	}
	again := &staff{file: c.file}
	if err := again.recall(); err != nil || again.kept["CU"] != 17 {
		t.Errorf("kept %v, %v", again.kept, err)
	}
}
