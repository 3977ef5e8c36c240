//go:build !nogpu && (linux || windows) && (amd64 || arm64)

package cuda

import (
	"unsafe"

	"brood/models/gpu"
	"brood/models/gpu/nvml"
)

// Sense returns the state of device i as NVIDIA's management library reports it.
func (Driver) Sense(i int) gpu.Sense {
	d, total := new(int32), new(uintptr)
	if loaded() != nil || cuDeviceGet(d, int32(i)) != 0 || cuDeviceTotalMem_v2(total, *d) != 0 {
		return gpu.Unknown
	}
	return sense(*d, int64(*total))
}

// Sense finds the card by its PCI bus address, since the two libraries number cards differently.
func (d *device) Sense() gpu.Sense { return sense(d.handle, d.info.Memory) }

func sense(handle int32, total int64) gpu.Sense {
	bus := new([32]byte)
	if cuDeviceGetPCIBusId(unsafe.Pointer(bus), int32(len(bus)-1), handle) != 0 {
		return gpu.Unknown
	}
	return nvml.Sense(cString(unsafe.Pointer(bus)), total)
}
