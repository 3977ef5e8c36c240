package cli

import "syscall"

// apart detaches a run's process from the console: its signals and its end do not reach it.
func apart() *syscall.SysProcAttr {
	const detachedProcess = 0x00000008
	return &syscall.SysProcAttr{CreationFlags: detachedProcess | syscall.CREATE_NEW_PROCESS_GROUP}
}
