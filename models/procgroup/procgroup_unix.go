//go:build unix

package procgroup

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Separate gives c a process group of its own. It is called before c starts.
func Separate(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Kill kills all processes of the group of c, which has been prepared by [Separate] and started. It returns
// [os.ErrProcessDone] if none is left.
func Kill(c *exec.Cmd) error {
	err := syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
