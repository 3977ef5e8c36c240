package graph

import (
	"context"
	"fmt"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
)

// perceptron returns mlp-small written as a graph.
func perceptron() Own {
	return Own{Name: "perceptron", Input: []int{784}, Classes: 10,
		Params: []engine.Tensor{{Name: "w1", Shape: []int{64, 784}}, {Name: "b1", Shape: []int{64, 1}},
			{Name: "w2", Shape: []int{10, 64}}, {Name: "b2", Shape: []int{10, 1}}},
		Build: func(_ *G.ExprGraph, _ int, input *G.Node, p []*G.Node) (*G.Node, error) {
			hidden, err := G.BroadcastAdd(G.Must(G.Mul(p[0], input)), p[1], nil, []byte{1})
			if err != nil {
				return nil, err
			}
			return G.BroadcastAdd(G.Must(G.Mul(p[2], G.Must(G.Rectify(hidden)))), p[3], nil, []byte{1})
		}}
}

// TestOwnGraph: a graph equal to a layer list computes the same bits, for every task.
func TestOwnGraph(t *testing.T) {
	set, err := data.Glyphs(80, 20)
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.FromSource("list", []byte(`
name = "list"
input = [784]
classes = 10
layer = [{kind = "dense", out = 64}, {kind = "relu"}, {kind = "dense", out = 10}]`))
	if err != nil {
		t.Fatal(err)
	}
	list, err := New(m, set, 2)
	if err != nil {
		t.Fatal(err)
	}
	own, err := NewOwn(perceptron(), set, 2)
	if err != nil {
		t.Fatal(err)
	}
	if own.Model().Layout.Params != m.Layout.Params {
		t.Fatalf("%d parameters, want %d", own.Model().Layout.Params, m.Layout.Params)
	}
	x := ram.New(2, m.Layout.Params)
	for i := range 2 {
		if err := m.Init(1, engine.Member(i), row(x, engine.Row(i))); err != nil {
			t.Fatal(err)
		}
	}
	var got [2]string
	for i, e := range []*Engine{list, own} {
		g := engine.Gradients{
			X:       x,
			Rows:    engine.Rows(2),
			Batches: [][]int32{set.Train()[:9], set.Train()[9:16]},
			G:       ram.New(2, x.Cols),
			Loss:    make([]float32, 2),
		}
		ev := engine.Evaluate{
			X:       x,
			Rows:    engine.Rows(2),
			Batches: g.Batches,
			Loss:    make([]float64, 2),
			Correct: make([]int64, 2),
		}
		c := engine.Candidates{
			Theta:   x.Sub(0, 1),
			Sigma:   0.1,
			Key:     noise.Key{Seed: 1, Purpose: noise.Candidate},
			IDs:     []engine.Member{3, 4},
			Batches: g.Batches[:1],
			Fitness: make([]float32, 2),
		}
		if err := e.Do(context.Background(), g, ev, c); err != nil {
			t.Fatal(err)
		}
		got[i] = fmt.Sprint(g.Loss, ev.Loss, ev.Correct, c.Fitness, flat(g.G)[:3000:3000], flat(g.G)[len(flat(g.G))-700:])
	}
	if got[0] != got[1] {
		t.Error("the graph and the list of layers differ")
	}
}

// TestOwnGraphRefuses: an invalid graph gives an error before anything runs.
func TestOwnGraphRefuses(t *testing.T) {
	set, err := data.Glyphs(20, 0)
	if err != nil {
		t.Fatal(err)
	}
	for wantErr, change := range map[string]func(*Own){
		"needs Build":                  func(o *Own) { o.Build = nil },
		"tensor \"\" of shape":         func(o *Own) { o.Params[1].Name = "" },
		"two tensors are named \"w1\"": func(o *Own) { o.Params[1].Name = "w1" },
		"give it a name":               func(o *Own) { o.Params = nil },
		"or more":                      func(o *Own) { o.Classes = 1 },
		"takes samples of [783]":       func(o *Own) { o.Input = []int{783} },
		"want 11 classes x 1 samples":  func(o *Own) { o.Classes = 11 },
		"are nothing": func(o *Own) {
			o.Build = func(*G.ExprGraph, int, *G.Node, []*G.Node) (*G.Node, error) { return nil, nil }
		},
		"perceptron": func(o *Own) {
			o.Build = func(_ *G.ExprGraph, _ int, in *G.Node, p []*G.Node) (*G.Node, error) {
				return G.Must(G.Mul(in, p[0])), nil
			}
		},
	} {
		o := perceptron()
		change(&o)
		if _, err := NewOwn(o, set, 1); err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%v, want %q", err, wantErr)
		}
	}
}

// A user-defined convolution, trained by gradient descent, with images as input.
func ExampleNewOwn() {
	set, err := data.Glyphs(200, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := NewOwn(Own{Name: "edges", Input: []int{1, 28, 28}, Classes: 10,
		Params: []engine.Tensor{{Name: "filters", Shape: []int{4, 1, 5, 5}}, {Name: "w", Shape: []int{10, 4 * 12 * 12}}},
		Build: func(_ *G.ExprGraph, samples int, x *G.Node, p []*G.Node) (*G.Node, error) {
			y := G.Must(G.Conv2d(x, p[0], tensor.Shape{5, 5}, []int{0, 0}, []int{2, 2}, []int{1, 1}))
			flat := G.Must(G.Reshape(G.Must(G.Rectify(y)), tensor.Shape{samples, 4 * 12 * 12}))
			return G.Mul(p[1], G.Must(G.Transpose(flat, 1, 0)))
		}}, set, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	x, g, loss := ram.New(1, e.Model().Layout.Params), ram.New(1, e.Model().Layout.Params), make([]float32, 1)
	start := ram.View(x).F // this engine's matrices are in host memory
	noise.Key{Seed: 1, Purpose: noise.Init}.Each(0, len(start), len(start), func(at int, eps []float32) {
		for i, v := range eps {
			start[at+i] = 0.05 * v
		}
	})
	gradients := engine.Gradients{X: x, Rows: engine.Rows(1), Batches: [][]int32{set.Train()[:60]}, G: g, Loss: loss}
	step := engine.Update{Rows: engine.Rows(1),
		Prog: []engine.Lin{{Dst: x, Terms: []engine.Term{{C: 1, Src: x}, {C: -0.03, Src: g}}}}}
	var first float32
	for i := range 60 {
		if err := e.Do(context.Background(), gradients, step); err != nil {
			fmt.Println(err)
			return
		}
		if i == 0 {
			first = loss[0]
		}
	}
	fmt.Println("the loss fell:", loss[0] < 0.8*first)
	// Output: the loss fell: true
}

// TestOwnText: graphs have the same text if and only if they compute the same.
func TestOwnText(t *testing.T) {
	base := perceptron()
	want, err := base.Text()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := base.Text(); err != nil || again != want {
		t.Errorf("the same graph again: %v\n%s", err, again)
	}
	// between replaces the part between the layers
	between := func(f func(*G.Node) (*G.Node, error)) func(*Own) {
		return func(o *Own) {
			o.Build = func(_ *G.ExprGraph, _ int, input *G.Node, p []*G.Node) (*G.Node, error) {
				hidden := G.Must(G.BroadcastAdd(G.Must(G.Mul(p[0], input)), p[1], nil, []byte{1}))
				return G.BroadcastAdd(G.Must(G.Mul(p[2], G.Must(f(hidden)))), p[3], nil, []byte{1})
			}
		}
	}
	seen := map[string]string{want: "itself"}
	for name, change := range map[string]func(*Own){
		"name":     func(o *Own) { o.Name = "other" },
		"tensor":   func(o *Own) { o.Params[0].Name = "v1" },
		"classes":  func(o *Own) { o.Classes = 9; o.Params[2].Shape, o.Params[3].Shape = []int{9, 64}, []int{9, 1} },
		"operator": between(G.Tanh),
		"constant": between(func(n *G.Node) (*G.Node, error) { return G.LeakyRelu(n, 0.1) }),
		"value":    between(func(n *G.Node) (*G.Node, error) { return G.LeakyRelu(n, 0.2) }),
		"wiring": func(o *Own) {
			o.Params[0].Shape, o.Params[1].Shape = []int{64, 784}, []int{64, 1}
			o.Build = func(_ *G.ExprGraph, _ int, input *G.Node, p []*G.Node) (*G.Node, error) {
				hidden := G.Must(G.Rectify(G.Must(G.BroadcastAdd(G.Must(G.Mul(p[0], input)), p[1], nil, []byte{1}))))
				return G.BroadcastAdd(G.Must(G.Mul(p[2], G.Must(G.BroadcastAdd(hidden, p[1], nil, []byte{1})))), p[3], nil,
					[]byte{1})
			}
		},
	} {
		o := perceptron()
		change(&o)
		text, err := o.Text()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if other, ok := seen[text]; ok {
			t.Errorf("%s has the text of %s", name, other)
		}
		seen[text] = name
	}
	same := perceptron()
	between(G.Rectify)(&same)
	if text, err := same.Text(); err != nil || text != want {
		t.Errorf("built by other lines: %v\n%s", err, text)
	}
}

// TestOwnGraphText: graphs with different constants have different texts, and operators that cannot be repeated are
// refused.
func TestOwnGraphText(t *testing.T) {
	with := func(change func(x *G.Node) (*G.Node, error)) (string, error) {
		o := perceptron()
		build := o.Build
		o.Build = func(g *G.ExprGraph, n int, input *G.Node, p []*G.Node) (*G.Node, error) {
			x, err := build(g, n, input, p)
			if err != nil {
				return nil, err
			}
			return change(x)
		}
		return o.Text()
	}
	scaled := func(at int, by float32) func(x *G.Node) (*G.Node, error) {
		return func(x *G.Node) (*G.Node, error) {
			by20 := make([]float32, x.Shape().TotalSize())
			by20[at] = by
			return G.Add(x, G.NewConstant(tensor.New(tensor.WithShape(x.Shape()...), tensor.WithBacking(by20)), G.WithName("c")))
		}
	}
	a, err := with(scaled(11, 1))
	if err != nil {
		t.Fatal(err)
	}
	again, _ := with(scaled(11, 1))
	b, _ := with(scaled(11, 2))
	if a != again || a == b {
		t.Errorf("texts of constants: equal ones %t, different ones %t", a == again, a == b)
	}
	noise := func(x *G.Node) (*G.Node, error) {
		return G.Add(x, G.GaussianRandomNode(x.Graph(), tensor.Float32, 0, 1, x.Shape()...))
	}
	for name, change := range map[string]func(x *G.Node) (*G.Node, error){"dropout": func(x *G.Node) (*G.Node, error) {
		return G.Dropout(x, 0.5)
	}, "noise": noise} {
		if _, err := with(change); err == nil || !strings.Contains(err.Error(), "draws random numbers") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
