package cli

import (
	"fmt"
	"testing"

	"brood/runtime/remote"
)

// What a worker says of its pace is heard, the worst of all; other lines are not.
func TestStaffHears(t *testing.T) {
	c := &staff{}
	for _, line := range []string{"joined as worker 0", fmt.Sprintf(remote.LateNote, 2.5, 17), fmt.Sprintf(remote.LateNote, 2.5, 4), "rounds took 99 %"} {
		c.hear(line)
	}
	if c.late != 17 {
		t.Errorf("late by %d %%, want 17", c.late)
	}
}
