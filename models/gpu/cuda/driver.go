//go:build !nogpu && (linux || windows) && (amd64 || arm64)

package cuda

import (
	"bytes"
	"fmt"
	"unsafe"

	"brood/models/gpu"
)

// Driver is the CUDA driver.
type Driver struct{}

// Name returns cuda.
func (Driver) Name() string { return "cuda" }

// Constants of the headers.
const (
	attributeMajor  = 75
	attributeMinor  = 76
	jitErrors       = 5 // CU_JIT_ERROR_LOG_BUFFER
	jitErrorsSize   = 6
	ownStream       = 1 // CU_STREAM_NON_BLOCKING
	leastCapability = 8 // major compute capability that the PTX is compiled for
)

// count returns the number of devices of the driver, at least one, or an error.
func count() (int, error) {
	if err := loaded(); err != nil {
		return 0, err
	}
	n := new(int32)
	if err := checked(cuDeviceGetCount(n)); err != nil {
		return 0, fmt.Errorf("no CUDA here: %w", err)
	}
	if *n == 0 {
		return 0, fmt.Errorf("no CUDA here: the driver has no device ($CUDA_VISIBLE_DEVICES hides the devices that it " +
			"does not name)")
	}
	return int(*n), nil
}

// Devices lists the driver's devices in its order.
func (Driver) Devices() ([]gpu.Info, error) {
	n, err := count()
	if err != nil {
		return nil, err
	}
	var out []gpu.Info
	for i := range n {
		_, info, err := about(i)
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

// about returns device i of the driver.
func about(i int) (handle int32, info gpu.Info, err error) {
	d := new(int32)
	if err := checked(cuDeviceGet(d, int32(i))); err != nil {
		return 0, info, fmt.Errorf("cuda:%d: %w", i, err)
	}
	total, name := new(uintptr), make([]byte, 256)
	major, minor, version := new(int32), new(int32), new(int32)
	for _, code := range []int32{
		cuDeviceGetName(unsafe.Pointer(&name[0]), int32(len(name)-1), *d), cuDeviceTotalMem_v2(total, *d),
		cuDeviceGetAttribute(major, attributeMajor, *d), cuDeviceGetAttribute(minor, attributeMinor,
			*d), cuDriverGetVersion(version),
	} {
		if err := checked(code); err != nil {
			return 0, info, fmt.Errorf("cuda:%d: read its properties: %w", i, err)
		}
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	refuse := ""
	if *major < leastCapability {
		refuse = fmt.Sprintf("the kernels are made for compute capability %d.0 and up, and this has %d.%d: use it as opencl",
			leastCapability, *major, *minor)
	}
	return *d, gpu.Info{
		Name:   fmt.Sprintf("cuda:%d (%s)", i, name),
		Maker:  string(name),
		Driver: fmt.Sprintf("CUDA %d.%d, compute capability %d.%d", *version/1000, *version%1000/10, *major, *minor),
		Memory: int64(*total),
		Most:   int64(*total),
		Double: true,
		Tensor: fmt.Sprintf("cuda%d.%d", *major, *minor),
		Refuse: refuse,
	}, nil
}
