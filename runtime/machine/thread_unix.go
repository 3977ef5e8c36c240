//go:build linux || darwin

package machine

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime is the processor time that the thread which calls used so far; ok is false where nothing tells. A
// goroutine that compares two of them holds on to its thread.
func ThreadTime() (t time.Duration, ok bool) {
	var at unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at) != nil {
		return 0, false
	}
	return time.Duration(at.Nano()), true
}
