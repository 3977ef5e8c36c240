//go:build !nogpu && (linux || darwin || windows) && (amd64 || arm64)

package opencl

import (
	"fmt"
	"strings"
	"unsafe"

	"brood/models/gpu"
)

// Driver is the OpenCL driver.
type Driver struct{}

// Name returns opencl.
func (Driver) Name() string { return "opencl" }

// Constants of the headers.
const (
	allKinds      = 0xFFFFFFFF
	infoMostAlloc = 0x1010
	infoMemory    = 0x101F
	infoName      = 0x102B
	infoDriver    = 0x102D
	infoDouble    = 0x1032
	buildLog      = 0x1183
	readWrite     = 1
	noDevices     = -1    // CL_DEVICE_NOT_FOUND
	noPlatforms   = -1001 // returned by the loader
	maxDevices    = 64
)

// codeError is the error code of a call.
type codeError int32

func (e codeError) Error() string {
	if s, ok := codes[e]; ok {
		return s
	}
	return fmt.Sprintf("code %d", int32(e))
}

// codes describes error codes that a user can act on.
var codes = map[codeError]string{
	-2:  "the device is not available",
	-3:  "its compiler is not available",
	-4:  "no memory for it on the device",
	-5:  "the device is out of resources",
	-6:  "the driver is out of host memory",
	-11: "the kernels do not compile",
	-14: "something that was queued before failed",
	-36: "the queue is lost (-36)",
	-61: "a size of memory that the device does not give",
}

func checked(code int32) error {
	if code != 0 {
		return codeError(code)
	}
	return nil
}

// devices returns the handles of the devices of all platforms.
func devices() (out []uintptr, err error) {
	if err := loaded(); err != nil {
		return nil, err
	}
	var platforms [maxDevices]uintptr
	var n uint32
	if code := clGetPlatformIDs(maxDevices, &platforms[0], &n); code != 0 && code != noPlatforms {
		return nil, fmt.Errorf("no OpenCL here: its platforms: %w", codeError(code))
	}
	for _, p := range platforms[:min(n, maxDevices)] {
		var some [maxDevices]uintptr
		var m uint32
		if code := clGetDeviceIDs(p, allKinds, maxDevices, &some[0], &m); code == 0 {
			out = append(out, some[:min(m, maxDevices)]...)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no OpenCL here: the library is installed but lists no device; install the device's " +
			"driver, or pocl-opencl-icd to compute on the processor")
	}
	return out, nil
}

// Devices lists the devices of all platforms in the library's order.
func (Driver) Devices() ([]gpu.Info, error) {
	all, err := devices()
	if err != nil {
		return nil, err
	}
	var out []gpu.Info
	for i, d := range all {
		out = append(out, about(d, i))
	}
	return out, nil
}

func about(d uintptr, i int) gpu.Info {
	maker := text(d, infoName)
	return gpu.Info{
		Name:   fmt.Sprintf("opencl:%d (%s)", i, maker),
		Maker:  maker,
		Driver: text(d, infoDriver),
		Memory: int64(number(d, infoMemory)),
		Most:   int64(number(d, infoMostAlloc)),
		Double: number(d, infoDouble) != 0,
	}
}

// text queries a string of a device.
func text(d uintptr, what uint32) string {
	p := make([]byte, 1024)
	if clGetDeviceInfo(d, what, uintptr(len(p)), unsafe.Pointer(&p[0]), nil) != 0 {
		return ""
	}
	s, _, _ := strings.Cut(string(p), "\x00")
	return strings.Join(strings.Fields(s), " ")
}

// number queries a 64-bit number of a device.
func number(d uintptr, what uint32) uint64 {
	x := new(uint64)
	clGetDeviceInfo(d, what, 8, unsafe.Pointer(x), nil)
	return *x
}
