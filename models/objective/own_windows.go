package objective

import (
	"os/exec"
	"syscall"
)

// own gives a program a process group of its own: a key that interrupts brood is not for it.
func own(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killAll kills a program that was started.
func killAll(c *exec.Cmd) {
	_ = c.Process.Kill() // it may be gone
}
