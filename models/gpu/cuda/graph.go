//go:build !nogpu && (linux || windows) && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"os"
	"unsafe"

	"brood/models/gpu"
)

// launched is CUDA_KERNEL_NODE_PARAMS of the headers, in its first version.
type launched struct {
	kernel uintptr
	groups [3]uint32
	size   [3]uint32
	_      uint32         // bytes of shared memory besides the kernel's own
	each   unsafe.Pointer // a list of where each argument lies
	_      unsafe.Pointer // another way to hand arguments over
}

// graph is a chain of launches, each of which waits for the one before it, and the arguments that they have at present.
// A launch of it takes them as they are then: a change touches none that is queued.
type graph struct {
	graph, exec uintptr
	nodes       []uintptr
	args        []string // by node
	used        uint64   // when it was launched last, in launches of graphs
}

// graphs are the chains of a device, by the kernels and groups of their launches.
type graphs struct {
	off   bool              // nobody wants any, or the driver failed at one
	made  map[string]*graph // nil: it was launched once, and has no graph yet
	turns uint64
}

// A chain shorter than leastChain is not worth a graph. Of more than mostGraphs the one that was launched longest ago
// goes; after mostShapes all are forgotten, so that shapes that never come again hold no memory.
const (
	leastChain = 4
	mostGraphs = 64
	mostShapes = 1024
)

func (d *device) withGraphs() {
	d.graphs = graphs{off: !hasGraphs || os.Getenv("BROOD_CUDA_GRAPHS") == "0", made: map[string]*graph{}}
}

// Sequence queues launches that follow each other. Those that come a second time, of the same kernels in the same
// groups, become a graph; from then on one call launches all, after one for each launch whose arguments changed.
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

// node is a call as graphs have it, and its arguments to compare with others.
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

// list is where each argument lies.
func list(p []byte, at []int) unsafe.Pointer {
	each := make([]unsafe.Pointer, len(at)+1)
	for i, at := range at {
		each[i] = unsafe.Pointer(&p[at])
	}
	return unsafe.Pointer(&each[0])
}

// chain makes a graph of calls.
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

// change has the launches of a graph take the arguments of calls.
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

// keep has a place for one graph more.
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

// drop forgets a graph, once nothing of it is queued any more.
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
