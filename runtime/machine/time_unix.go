//go:build unix

package machine

import (
	"syscall"
	"time"
)

// processorTime is what all threads of this process used.
func processorTime() (time.Duration, bool) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
