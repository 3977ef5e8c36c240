package cli

import (
	"os"
	"syscall"
)

// detached returns the attributes of a process without the console: the signals and the end of the console do not
// reach it.
func detached() *syscall.SysProcAttr {
	const detachedProcess = 0x00000008
	return &syscall.SysProcAttr{CreationFlags: detachedProcess | syscall.CREATE_NEW_PROCESS_GROUP}
}

// resumable reports whether a shell can resume a process that stops itself.
func resumable() bool { return false }

// signalAll kills a detached process, whatever the signal: Windows has no others.
func signalAll(p *os.Process, _ syscall.Signal) error { return p.Kill() }
