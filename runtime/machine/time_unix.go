//go:build unix

package machine

import (
	"syscall"
	"time"
)

// ProcessorTime returns the processor time of all threads of this process so far; ok is false if it is unknown.
func ProcessorTime() (t time.Duration, ok bool) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
