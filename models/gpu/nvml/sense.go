package nvml

import "brood/models/gpu"

// Sense returns the state of the device at a PCI bus address; memory is the device's memory in bytes by its driver.
func Sense(bus string, memory int64) gpu.Sense {
	r := Read(bus)
	out := gpu.Sense{Taken: r.Taken, Load: r.Load, Celsius: r.Celsius}
	if r.Total > memory/4*5 { // the device is a part of the card, whose memory and load are not reported separately
		out.Taken, out.Load = -1, -1
	}
	return out
}
