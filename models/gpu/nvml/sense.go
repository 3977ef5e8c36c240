package nvml

import "brood/models/gpu"

// Sense is how the device at a place of the PCI bus is, whose driver has it with so many bytes of memory.
func Sense(bus string, memory int64) gpu.Sense {
	r := Read(bus)
	out := gpu.Sense{Taken: r.Taken, Load: r.Load, Celsius: r.Celsius}
	if r.Total > memory/4*5 { // the device is a part of the card, and nobody tells of that part alone
		out.Taken, out.Load = -1, -1
	}
	return out
}
