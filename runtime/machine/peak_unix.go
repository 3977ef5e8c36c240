//go:build unix

package machine

import (
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"syscall"
)

// PeakMemory is the largest resident size of this process so far, in bytes; 0 when unknown.
func PeakMemory() int64 {
	if b := ownPeak(); b > 0 {
		return b
	}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if goruntime.GOOS == "darwin" {
		return int64(u.Maxrss) // bytes there, KiB elsewhere
	}
	return int64(u.Maxrss) << 10
}

// ownPeak is the peak by Linux's own account of this program, in bytes; 0 elsewhere. Rusage begins with the peak of
// whoever started it.
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
