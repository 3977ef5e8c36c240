package worker

// Closer is an engine with resources other than memory, such as a device.
type Closer interface{ Close() }

// MemoryReporter is an engine on a device. DeviceMemory returns the device memory that the engine has allocated and the
// total memory of the device, in bytes. Any goroutine may call it.
type MemoryReporter interface{ DeviceMemory() (used, total int64) }

// DeviceMemory returns the allocated and the total bytes of the engine's device; ok is false without a device. It may
// be called from any goroutine.
func (w *Worker) DeviceMemory() (used, total int64, ok bool) {
	if h, is := w.cfg.Engine.(MemoryReporter); is {
		used, total = h.DeviceMemory()
		return used, total, true
	}
	return 0, 0, false
}

// Sensor is an engine on a device whose driver reports the device's state: bytes of memory in use by all processes, the
// fraction of time it was busy, and degrees Celsius. Unknown values are below zero. Any goroutine may call it.
type Sensor interface {
	Sense() (taken int64, load, celsius float64)
}

// Sense returns the state that the device's driver reports; all values are below zero without a device. It may be
// called from any goroutine, and may block in the driver.
func (w *Worker) Sense() (taken int64, load, celsius float64) {
	if s, is := w.cfg.Engine.(Sensor); is {
		return s.Sense()
	}
	return -1, -1, -1
}

// Restarter is an engine that runs external programs and counts their restarts; ok is false if it runs none. Any
// goroutine may call it.
type Restarter interface{ Restarts() (n int, ok bool) }

// Restarts returns how often external programs of the engine were restarted; ok is false if it runs none. It may be
// called from any goroutine.
func (w *Worker) Restarts() (n int, ok bool) {
	if r, is := w.cfg.Engine.(Restarter); is {
		return r.Restarts()
	}
	return 0, false
}
