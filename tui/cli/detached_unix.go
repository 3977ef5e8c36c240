//go:build unix

package cli

import (
	"os"
	"syscall"
)

// detached puts a run's process into a session of its own: the terminal's signals and its end do not reach it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// signalAll reaches a process that was started detached, and whatever it has started.
func signalAll(p *os.Process, sig syscall.Signal) error { return syscall.Kill(-p.Pid, sig) }
