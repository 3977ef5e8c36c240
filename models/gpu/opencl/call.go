//go:build !nogpu && (linux || darwin || windows) && (amd64 || arm64)

package opencl

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"brood/models/gpu/clib"
)

// The calls of OpenCL 1.2, as in its headers: handles are pointers, sizes are size_t.
var (
	clGetPlatformIDs func(size uint32, ids *uintptr, n *uint32) int32
	clGetDeviceIDs   func(platform uintptr, kind uint64, size uint32, ids *uintptr, n *uint32) int32
	clGetDeviceInfo  func(device uintptr, what uint32, size uintptr, p unsafe.Pointer, n *uintptr) int32
	clCreateContext  func(properties uintptr, n uint32, devices *uintptr, notify, user uintptr,
		code *int32) uintptr
	clReleaseContext          func(context uintptr) int32
	clCreateCommandQueue      func(context, device uintptr, properties uint64, code *int32) uintptr
	clReleaseCommandQueue     func(queue uintptr) int32
	clCreateProgramWithSource func(context uintptr, n uint32, text *unsafe.Pointer, lengths *uintptr, code *int32) uintptr
	clBuildProgram            func(program uintptr, n uint32, devices *uintptr, options string, notify, user uintptr) int32
	clGetProgramBuildInfo     func(program, device uintptr, what uint32, size uintptr, p unsafe.Pointer, n *uintptr) int32
	clReleaseProgram          func(program uintptr) int32
	clCreateKernel            func(program uintptr, name string, code *int32) uintptr
	clReleaseKernel           func(kernel uintptr) int32
	clSetKernelArg            func(kernel uintptr, at uint32, size uintptr, p unsafe.Pointer) int32
	clCreateBuffer            func(context uintptr, flags uint64, bytes, host uintptr, code *int32) uintptr
	clReleaseMemObject        func(buffer uintptr) int32
	clEnqueueWriteBuffer      func(queue, buffer uintptr, block uint32, at, bytes uintptr, p unsafe.Pointer, n uint32,
		after, event uintptr) int32
	clEnqueueReadBuffer func(queue, buffer uintptr, block uint32, at, bytes uintptr, p unsafe.Pointer, n uint32, after,
		event uintptr) int32
	clEnqueueNDRangeKernel func(queue, kernel uintptr, dims uint32, from, global, local *uintptr, n uint32, after,
		event uintptr) int32
	clFlush  func(queue uintptr) int32
	clFinish func(queue uintptr) int32
)

var calls = map[string]any{
	"clGetPlatformIDs": &clGetPlatformIDs, "clGetDeviceIDs": &clGetDeviceIDs, "clGetDeviceInfo": &clGetDeviceInfo,
	"clCreateContext": &clCreateContext, "clReleaseContext": &clReleaseContext,
	"clCreateCommandQueue": &clCreateCommandQueue, "clReleaseCommandQueue": &clReleaseCommandQueue,
	"clCreateProgramWithSource": &clCreateProgramWithSource, "clBuildProgram": &clBuildProgram,
	"clGetProgramBuildInfo": &clGetProgramBuildInfo, "clReleaseProgram": &clReleaseProgram,
	"clCreateKernel": &clCreateKernel, "clReleaseKernel": &clReleaseKernel, "clSetKernelArg": &clSetKernelArg,
	"clCreateBuffer": &clCreateBuffer, "clReleaseMemObject": &clReleaseMemObject,
	"clEnqueueWriteBuffer": &clEnqueueWriteBuffer, "clEnqueueReadBuffer": &clEnqueueReadBuffer,
	"clEnqueueNDRangeKernel": &clEnqueueNDRangeKernel, "clFlush": &clFlush, "clFinish": &clFinish,
}

// library is the file name of the OpenCL loader by system.
var library = map[string]string{
	"linux":   "libOpenCL.so.1",
	"darwin":  "/System/Library/Frameworks/OpenCL.framework/OpenCL",
	"windows": "OpenCL.dll",
}

// loaded loads the library once per process: $BROOD_OPENCL, or the system's.
var loaded = sync.OnceValue(func() error {
	name := os.Getenv("BROOD_OPENCL")
	if name == "" {
		name = library[runtime.GOOS]
	}
	_, err := clib.Load(calls, name)
	switch {
	case errors.Is(err, clib.ErrNone):
		return fmt.Errorf("no OpenCL here: %s cannot be loaded; install the driver of the device, "+
			"or pocl-opencl-icd and ocl-icd-libopencl1 to compute on the processor", name)
	case err != nil:
		return fmt.Errorf("no OpenCL here: %s is not version 1.2 of it: %w", name, err)
	}
	return nil
})
