//go:build unix

package machine

import (
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"syscall"
)

// PeakMemory returns the largest resident size of this process so far, in bytes; 0 if unknown.
func PeakMemory() int64 {
	if b := ownPeak(); b > 0 {
		return b
	}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if goruntime.GOOS == "darwin" {
		return int64(u.Maxrss) // bytes on darwin, KiB on other systems
	}
	return int64(u.Maxrss) << 10
}

// ownPeak returns the peak resident size since exec on Linux, in bytes; 0 on other systems. Rusage includes the peak of
// the parent process at the time of the fork.
func ownPeak() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}
