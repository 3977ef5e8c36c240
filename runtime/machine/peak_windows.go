package machine

import goruntime "runtime"

// PeakMemory returns the memory that the Go runtime has obtained from the system, in bytes, as an approximation of the
// peak resident size.
func PeakMemory() int64 {
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.Sys)
}
