package gpu

// Driver lists and opens the devices of one programming interface.
type Driver interface {
	// Name is the interface's name in device options, such as opencl.
	Name() string
	// Devices lists the devices in a stable order. Without the interface's library it returns an error with the reason.
	Devices() ([]Info, error)
	// Open opens device i of that list. One goroutine at a time may use it.
	Open(i int) (Device, error)
}

// Info describes a device.
type Info struct {
	Name   string // display name, e.g. "opencl:0 (NVIDIA H100)"
	Maker  string // the maker's name for it: NVIDIA H100
	Driver string // version of the driver
	Memory int64  // bytes of memory
	Most   int64  // largest allocation in bytes
	Double bool   // whether it supports float64
	Tensor string // family of its tensor cores, part of the name of their arithmetic: cuda8.0; "": it has none
	Refuse string // why the driver cannot open it, as a clause; "": it can
}

// Call is a launch: the arguments of [Device.Launch].
type Call struct {
	Kernel Kernel
	Groups [3]int
	Size   int
	Args   []any
}

// Sequencer is implemented by devices that can queue a sequence of launches at once, which may be cheaper if the device
// had a similar sequence before.
type Sequencer interface{ Sequence(calls []Call) error }

// Sense is the state of a device as its driver reports it; unknown values are below zero.
type Sense struct {
	Taken   int64   // bytes of its memory in use by all processes
	Load    float64 // share of the last sampling period in which it was busy, 0 to 1
	Celsius float64 // temperature in degrees Celsius
}

// Unknown is the Sense of a device whose driver reports nothing.
var Unknown = Sense{-1, -1, -1}

// Sensor is implemented by open devices whose driver reports their state. Sense is safe for concurrent use.
type Sensor interface{ Sense() Sense }

// Watcher is implemented by drivers that report the state of device i of their list without opening it.
type Watcher interface{ Sense(i int) Sense }

// Memory is an allocation of device memory; 0 is none.
type Memory uintptr

// Kernel is a function of a loaded program; 0 is none.
type Kernel uintptr

// Device is memory and one queue, which executes in order. Offsets and sizes are in bytes. An error of queued work may
// be returned by a later call.
type Device interface {
	Info() Info
	// Alloc allocates memory with undefined contents. The error contains the requested size.
	Alloc(bytes int) (Memory, error)
	// Free frees memory once all queued work is done.
	Free(Memory)
	// Write queues a copy of p; p may be reused on return.
	Write(dst Memory, at int, p []byte) error
	// Read waits until all work queued before it is done.
	Read(p []byte, src Memory, at int) error
	// Load compiles a source and adds its kernels to those already loaded. The error contains the compiler's message.
	Load(name, source string) error
	// Kernel returns a loaded kernel.
	Kernel(name string) (Kernel, error)
	// Launch queues groups[0] x groups[1] x groups[2] groups of size work items in one dimension. Arguments are of type
	// Memory, uint32, uint64 and float32.
	Launch(k Kernel, groups [3]int, size int, args ...any) error
	// Finish waits until the queue is empty.
	Finish() error
	// Close frees everything; no method may be called afterwards.
	Close()
}
