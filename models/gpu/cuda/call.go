//go:build !nogpu && (linux || windows) && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"brood/models/gpu/clib"
)

// The calls of the driver, by the library's names for them: a name with _v2 is the one that current headers map the
// plain name to. Handles are pointers, sizes are size_t, and devices are numbers.
var (
	cuInit                       func(flags uint32) int32
	cuDriverGetVersion           func(version *int32) int32
	cuGetErrorName               func(code int32, name *unsafe.Pointer) int32
	cuDeviceGetCount             func(n *int32) int32
	cuDeviceGet                  func(device *int32, i int32) int32
	cuDeviceGetName              func(name unsafe.Pointer, size, device int32) int32
	cuDeviceTotalMem_v2          func(bytes *uintptr, device int32) int32
	cuDeviceGetAttribute         func(value *int32, what, device int32) int32
	cuDeviceGetPCIBusId          func(bus unsafe.Pointer, size, device int32) int32
	cuDevicePrimaryCtxRetain     func(context *uintptr, device int32) int32
	cuDevicePrimaryCtxRelease_v2 func(device int32) int32
	cuCtxSetCurrent              func(context uintptr) int32
	cuMemAlloc_v2                func(at *uint64, bytes uintptr) int32
	cuMemFree_v2                 func(at uint64) int32
	cuMemHostAlloc               func(p *unsafe.Pointer, bytes uintptr, flags uint32) int32
	cuMemFreeHost                func(p unsafe.Pointer) int32
	cuMemcpyHtoDAsync_v2         func(to uint64, p unsafe.Pointer, bytes, stream uintptr) int32
	cuMemcpyDtoHAsync_v2         func(p unsafe.Pointer, from uint64, bytes, stream uintptr) int32
	cuStreamCreate               func(stream *uintptr, flags uint32) int32
	cuStreamSynchronize          func(stream uintptr) int32
	cuStreamDestroy_v2           func(stream uintptr) int32
	cuModuleLoadDataEx           func(module *uintptr, text unsafe.Pointer, n uint32, options *int32,
		values *uintptr) int32
	cuModuleUnload      func(module uintptr) int32
	cuModuleGetFunction func(kernel *uintptr, module uintptr, name string) int32
	cuLaunchKernel      func(kernel uintptr, gx, gy, gz, x, y, z, shared uint32, stream uintptr, each,
		all unsafe.Pointer) int32
)

var calls = map[string]any{
	"cuInit":                       &cuInit,
	"cuDriverGetVersion":           &cuDriverGetVersion,
	"cuGetErrorName":               &cuGetErrorName,
	"cuDeviceGetCount":             &cuDeviceGetCount,
	"cuDeviceGet":                  &cuDeviceGet,
	"cuDeviceGetName":              &cuDeviceGetName,
	"cuDeviceTotalMem_v2":          &cuDeviceTotalMem_v2,
	"cuDeviceGetAttribute":         &cuDeviceGetAttribute,
	"cuDeviceGetPCIBusId":          &cuDeviceGetPCIBusId,
	"cuDevicePrimaryCtxRetain":     &cuDevicePrimaryCtxRetain,
	"cuDevicePrimaryCtxRelease_v2": &cuDevicePrimaryCtxRelease_v2,
	"cuCtxSetCurrent":              &cuCtxSetCurrent,
	"cuMemAlloc_v2":                &cuMemAlloc_v2,
	"cuMemFree_v2":                 &cuMemFree_v2,
	"cuMemHostAlloc":               &cuMemHostAlloc,
	"cuMemFreeHost":                &cuMemFreeHost,
	"cuMemcpyHtoDAsync_v2":         &cuMemcpyHtoDAsync_v2,
	"cuMemcpyDtoHAsync_v2":         &cuMemcpyDtoHAsync_v2,
	"cuStreamCreate":               &cuStreamCreate,
	"cuStreamSynchronize":          &cuStreamSynchronize,
	"cuStreamDestroy_v2":           &cuStreamDestroy_v2,
	"cuModuleLoadDataEx":           &cuModuleLoadDataEx,
	"cuModuleUnload":               &cuModuleUnload,
	"cuModuleGetFunction":          &cuModuleGetFunction,
	"cuLaunchKernel":               &cuLaunchKernel,
}

// Graphs came with CUDA 10, and the call that instantiates one with 11.4: with an older driver, kernels are launched
// one by one. The names without _v2 take the parameters of a launch as in launched.
var (
	cuGraphCreate                  func(graph *uintptr, flags uint32) int32
	cuGraphAddKernelNode           func(node *uintptr, graph uintptr, after *uintptr, n uintptr, l *launched) int32
	cuGraphInstantiateWithFlags    func(exec *uintptr, graph uintptr, flags uint64) int32
	cuGraphExecKernelNodeSetParams func(exec, node uintptr, l *launched) int32
	cuGraphLaunch                  func(exec, stream uintptr) int32
	cuGraphExecDestroy             func(exec uintptr) int32
	cuGraphDestroy                 func(graph uintptr) int32
)

var graphCalls = map[string]any{
	"cuGraphCreate":                  &cuGraphCreate,
	"cuGraphAddKernelNode":           &cuGraphAddKernelNode,
	"cuGraphInstantiateWithFlags":    &cuGraphInstantiateWithFlags,
	"cuGraphExecKernelNodeSetParams": &cuGraphExecKernelNodeSetParams,
	"cuGraphLaunch":                  &cuGraphLaunch,
	"cuGraphExecDestroy":             &cuGraphExecDestroy,
	"cuGraphDestroy":                 &cuGraphDestroy,
}

// hasGraphs reports whether the loaded driver has all graphCalls.
var hasGraphs bool

// libraries lists file names of the driver on systems and in containers.
var libraries = map[string][]string{
	"linux": {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1",
		"/run/opengl-driver/lib/libcuda.so.1", "/usr/lib64/libcuda.so.1"},
	"windows": {"nvcuda.dll"},
}

// loaded loads the driver once per process: $BROOD_CUDA, or the system's.
var loaded = sync.OnceValue(func() error {
	if own := os.Getenv("BROOD_CUDA"); own != "" {
		return load(own)
	}
	return load(libraries[runtime.GOOS]...)
})

// load loads and initialises the first of some libraries that exists.
func load(names ...string) error {
	name, err := clib.Load(calls, names...)
	switch {
	case errors.Is(err, clib.ErrNone):
		return fmt.Errorf("no CUDA here: %s cannot be loaded; install NVIDIA's driver", name)
	case err != nil:
		return fmt.Errorf("no CUDA here: %s is not a driver of CUDA 11 or later: %w", name, err)
	}
	_, err = clib.Load(graphCalls, name)
	hasGraphs = err == nil
	if err := checked(cuInit(0)); err != nil {
		return fmt.Errorf("no CUDA here: the driver does not start: %w", err)
	}
	return nil
}

// codeError is the error code of a call.
type codeError struct {
	code int32
	name string // the driver's name for it
}

func (e *codeError) Error() string { return fmt.Sprintf("%s (%d)", e.name, e.code) }

func checked(code int32) error {
	if code == 0 {
		return nil
	}
	e := &codeError{code, "an unknown error"}
	p := new(unsafe.Pointer)
	if cuGetErrorName(code, p) == 0 && *p != nil {
		e.name = cString(*p)
	}
	return e
}

// cString returns a string of the driver, of at most 255 bytes.
func cString(p unsafe.Pointer) string {
	n := 0
	for n < 255 && *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}
