//go:build linux || darwin

package machine

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime returns the processor time of the calling thread so far; ok is false if it is unknown. A goroutine that
// compares two of them must be locked to its thread.
func ThreadTime() (t time.Duration, ok bool) {
	var at unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at) != nil {
		return 0, false
	}
	return time.Duration(at.Nano()), true
}
