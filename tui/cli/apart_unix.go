//go:build unix

package cli

import "syscall"

// apart puts a run's process into a session of its own: the terminal's signals and its end do not reach it.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
