//go:build !nogpu && (linux || darwin || windows) && (amd64 || arm64)

package opencl

import (
	"fmt"
	"unsafe"

	"brood/models/gpu"
	"brood/models/gpu/nvml"
)

// Constants of the headers, including the extensions cl_khr_pci_bus_info and cl_nv_device_attribute_query.
const (
	infoVendor   = 0x1001
	infoPlace    = 0x410F
	infoBus      = 0x4008
	infoSlot     = 0x4009
	infoDomain   = 0x400A
	vendorNVIDIA = 0x10DE
)

// Sense returns the state of device i as NVIDIA's management library reports it; Unknown for other makers' devices.
func (Driver) Sense(i int) gpu.Sense {
	all, err := devices()
	if err != nil || i < 0 || i >= len(all) {
		return gpu.Unknown
	}
	return sense(all[i])
}

func (d *device) Sense() gpu.Sense { return sense(d.id) }

func sense(d uintptr) gpu.Sense {
	bus, ok := bus(d)
	if !ok {
		return gpu.Unknown
	}
	return nvml.Sense(bus, int64(number(d, infoMemory)))
}

// bus returns the PCI bus address of an NVIDIA card in the management library's format.
func bus(d uintptr) (place string, ok bool) {
	if vendor, ok := word(d, infoVendor); !ok || vendor != vendorNVIDIA {
		return "", false
	}
	at := new([4]uint32) // domain, bus, device, function
	if clGetDeviceInfo(d, infoPlace, unsafe.Sizeof(*at), unsafe.Pointer(at), nil) == 0 {
		return fmt.Sprintf("%04x:%02x:%02x.%x", at[0], at[1], at[2], at[3]), true
	}
	n, has := word(d, infoBus)
	slot, too := word(d, infoSlot) // the device number above three bits of function number
	if !has || !too {
		return "", false
	}
	domain, _ := word(d, infoDomain) // older drivers support only one domain
	return fmt.Sprintf("%04x:%02x:%02x.%x", domain, n, slot>>3, slot&7), true
}

// word queries a 32-bit number of a device.
func word(d uintptr, what uint32) (uint32, bool) {
	x := new(uint32)
	ok := clGetDeviceInfo(d, what, 4, unsafe.Pointer(x), nil) == 0
	return *x, ok
}
