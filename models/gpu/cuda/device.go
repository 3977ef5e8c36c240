//go:build !nogpu && (linux || windows) && (amd64 || arm64)

package cuda

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"brood/models/gpu"
)

// device is the primary context of a card, with its own stream. The driver's current context is a property of the
// thread, so every method sets it.
type device struct {
	info    gpu.Info
	handle  int32
	context uintptr
	stream  uintptr
	modules []uintptr
	staging staging
	graphs  graphs
}

// staging is host memory that the card reads directly. It is filled from the start, and from the start again once the
// stream is empty, so that writes do not wait for work queued before.
type staging struct {
	p  unsafe.Pointer
	at int
}

// stagingRoom is its size in bytes. Larger writes bypass it and wait.
const stagingRoom = 8 << 20

// Open opens device i.
func (Driver) Open(i int) (gpu.Device, error) {
	n, err := count()
	if err != nil {
		return nil, err
	}
	if i < 0 || i >= n {
		return nil, fmt.Errorf("cuda:%d: there are %d devices, counted from 0", i, n)
	}
	d := &device{}
	d.withGraphs()
	if d.handle, d.info, err = about(i); err != nil {
		return nil, err
	}
	if d.info.Refuse != "" {
		return nil, fmt.Errorf("%s: %s", d.info.Name, d.info.Refuse)
	}
	context := new(uintptr)
	if err := checked(cuDevicePrimaryCtxRetain(context, d.handle)); err != nil {
		return nil, fmt.Errorf("%s: open: %w", d.info.Name, err)
	}
	d.context = *context
	err = d.on(func() int32 {
		stream := new(uintptr)
		code := cuStreamCreate(stream, ownStream)
		d.stream = *stream
		return code
	})
	if err == nil {
		err = d.on(func() int32 { return cuMemHostAlloc(&d.staging.p, stagingRoom, 0) })
	}
	if err != nil {
		d.Close()
		return nil, fmt.Errorf("%s: open: %w", d.info.Name, err)
	}
	return d, nil
}

// on makes a call in the device's context.
func (d *device) on(call func() int32) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if code := cuCtxSetCurrent(d.context); code != 0 {
		return checked(code)
	}
	return checked(call())
}

func (d *device) Info() gpu.Info { return d.info }

func (d *device) Alloc(bytes int) (gpu.Memory, error) {
	at := new(uint64)
	err := d.on(func() int32 { return cuMemAlloc_v2(at, uintptr(max(16, bytes))) })
	return gpu.Memory(*at), err
}

// Free waits for queued work, since the driver frees memory at once. The next call returns an error of the queue too.
func (d *device) Free(m gpu.Memory) {
	d.on(func() int32 {
		cuStreamSynchronize(d.stream)
		return cuMemFree_v2(uint64(m))
	})
}

func (d *device) Write(dst gpu.Memory, at int, p []byte) error {
	n := len(p)
	if n == 0 {
		return nil
	}
	to := uint64(dst) + uint64(at)
	if n > stagingRoom { // the driver waits until it has read p
		return d.on(func() int32 {
			if code := cuMemcpyHtoDAsync_v2(to, unsafe.Pointer(&p[0]), uintptr(n), d.stream); code != 0 {
				return code
			}
			return cuStreamSynchronize(d.stream)
		})
	}
	if d.staging.at+n > stagingRoom {
		if err := d.Finish(); err != nil {
			return err
		}
	}
	from := unsafe.Add(d.staging.p, d.staging.at)
	copy(unsafe.Slice((*byte)(from), n), p)
	d.staging.at += (n + 63) / 64 * 64
	return d.on(func() int32 { return cuMemcpyHtoDAsync_v2(to, from, uintptr(n), d.stream) })
}

func (d *device) Read(p []byte, src gpu.Memory, at int) error {
	if len(p) > 0 {
		from := uint64(src) + uint64(at)
		err := d.on(func() int32 { return cuMemcpyDtoHAsync_v2(unsafe.Pointer(&p[0]), from, uintptr(len(p)), d.stream) })
		if err != nil {
			return err
		}
	}
	return d.Finish()
}

func (d *device) Finish() error {
	err := d.on(func() int32 { return cuStreamSynchronize(d.stream) })
	d.staging.at = 0
	return err
}

// Load passes the PTX of a source to the driver, which compiles it for the card.
func (d *device) Load(name, source string) error {
	text, err := PTX(name, source)
	if err != nil {
		return err
	}
	module, image, log := new(uintptr), append([]byte(text), 0), make([]byte, 1<<14)
	var pin runtime.Pinner // the driver's options hold an address as a number
	defer pin.Unpin()
	pin.Pin(&log[0])
	options := &[2]int32{jitErrors, jitErrorsSize}
	values := &[2]uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log) - 1)}
	if err := d.on(func() int32 {
		return cuModuleLoadDataEx(module, unsafe.Pointer(&image[0]), uint32(len(options)), &options[0], &values[0])
	}); err != nil {
		log, _, _ = bytes.Cut(log, []byte{0})
		return fmt.Errorf("load %s: %w: %.300s", name, err, bytes.TrimSpace(log))
	}
	d.modules = append(d.modules, *module)
	return nil
}

// Kernel searches the modules, the newest first.
func (d *device) Kernel(name string) (gpu.Kernel, error) {
	k := new(uintptr)
	err := fmt.Errorf("nothing is loaded")
	for _, m := range slices.Backward(d.modules) {
		if err = d.on(func() int32 { return cuModuleGetFunction(k, m, name) }); err == nil {
			return gpu.Kernel(*k), nil
		}
	}
	return 0, fmt.Errorf("kernel %s: %w", name, err)
}

func (d *device) Launch(k gpu.Kernel, groups [3]int, size int, args ...any) error {
	p, at, err := Parameters(args)
	if err != nil {
		return err
	}
	each := list(p, at)
	return d.on(func() int32 {
		return cuLaunchKernel(uintptr(k), uint32(groups[0]), uint32(groups[1]), uint32(groups[2]), uint32(size), 1, 1, 0,
			d.stream, each, nil)
	})
}

func (d *device) Close() {
	d.dropGraphs()
	d.on(func() int32 {
		cuStreamSynchronize(d.stream)
		for _, m := range d.modules {
			cuModuleUnload(m)
		}
		if d.staging.p != nil {
			cuMemFreeHost(d.staging.p)
		}
		if d.stream != 0 {
			cuStreamDestroy_v2(d.stream)
		}
		return cuCtxSetCurrent(0)
	})
	cuDevicePrimaryCtxRelease_v2(d.handle)
}
