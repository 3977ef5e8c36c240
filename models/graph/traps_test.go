package graph

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Bugs of gorgonia v0.9.18 that this package works around. A test here fails when an upgrade fixes the bug, so that the
// workaround can be removed.

// sweep returns a float64 tensor node of the shape with different values.
func sweep(g *G.ExprGraph, name string, shape ...int) (*G.Node, []float64) {
	v := make([]float64, tensor.Shape(shape).TotalSize())
	for i := range v {
		v[i] = math.Sin(float64(3*i + len(name)))
	}
	n := G.NewTensor(g, G.Float64, len(shape), G.WithShape(shape...), G.WithName(name),
		G.WithValue(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(v))))
	return n, v
}

// values runs the graph and returns the values of the nodes; a panic or an error counts as a wrong result.
func values(g *G.ExprGraph, nodes ...*G.Node) (out [][]float64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	read := make([]G.Value, len(nodes))
	for i, n := range nodes {
		G.Read(n, &read[i])
	}
	vm := G.NewTapeMachine(g)
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		return nil, err
	}
	for _, v := range read {
		d, ok := v.Data().([]float64)
		if !ok {
			d = []float64{v.Data().(float64)}
		}
		out = append(out, d)
	}
	return out, nil
}

// wrong fails if got equals want: the bug is fixed.
func wrong(t *testing.T, got [][]float64, err error, want []float64) {
	t.Helper()
	if err != nil {
		t.Log(err)
		return
	}
	if len(got[0]) != len(want) {
		return
	}
	for i := range want {
		if math.Abs(got[0][i]-want[i]) > 1e-9 {
			return
		}
	}
	t.Error("gorgonia is right now: the detour around this fault may go")
}

func TestTrapMeanOverInnerAxes(t *testing.T) {
	for _, axes := range [][]int{{2}, {2, 3}} {
		g := G.NewGraph()
		x, v := sweep(g, "x", 2, 3, 4, 5)
		m, err := G.Mean(x, axes...)
		if err != nil {
			t.Logf("axes %v: %v", axes, err)
			continue
		}
		want := make([]float64, 2*3)
		per := 4 * 5
		if len(axes) == 1 {
			want = make([]float64, 2*3*5)
			per = 4
		}
		for i, u := range v {
			at := i / 20
			if len(axes) == 1 {
				at = i/20*5 + i%5
			}
			want[at] += u / float64(per)
		}
		got, err := values(g, m)
		wrong(t, got, err, want)
	}
}

func TestTrapAveragePool(t *testing.T) {
	g := G.NewGraph()
	x, v := sweep(g, "x", 2, 3, 6, 6)
	y, err := G.AveragePool2D(x, tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float64, 2*3*3*3)
	for i, u := range v {
		want[i/36*9+i/6%6/2*3+i%6/2] += u / 4
	}
	got, err := values(g, y)
	wrong(t, got, err, want)
}

// TestTrapBroadcastGradient: the gradient of a shift per channel of 1 x channels x n x 1 is summed over axis 2 only,
// which is wrong. Flat batch-norm therefore uses samples x features, and a convolution's bias names all three axes.
func TestTrapBroadcastGradient(t *testing.T) {
	g := G.NewGraph()
	x, _ := sweep(g, "x", 1, 3, 4, 1)
	w, u := sweep(g, "weight", 1, 3, 4, 1)
	shift, _ := sweep(g, "shift", 1, 3, 1, 1)
	y, err := G.Auto(G.BroadcastAdd, x, shift)
	if err != nil {
		t.Fatal(err)
	}
	grads, err := G.Grad(G.Must(G.Sum(G.Must(G.HadamardProd(y, w)))), shift)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float64, 3)
	for i, u := range u {
		want[i/4] += u
	}
	got, err := values(g, grads[0])
	wrong(t, got, err, want)
}

// TestTrapInverseSqrt: the gradient of InverseSqrt divides by the cube of its result instead of multiplying by it.
func TestTrapInverseSqrt(t *testing.T) {
	g := G.NewGraph()
	v := []float64{0.25, 4, 9}
	x := G.NewVector(g, G.Float64, G.WithShape(3), G.WithName("x"),
		G.WithValue(tensor.New(tensor.WithShape(3), tensor.WithBacking(v))))
	grads, err := G.Grad(G.Must(G.Sum(G.Must(G.InverseSqrt(x)))), x)
	if err != nil {
		t.Fatal(err)
	}
	got, err := values(g, grads[0])
	wrong(t, got, err, []float64{-4, -1. / 16, -1. / 54})
}

// TestTrapSoftMaxHash: SoftMax and LogSoftMax of one node have the same hash, so the second becomes the first. The loss
// graph has only one of them.
func TestTrapSoftMaxHash(t *testing.T) {
	g := G.NewGraph()
	x, v := sweep(g, "x", 1, 4)
	p := G.Must(G.SoftMax(x, 1))
	l := G.Must(G.LogSoftMax(x, 1))
	var sum float64
	for _, u := range v {
		sum += math.Exp(u)
	}
	want := make([]float64, len(v))
	for i, u := range v {
		want[i] = u - math.Log(sum)
	}
	got, err := values(g, l, p)
	wrong(t, got, err, want)
}

// TestTrapSoftMaxMaximum: over the last axis, the maximum that prevents exp from overflowing starts with the first
// element of the whole tensor instead of the row: a row whose first class leads overflows.
func TestTrapSoftMaxMaximum(t *testing.T) {
	g := G.NewGraph()
	x := G.NewMatrix(g, G.Float64, G.WithShape(2, 2), G.WithName("x"),
		G.WithValue(tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float64{0, 0, 800, 0}))))
	got, err := values(g, G.Must(G.LogSoftMax(x, 1)))
	wrong(t, got, err, []float64{-math.Ln2, -math.Ln2, 0, -800})
}
