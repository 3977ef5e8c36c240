//go:build unix

package host

import (
	"os/exec"
	"syscall"
)

// whole has a command end with all that it began.
func whole(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
