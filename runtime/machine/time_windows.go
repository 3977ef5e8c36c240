package machine

import (
	"syscall"
	"time"
)

// ProcessorTime returns the processor time of all threads of this process so far; ok is false if it is unknown.
func ProcessorTime() (t time.Duration, ok bool) {
	var born, died, kernel, user syscall.Filetime
	self, err := syscall.GetCurrentProcess()
	if err != nil || syscall.GetProcessTimes(self, &born, &died, &kernel, &user) != nil {
		return 0, false
	}
	return span(kernel) + span(user), true
}

// span converts a time in units of 100 ns.
func span(f syscall.Filetime) time.Duration {
	return time.Duration((int64(f.HighDateTime)<<32 | int64(f.LowDateTime)) * 100)
}
