//go:build unix

package cli

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// detached puts a run's process into a session of its own: the terminal's signals and its end do not reach it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// resumable reports whether a shell with job control started this process: one that it stops would be resumed. A
// process group of the terminal's first process has no such shell, and the system ignores what would stop it.
func resumable() bool {
	sid, err := unix.Getsid(0)
	return err == nil && syscall.Getpgrp() != sid
}

// signalAll reaches a process that was started detached, and whatever it has started.
func signalAll(p *os.Process, sig syscall.Signal) error { return syscall.Kill(-p.Pid, sig) }
