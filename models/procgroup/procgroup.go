// Package procgroup starts a program in a process group of its own, so that Ctrl-C at the terminal of brood does not
// reach it, and kills it with the processes that it has started. On Windows those processes go on.
package procgroup

import (
	"context"
	"os/exec"
)

// Command is [exec.CommandContext] in a separate process group, which is killed when ctx is done.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	Separate(c)
	c.Cancel = func() error { return Kill(c) }
	return c
}
