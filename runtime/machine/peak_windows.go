package machine

import goruntime "runtime"

// PeakMemory is the memory that Go took from the system, in bytes: an approximation of the peak resident size.
func PeakMemory() int64 {
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.Sys)
}
