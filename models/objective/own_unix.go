//go:build unix

package objective

import (
	"os/exec"
	"syscall"
)

// own gives a program a process group of its own: a key that interrupts brood is not for it, and what it starts can be
// ended with it.
func own(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killAll kills a program that was started, with what it has started.
func killAll(c *exec.Cmd) {
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // it may be gone
}
