package gpu

// Driver finds and opens the devices of one programming interface.
type Driver interface {
	// Name is how a person asks for it: opencl.
	Name() string
	// Devices lists what there is, in an order that stays. A machine without the interface's library has none, and the
	// error says in one sentence why.
	Devices() ([]Info, error)
	// Open readies device i of that list for one goroutine at a time.
	Open(i int) (Device, error)
}

// Info describes a device.
type Info struct {
	Name   string // as a person knows it, e.g. "opencl:0 (NVIDIA H100)"
	Maker  string // what its maker calls it: NVIDIA H100
	Driver string // its version
	Memory int64  // bytes
	Most   int64  // bytes of one piece of memory
	Double bool   // it has float64
	Tensor string // family of its tensor cores, by which their arithmetics are named: cuda8.0; "": it has none
	Refuse string // why the driver does not open it, as a clause; "": it does
}

// Call is what [Device.Launch] takes.
type Call struct {
	Kernel Kernel
	Groups [3]int
	Size   int
	Args   []any
}

// Sequencer is a device that queues launches that follow each other at once, which may be cheaper where it had the like
// before.
type Sequencer interface{ Sequence(calls []Call) error }

// Sense is how a device is now, as its driver tells; below zero is what it does not tell.
type Sense struct {
	Taken   int64   // bytes of its memory, by whomever
	Load    float64 // share of the last moment in which it was busy, 0 to 1
	Celsius float64 // its temperature
}

// Unknown is of a device whose driver tells nothing.
var Unknown = Sense{-1, -1, -1}

// Sensor is an open device whose driver tells how it is. Any goroutine may ask, at any time.
type Sensor interface{ Sense() Sense }

// Watcher is a driver that tells so of device i of its list without opening it.
type Watcher interface{ Sense(i int) Sense }

// Memory is a piece of a device's memory; 0 is none.
type Memory uintptr

// Kernel is a function of a loaded program; 0 is none.
type Kernel uintptr

// Device is memory and one queue. What is queued is done in its order. Places and sizes are in bytes. An error of what
// is queued may come from a later call.
type Device interface {
	Info() Info
	// Alloc is memory whose contents are not defined. The error says what was wanted.
	Alloc(bytes int) (Memory, error)
	// Free gives memory back after all that is queued.
	Free(Memory)
	// Write queues; p is the caller's again on return.
	Write(dst Memory, at int, p []byte) error
	// Read waits for its place in the queue.
	Read(p []byte, src Memory, at int) error
	// Load compiles a source, which adds its kernels to those that there are. The error holds what the compiler said.
	Load(name, source string) error
	// Kernel is a kernel of what was loaded.
	Kernel(name string) (Kernel, error)
	// Launch queues groups[0] x groups[1] x groups[2] groups of size work items in a line. Arguments are Memory,
	// uint32, uint64 and float32.
	Launch(k Kernel, groups [3]int, size int, args ...any) error
	// Finish waits until the queue is empty.
	Finish() error
	// Close gives everything back; no method may be called afterwards.
	Close()
}
