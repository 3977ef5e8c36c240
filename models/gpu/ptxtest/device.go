package ptxtest

import (
	"fmt"
	"slices"

	"brood/models/gpu"
	"brood/models/gpu/cuda"
)

// Device is a gpu.Device whose memory consists of slices. Its queue is always empty.
type Device struct {
	// PTX returns the PTX of a source by its name and text; nil uses [cuda.PTX].
	PTX     func(name, source string) (string, error)
	pieces  [][]byte // by number, from 1; nil after Free
	kernels []*kernel
}

// New returns a device without allocations.
func New() *Device { return &Device{pieces: make([][]byte, 1)} }

// Info describes the device.
func (d *Device) Info() gpu.Info {
	return gpu.Info{
		Name:   "ptx:0 (interpreter)",
		Maker:  "interpreter",
		Memory: 1 << 32,
		Most:   1 << 31,
		Double: true,
		Tensor: "ptx",
	}
}

// Alloc fills memory with a pattern that no kernel should read.
func (d *Device) Alloc(bytes int) (gpu.Memory, error) {
	p := slices.Repeat([]byte{0xfb}, max(16, bytes))
	d.pieces = append(d.pieces, p)
	return gpu.Memory(len(d.pieces)-1) << places, nil
}

// Free frees memory.
func (d *Device) Free(m gpu.Memory) { d.pieces[m>>places] = nil }

// Write copies p.
func (d *Device) Write(dst gpu.Memory, at int, p []byte) error {
	return d.within(dst, at, len(p), func(own []byte) { copy(own, p) })
}

// Read copies into p.
func (d *Device) Read(p []byte, src gpu.Memory, at int) error {
	return d.within(src, at, len(p), func(own []byte) { copy(p, own) })
}

func (d *Device) within(m gpu.Memory, at, n int, do func(own []byte)) error {
	i := int(m >> places)
	if i >= len(d.pieces) || at < 0 || at+n > len(d.pieces[i]) {
		return fmt.Errorf("%d bytes at %d of piece %d: it is smaller, or was given back", n, at, i)
	}
	do(d.pieces[i][at : at+n])
	return nil
}

// Load parses the PTX of a source.
func (d *Device) Load(name, source string) error {
	made := d.PTX
	if made == nil {
		made = cuda.PTX
	}
	text, err := made(name, source)
	if err != nil {
		return err
	}
	found, err := d.parse(text)
	if err != nil {
		return fmt.Errorf("%s.ptx: %w", name, err)
	}
	d.kernels = append(d.kernels, found...)
	return nil
}

// Kernel returns the newest kernel of a name.
func (d *Device) Kernel(name string) (gpu.Kernel, error) {
	for i, k := range slices.Backward(d.kernels) {
		if k.name == name {
			return gpu.Kernel(i + 1), nil
		}
	}
	return 0, fmt.Errorf("kernel %s: there is none", name)
}

// Launch runs the groups one after another.
func (d *Device) Launch(k gpu.Kernel, groups [3]int, size int, args ...any) (err error) {
	code := d.kernels[k-1]
	p, at, err := cuda.Parameters(args)
	if err != nil {
		return err
	}
	if !slices.Equal(at, code.places) || len(p) != code.paramBytes {
		return fmt.Errorf("kernel %s has parameters at %v of %d bytes, and is given %v of %d", code.name, code.places,
			code.paramBytes, at, len(p))
	}
	if groups[1] > 65535 || groups[2] > 65535 || size > 1024 {
		return fmt.Errorf("kernel %s: groups %v of %d work items are more than a card takes", code.name, groups, size)
	}
	defer func() {
		switch f := recover().(type) {
		case nil:
		case fault:
			err = fmt.Errorf("kernel %s: %s", code.name, string(f))
		default:
			panic(f)
		}
	}()
	code.launches++
	d.run(code, groups, size, p)
	return nil
}

// Finish does nothing.
func (d *Device) Finish() error { return nil }

// Close frees all memory.
func (d *Device) Close() { d.pieces = nil }

// Unused returns the names of the kernels that were not launched.
func (d *Device) Unused() (names []string) {
	for _, k := range d.kernels {
		if k.launches == 0 {
			names = append(names, k.name)
		}
	}
	return names
}
