//go:build unix

package machine

import (
	"syscall"
	"time"
)

// ProcessorTime is what all threads of this process used so far; ok is false where nothing tells.
func ProcessorTime() (t time.Duration, ok bool) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
