//go:build unix

package procgroup

import (
	"os/exec"
	"syscall"
)

// Separate gives c a process group of its own. It is called before c starts.
func Separate(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Kill kills the processes of the group of c, which has been started by [Separate].
func Kill(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
