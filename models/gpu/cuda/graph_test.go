//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/gpu"
)

// counts are the numbers of driver calls that queue work.
type counts struct{ alone, whole, changed int32 }

func counted() (c counts) {
	fakeCounts(&c.alone, &c.whole, &c.changed)
	return c
}

func (c counts) since(o counts) counts {
	return counts{c.alone - o.alone, c.whole - o.whole, c.changed - o.changed}
}

// chained is a device with a chain of launches whose result depends on their order: each copies the previous result
// from the start of a piece of memory to its row of results.
type chained struct {
	gpu.Device
	m          gpu.Memory
	fill, move gpu.Kernel
}

// width is the number of elements per row, rows the number of rows of results.
const (
	width = 4
	rows  = 40
)

func chains(t *testing.T) *chained {
	t.Helper()
	d, err := fake(t).Open(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	text, err := gpu.Source("kernels")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Load("kernels", text); err != nil {
		t.Fatal(err)
	}
	c := &chained{Device: d}
	for name, k := range map[string]*gpu.Kernel{"fill": &c.fill, "move": &c.move} {
		if *k, err = d.Kernel(name); err != nil {
			t.Fatal(err)
		}
	}
	if c.m, err = d.Alloc(4 * width * (rows + 2)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Free(c.m) })
	return c
}

// calls fill row 0 with x, copy it to row 1, fill row 0 with 0, copy row 1 to a row of the results, and so on.
func (c *chained) calls(x float32, row, length int) (out []gpu.Call) {
	filled := func(x float32) gpu.Call {
		return gpu.Call{
			Kernel: c.fill,
			Groups: [3]int{1, 1, 1},
			Size:   64,
			Args:   []any{c.m, uint64(0), uint64(width), uint64(width), x},
		}
	}
	moved := func(to, from int) gpu.Call {
		return gpu.Call{
			Kernel: c.move,
			Groups: [3]int{1, 1, 1},
			Size:   64,
			Args:   []any{c.m, uint64(to * width), uint64(width), c.m, uint64(from * width), uint64(width), uint64(width)},
		}
	}
	out = []gpu.Call{filled(x), moved(1, 0), filled(0), moved(2+row, 1)}
	for len(out) < length {
		out = append(out, moved(2+row, 1))
	}
	return out[:length]
}

func (c *chained) results(t *testing.T) []float32 {
	t.Helper()
	p := make([]byte, 4*width*rows)
	if err := c.Read(p, c.m, 4*width*2); err != nil {
		t.Fatal(err)
	}
	v := make([]float32, width*rows)
	engine.ReadFloats(v, p)
	return v
}

// TestSequence: the second of similar sequences becomes a graph, which later ones launch with changed arguments while
// earlier launches are still queued. The results equal the results of separate launches.
func TestSequence(t *testing.T) {
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprintf("off %t", off), func(t *testing.T) { sequences(t, off) })
	}
}

func sequences(t *testing.T, off bool) {
	if off {
		t.Setenv("BROOD_CUDA_GRAPHS", "0")
	}
	c := chains(t)
	s := c.Device.(gpu.Sequencer)
	before, want := counted(), make([]float32, 5*width)
	for i := range 5 {
		if err := s.Sequence(c.calls(float32(i+1), i, 4)); err != nil {
			t.Fatal(err)
		}
		for j := range width {
			want[i*width+j] = float32(i + 1)
		}
	}
	for range 3 { // nothing changes
		if err := s.Sequence(c.calls(5, 4, 4)); err != nil {
			t.Fatal(err)
		}
		if err := s.Sequence(c.calls(9, 30, 3)); err != nil { // too short
			t.Fatal(err)
		}
	}
	if got := c.results(t)[:len(want)]; !slices.Equal(got, want) {
		t.Error(got)
	}
	// The first separately, the second as a graph with its own arguments; then two launches of each sequence have
	// changed arguments.
	should := counts{alone: 4 + 3*3, whole: 4 + 3, changed: 2 * 3}
	if off {
		should = counts{alone: 8*4 + 3*3}
	}
	if got := counted().since(before); got != should {
		t.Errorf("the driver was called %+v, want %+v", got, should)
	}
}

// TestManySequences: if shapes come and go, at most mostGraphs graphs are kept, and none is destroyed while queued.
func TestManySequences(t *testing.T) {
	c := chains(t)
	s := c.Device.(gpu.Sequencer)
	for range 2 {
		for n := range mostGraphs + 9 {
			calls := c.calls(3, 1, 4)
			calls[0].Groups[0] = n + 1 // another shape with the same result
			for range 2 {
				if err := s.Sequence(calls); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	n := 0
	for _, g := range c.Device.(*device).graphs.made {
		if g != nil {
			n++
		}
	}
	if n != mostGraphs {
		t.Errorf("%d graphs are kept", n)
	}
	if got := c.results(t); got[width] != 3 {
		t.Errorf("%v", got[width])
	}
}

// TestWithoutGraphs: after a failed graph call, kernels are launched one by one from then on, with the same results; a
// failed launch of a graph is an error.
func TestWithoutGraphs(t *testing.T) {
	for _, call := range []string{"cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiateWithFlags",
		"cuGraphExecKernelNodeSetParams", "cuGraphLaunch"} {
		t.Run(call, func(t *testing.T) { withoutGraphs(t, call) })
	}
}

func withoutGraphs(t *testing.T, call string) {
	c := chains(t)
	s := c.Device.(gpu.Sequencer)
	var failed error
	for i := range 6 {
		if i == 3 && call == "cuGraphExecKernelNodeSetParams" || i == 1 && call != "cuGraphExecKernelNodeSetParams" {
			c.results(t) // a context loses its queued work
			fakeFail(call, 0, 2)
		}
		err := s.Sequence(c.calls(float32(i+1), i, 5))
		fakeFail("", 0, 0)
		if err != nil {
			failed = err
			break
		}
	}
	if (call == "cuGraphLaunch") != (failed != nil) {
		t.Error(failed)
	}
	if failed != nil {
		return
	}
	for i, x := range c.results(t)[:6*width] {
		if x != float32(i/width+1) {
			t.Errorf("element %d is %g", i, x)
		}
	}
	if !c.Device.(*device).graphs.off {
		t.Error("graphs are tried again")
	}
}
