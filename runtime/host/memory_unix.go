//go:build unix

package host

import (
	goruntime "runtime"
	"syscall"
)

// PeakMemory is the largest resident size of this process so far, in bytes; 0 when unknown.
func PeakMemory() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if goruntime.GOOS == "darwin" {
		return int64(u.Maxrss) // bytes there, KiB elsewhere
	}
	return int64(u.Maxrss) << 10
}
