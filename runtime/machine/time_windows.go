package machine

import (
	"syscall"
	"time"
)

// ProcessorTime is what all threads of this process used so far; ok is false where nothing tells.
func ProcessorTime() (t time.Duration, ok bool) {
	var born, died, kernel, user syscall.Filetime
	self, err := syscall.GetCurrentProcess()
	if err != nil || syscall.GetProcessTimes(self, &born, &died, &kernel, &user) != nil {
		return 0, false
	}
	return span(kernel) + span(user), true
}

// span of a time that counts in units of 100 ns.
func span(f syscall.Filetime) time.Duration {
	return time.Duration((int64(f.HighDateTime)<<32 | int64(f.LowDateTime)) * 100)
}
