package procgroup

import (
	"os/exec"
	"syscall"
)

// Separate gives c a process group of its own. It is called before c starts.
func Separate(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// Kill kills c alone.
func Kill(c *exec.Cmd) error { return c.Process.Kill() }
