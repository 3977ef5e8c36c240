//go:build !nogpu && (linux || windows) && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"os"
	"unsafe"

	"brood/models/gpu"
)

// launched is CUDA_KERNEL_NODE_PARAMS of the headers, version 1.
type launched struct {
	kernel uintptr
	groups [3]uint32
	size   [3]uint32
	_      uint32         // dynamic shared memory in bytes
	each   unsafe.Pointer // addresses of the arguments
	_      unsafe.Pointer // alternative way to pass arguments
}

// graph is a chain of launches, each of which waits for the previous one, with their current arguments. A launch of the
// graph copies the arguments: a later change does not affect queued launches.
type graph struct {
	graph, exec uintptr
	nodes       []uintptr
	args        []string // arguments by node
	used        uint64   // when it was last launched, as the device's count of graph launches
}

// graphs holds the graphs of a device, by the kernels and grids of their launches.
type graphs struct {
	off   bool              // graphs are disabled, or the driver failed at one
	made  map[string]*graph // nil: the sequence was launched once and has no graph yet
	turns uint64
}

// A chain shorter than leastChain is launched without a graph. Above mostGraphs the least recently launched graph is
// destroyed; above mostShapes all are destroyed, so that shapes that do not recur hold no memory.
const (
	leastChain = 4
	mostGraphs = 64
	mostShapes = 1024
)

func (d *device) withGraphs() {
	d.graphs = graphs{off: !hasGraphs || os.Getenv("BROOD_CUDA_GRAPHS") == "0", made: map[string]*graph{}}
}

// Sequence queues consecutive launches. A sequence seen a second time, with the same kernels and grids, becomes a
// graph; from then on one call launches all of it, after one call for each launch whose arguments changed.
func (d *device) Sequence(calls []gpu.Call) error {
	if d.graphs.off || len(calls) < leastChain {
		return d.each(calls)
	}
	var key []byte
	for _, c := range calls {
		key = binary.LittleEndian.AppendUint64(key, uint64(c.Kernel))
		for _, n := range []int{c.Groups[0], c.Groups[1], c.Groups[2], c.Size} {
			key = binary.LittleEndian.AppendUint32(key, uint32(n))
		}
	}
	g, seen := d.graphs.made[string(key)]
	switch {
	case !seen:
		if len(d.graphs.made) >= mostShapes {
			d.dropGraphs()
		}
		d.graphs.made[string(key)] = nil
		return d.each(calls)
	case g == nil:
		var err error
		if g, err = d.chain(calls); err != nil {
			d.graphs.off = true
			return d.each(calls)
		}
		d.keep(string(key), g)
	default:
		if err := d.change(g, calls); err != nil {
			d.graphs.off = true
			return d.each(calls)
		}
	}
	d.graphs.turns++
	g.used = d.graphs.turns
	return d.on(func() int32 { return cuGraphLaunch(g.exec, d.stream) })
}

func (d *device) each(calls []gpu.Call) error {
	for _, c := range calls {
		if err := d.Launch(c.Kernel, c.Groups, c.Size, c.Args...); err != nil {
			return err
		}
	}
	return nil
}

// node returns a call as a graph node takes it, and its arguments as a string for comparison.
func node(c gpu.Call) (*launched, string, error) {
	p, at, err := Parameters(c.Args)
	if err != nil {
		return nil, "", err
	}
	l := &launched{kernel: uintptr(c.Kernel), size: [3]uint32{uint32(c.Size), 1, 1}, each: list(p, at)}
	for i, n := range c.Groups {
		l.groups[i] = uint32(n)
	}
	return l, string(p), nil
}

// list returns the addresses of the arguments.
func list(p []byte, at []int) unsafe.Pointer {
	each := make([]unsafe.Pointer, len(at)+1)
	for i, at := range at {
		each[i] = unsafe.Pointer(&p[at])
	}
	return unsafe.Pointer(&each[0])
}

// chain creates a graph of calls.
func (d *device) chain(calls []gpu.Call) (g *graph, err error) {
	g = &graph{}
	if err := d.on(func() int32 { return cuGraphCreate(&g.graph, 0) }); err != nil {
		return nil, err
	}
	after := new(uintptr)
	for i, c := range calls {
		l, args, err := node(c)
		if err == nil {
			made := new(uintptr)
			err = d.on(func() int32 { return cuGraphAddKernelNode(made, g.graph, after, uintptr(min(i, 1)), l) })
			*after = *made
		}
		if err != nil {
			d.destroy(g)
			return nil, err
		}
		g.nodes, g.args = append(g.nodes, *after), append(g.args, args)
	}
	if err := d.on(func() int32 { return cuGraphInstantiateWithFlags(&g.exec, g.graph, 0) }); err != nil {
		d.destroy(g)
		return nil, err
	}
	return g, nil
}

// change updates the arguments of a graph's launches to the arguments of calls.
func (d *device) change(g *graph, calls []gpu.Call) error {
	for i, c := range calls {
		l, args, err := node(c)
		if err == nil && args != g.args[i] {
			err = d.on(func() int32 { return cuGraphExecKernelNodeSetParams(g.exec, g.nodes[i], l) })
			g.args[i] = args
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keep stores a graph, destroying the least recently launched one if there are too many.
func (d *device) keep(key string, g *graph) {
	n, oldest := 0, ""
	for key, other := range d.graphs.made {
		if other == nil {
			continue
		}
		if n++; oldest == "" || other.used < d.graphs.made[oldest].used {
			oldest = key
		}
	}
	if n >= mostGraphs {
		d.drop(oldest)
	}
	d.graphs.made[key] = g
}

// drop destroys a graph once no launch of it is queued.
func (d *device) drop(key string) {
	if g := d.graphs.made[key]; g != nil {
		d.on(func() int32 { return cuStreamSynchronize(d.stream) })
		d.destroy(g)
	}
	delete(d.graphs.made, key)
}

func (d *device) dropGraphs() {
	for key := range d.graphs.made {
		d.drop(key)
	}
}

func (d *device) destroy(g *graph) {
	d.on(func() int32 {
		if g.exec != 0 {
			cuGraphExecDestroy(g.exec)
		}
		return cuGraphDestroy(g.graph)
	})
}
