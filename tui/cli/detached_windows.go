package cli

import (
	"os"
	"syscall"
)

// detached detaches a run's process from the console: its signals and its end do not reach it.
func detached() *syscall.SysProcAttr {
	const detachedProcess = 0x00000008
	return &syscall.SysProcAttr{CreationFlags: detachedProcess | syscall.CREATE_NEW_PROCESS_GROUP}
}

// resumable reports whether a shell resumes a process that stops itself: none does.
func resumable() bool { return false }

// signalAll ends a process that was started detached; no other signal reaches it.
func signalAll(p *os.Process, _ syscall.Signal) error { return p.Kill() }
