//go:build unix

package cli

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// detached returns the attributes of a process in a new OS session: the signals and the end of the terminal do not
// reach it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// resumable reports whether a shell with job control can resume this process after it stops itself. The first process
// group of an OS session has no such shell, and the OS ignores its stop signals.
func resumable() bool {
	sid, err := unix.Getsid(0)
	return err == nil && syscall.Getpgrp() != sid
}

// signalAll sends a signal to the process group of a detached process.
func signalAll(p *os.Process, sig syscall.Signal) error { return syscall.Kill(-p.Pid, sig) }
