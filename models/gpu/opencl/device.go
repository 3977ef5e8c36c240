//go:build !nogpu && (linux || darwin || windows) && (amd64 || arm64)

package opencl

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"brood/models/gpu"
)

// device is a context with one in-order queue.
type device struct {
	info               gpu.Info
	id, context, queue uintptr
	programs           []uintptr
	kernels            []uintptr
	written            [][]byte // data of queued writes
	staged             int      // its size in bytes
}

// mostStaged is the number of bytes of queued writes after which Write waits for the queue.
const mostStaged = 64 << 20

// options require IEEE division and square roots; no optimisation is relaxed.
const options = "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"

// Open opens device i.
func (Driver) Open(i int) (gpu.Device, error) {
	all, err := devices()
	if err != nil {
		return nil, err
	}
	if i < 0 || i >= len(all) {
		return nil, fmt.Errorf("opencl:%d: there are %d devices, counted from 0", i, len(all))
	}
	d := &device{info: about(all[i], i), id: all[i]}
	code := new(int32)
	if d.context = clCreateContext(0, 1, &d.id, 0, 0, code); *code != 0 {
		return nil, fmt.Errorf("%s: open: %w", d.info.Name, codeError(*code))
	}
	if d.queue = clCreateCommandQueue(d.context, d.id, 0, code); *code != 0 {
		clReleaseContext(d.context)
		return nil, fmt.Errorf("%s: open a queue: %w", d.info.Name, codeError(*code))
	}
	return d, nil
}

func (d *device) Info() gpu.Info { return d.info }

func (d *device) Alloc(bytes int) (gpu.Memory, error) {
	code := new(int32)
	m := clCreateBuffer(d.context, readWrite, uintptr(max(16, bytes)), 0, code)
	return gpu.Memory(m), checked(*code)
}

// Free releases memory: the library frees it once queued work on it is done.
func (d *device) Free(m gpu.Memory) { clReleaseMemObject(uintptr(m)) }

// Write copies p, since the queue may read it later.
func (d *device) Write(dst gpu.Memory, at int, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if d.staged += len(p); d.staged > mostStaged {
		if err := d.Finish(); err != nil {
			return err
		}
		d.staged = len(p)
	}
	p = slices.Clone(p)
	d.written = append(d.written, p)
	return checked(clEnqueueWriteBuffer(d.queue, uintptr(dst), 0, uintptr(at), uintptr(len(p)), unsafe.Pointer(&p[0]), 0,
		0, 0))
}

func (d *device) Read(p []byte, src gpu.Memory, at int) error {
	if len(p) == 0 {
		return d.Finish()
	}
	err := checked(clEnqueueReadBuffer(d.queue, uintptr(src), 1, uintptr(at), uintptr(len(p)), unsafe.Pointer(&p[0]), 0, 0,
		0))
	d.forget()
	return err
}

func (d *device) Finish() error {
	err := checked(clFinish(d.queue))
	d.forget()
	return err
}

// forget drops the data of finished writes.
func (d *device) forget() {
	clear(d.written)
	d.written, d.staged = d.written[:0], 0
}

func (d *device) Load(name, source string) error {
	code, src := new(int32), append([]byte(source), 0)
	line := new(unsafe.Pointer)
	*line = unsafe.Pointer(&src[0])
	p := clCreateProgramWithSource(d.context, 1, line, nil, code)
	if *code != 0 {
		return fmt.Errorf("load %s: %w", name, codeError(*code))
	}
	d.programs = append(d.programs, p)
	if built := clBuildProgram(p, 1, &d.id, options, 0, 0); built != 0 {
		return fmt.Errorf("load %s: %w: %s", name, codeError(built), d.log(p))
	}
	return nil
}

// log returns the first line of the compiler's messages, at most 300 bytes.
func (d *device) log(program uintptr) string {
	p := make([]byte, 1<<16)
	clGetProgramBuildInfo(program, d.id, buildLog, uintptr(len(p)), unsafe.Pointer(&p[0]), nil)
	s, _, _ := strings.Cut(string(p), "\x00")
	s = strings.TrimSpace(s)
	if at := strings.Index(s, "error"); at > 0 {
		s = s[at:]
	}
	return s[:min(len(s), 300)]
}

// Kernel searches the programs, the newest first.
func (d *device) Kernel(name string) (gpu.Kernel, error) {
	code := new(int32)
	for _, p := range slices.Backward(d.programs) {
		if k := clCreateKernel(p, name, code); *code == 0 {
			d.kernels = append(d.kernels, k)
			return gpu.Kernel(k), nil
		}
	}
	return 0, fmt.Errorf("kernel %s: %w", name, codeError(*code))
}

func (d *device) Launch(k gpu.Kernel, groups [3]int, size int, args ...any) error {
	for i, a := range args {
		var code int32
		switch a := a.(type) {
		case gpu.Memory:
			v := uintptr(a)
			code = clSetKernelArg(uintptr(k), uint32(i), unsafe.Sizeof(v), unsafe.Pointer(&v))
		case uint32:
			code = clSetKernelArg(uintptr(k), uint32(i), 4, unsafe.Pointer(&a))
		case uint64:
			code = clSetKernelArg(uintptr(k), uint32(i), 8, unsafe.Pointer(&a))
		case float32:
			code = clSetKernelArg(uintptr(k), uint32(i), 4, unsafe.Pointer(&a))
		default:
			return fmt.Errorf("argument %d is a %T", i, a)
		}
		if code != 0 {
			return fmt.Errorf("argument %d: %w", i, codeError(code))
		}
	}
	global := &[3]uintptr{uintptr(groups[0] * size), uintptr(groups[1]), uintptr(groups[2])}
	local := &[3]uintptr{uintptr(size), 1, 1}
	return checked(clEnqueueNDRangeKernel(d.queue, uintptr(k), 3, nil, &global[0], &local[0], 0, 0, 0))
}

func (d *device) Close() {
	clFinish(d.queue)
	for _, k := range d.kernels {
		clReleaseKernel(k)
	}
	for _, p := range d.programs {
		clReleaseProgram(p)
	}
	clReleaseCommandQueue(d.queue)
	clReleaseContext(d.context)
}
