package host

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	G "gorgonia.org/gorgonia"

	"brood/models/engine"
	"brood/models/graph"
	"brood/models/noise"
	"brood/runtime/checkpoint"
	"brood/runtime/event"
)

// bent returns a small graph that cannot be written as a list of layers: the hyperbolic tangent of a dense layer, then
// another dense layer.
func bent() *Own {
	return &Own{Graph: graph.Own{Name: "bent", Input: []int{784}, Classes: 10,
		Params: []engine.Tensor{{Name: "w", Shape: []int{8, 784}}, {Name: "v", Shape: []int{10, 8}}},
		Build: func(_ *G.ExprGraph, _ int, x *G.Node, p []*G.Node) (*G.Node, error) {
			return G.Mul(p[1], G.Must(G.Tanh(G.Must(G.Mul(p[0], x)))))
		}}}
}

func ownOptions(alg string, workers, threads int, rounds uint64) Options {
	o := tiny(rounds)
	o.Own, o.Model, o.Algorithm, o.Workers, o.Threads = bent(), "", alg, workers, threads
	if alg != "parle" {
		o.Set = o.Set[1:]
	}
	return o
}

// TestOwnBits: the bits of a run with an own graph do not depend on workers and threads, and the session verifies.
func TestOwnBits(t *testing.T) {
	for _, alg := range []string{"parle", "openai-es"} {
		home, want, last := t.TempDir(), "", ""
		for _, c := range []struct{ workers, threads int }{{1, 1}, {2, 4}} {
			dir := filepath.Join(home, string(rune('a'+c.workers))+string(rune('a'+c.threads)))
			got := train(t, dir, prepare(t, ownOptions(alg, c.workers, c.threads, 3)), nil, nil)
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("%s with %d workers and %d threads: %s, want %s", alg, c.workers, c.threads, got, want)
			}
			last = dir
		}
		v, err := bent().Verify(t.Context(), last, 1, nil)
		if err != nil || v.Rounds != 3 || v.Last.Hash != want {
			t.Errorf("verify %s: %+v, %v", alg, v.Result, err)
		}
	}
}

// TestOwnResumes: a session of an own graph resumes, forks and verifies with its graph only.
func TestOwnResumes(t *testing.T) {
	const whole = 40 // many more than are in progress when the interrupt arrives
	ctx, home := context.Background(), t.TempDir()
	want := train(t, filepath.Join(home, "whole"), prepare(t, ownOptions("parle", 2, 2, whole)), nil, nil)
	dir := filepath.Join(home, "half")
	train(t, dir, prepare(t, ownOptions("parle", 2, 2, whole)), nil, stopAt(4))
	h, err := read(dir, 0)
	if err != nil || h.last.To == whole {
		t.Fatalf("stopped at %+v, %v", h.last, err)
	}
	for want, own := range map[string]*Own{
		"a graph that a Go program defines": nil,
		`"parameter w [8 784]" where`:       changed(func(o *Own) { o.Graph.Params[0].Shape, o.Graph.Params[1].Shape = []int{9, 784}, []int{10, 9} }),
		`"graph bent" where this one`:       changed(func(o *Own) { o.Graph.Name = "straight" }),
		`"operators `: changed(func(o *Own) {
			o.Graph.Build = func(_ *G.ExprGraph, _ int, x *G.Node, p []*G.Node) (*G.Node, error) {
				return G.Mul(p[1], G.Must(G.Square(G.Must(G.Mul(p[0], x)))))
			}
		}),
		`"start `: changed(func(o *Own) { o.Init = func(_ noise.Key, _ engine.Tensor, dst []float32) { clear(dst) } }),
	} {
		_, err1 := own.Restore(ctx, dir, 0, nil, 1, nil)
		_, err2 := own.Restore(ctx, dir, 2, &checkpoint.Files{Dir: filepath.Join(home, "none")}, 1, nil)
		_, err3 := own.Verify(ctx, dir, 1, nil)
		for _, err := range []error{err1, err2, err3} {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want one sentence with %s", err, want)
			}
		}
	}
	from, err := bent().Restore(ctx, dir, 0, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Continue(Options{Workers: 1, Threads: 1, Limit: event.Limit{Rounds: whole}}); err != nil {
		t.Fatal(err)
	}
	if got := train(t, dir, from.Job, from, nil); got != want {
		t.Errorf("resumed: %s, uninterrupted %s", got, want)
	}
	branch := filepath.Join(home, "branch")
	if from, err = bent().Restore(ctx, dir, 3, &checkpoint.Files{Dir: branch}, 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := from.Fork("half", Options{Threads: 1, Limit: event.Limit{Rounds: whole}}); err != nil {
		t.Fatal(err)
	}
	if got := train(t, branch, from.Job, from, nil); got != want {
		t.Errorf("a fork without an edit: %s, its parent %s", got, want)
	}
	for d, rounds := range map[string]uint64{dir: whole, branch: whole - 3} {
		if v, err := bent().Verify(ctx, d, 1, nil); err != nil || v.Rounds != rounds || v.Last.Hash != want {
			t.Errorf("verify %s: %+v, %v", d, v.Result, err)
		}
	}
	layers := filepath.Join(home, "layers")
	train(t, layers, prepare(t, tiny(2)), nil, nil)
	if _, err := bent().Verify(ctx, layers, 1, nil); err == nil ||
		!strings.Contains(err.Error(), "trains softmax, a list of layers, and not the graph bent") {
		t.Errorf("a session of layers: %v", err)
	}
}

func changed(f func(o *Own)) *Own {
	o := bent()
	f(o)
	return o
}

// TestOwnStarts: another run can start from a model file with the graph's parameter names, and Init is called for each
// tensor.
func TestOwnStarts(t *testing.T) {
	var seen []string
	o := ownOptions("dp-sgd", 1, 1, 1)
	o.Own = changed(func(o *Own) {
		o.Init = func(key noise.Key, t engine.Tensor, dst []float32) {
			if len(dst) != t.Len || key.Purpose != noise.Init {
				panic("another tensor's place")
			}
			seen = append(seen, t.Name)
			for i := range dst {
				dst[i] = 0.1*key.Uniform(i) - 0.05
			}
		}
	})
	j := prepare(t, o)
	if len(seen) < 2 || !slices.Equal(seen[:2], []string{"w", "v"}) {
		t.Errorf("initialised %q", seen)
	}
	x := make([]float32, j.Net.Layout.Params)
	j.init(t.Context(), 0, x)
	path := filepath.Join(t.TempDir(), "start.safetensors")
	saveModel(t, path, j.Net, x)
	home := t.TempDir()
	want := train(t, filepath.Join(home, "a"), j, nil, nil)
	o.Own, o.Init = bent(), path
	dir := filepath.Join(home, "b")
	if got := train(t, dir, prepare(t, o), nil, nil); got != want {
		t.Errorf("from the file %s, from Init %s", got, want)
	}
	if v, err := bent().Verify(t.Context(), dir, 1, nil); err != nil || v.Last.Hash != want {
		t.Errorf("verify: %+v, %v", v.Result, err)
	}
}

// TestOwnRefused: options and graphs that cannot train are rejected before the run starts.
func TestOwnRefused(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"omit model mlp":  func(o *Options) { o.Model = "mlp" },
		"trains no model": func(o *Options) { o.Algorithm, o.Set = "leader", nil },
		"takes samples of [783]": func(o *Options) {
			o.Own.(*Own).Graph.Input, o.Own.(*Own).Graph.Params[0].Shape = []int{783}, []int{8, 783}
		},
		"give it a finite value": func(o *Options) {
			o.Own.(*Own).Init = func(_ noise.Key, _ engine.Tensor, dst []float32) { dst[0] /= dst[1] }
		},
		"want 9 classes x":      func(o *Options) { o.Own.(*Own).Graph.Classes = 9 },
		"needs Build":           func(o *Options) { o.Own.(*Own).Graph.Build = nil },
		"graph of bent, loss: ": func(o *Options) { o.Own.(*Own).Graph.Build = cut },
	} {
		o := ownOptions("dp-sgd", 1, 1, 1)
		change(&o)
		if _, err := Prepare(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one sentence with %s", err, want)
		}
	}
	t.Setenv("BROOD_ENGINE", "native")
	if _, err := Prepare(ownOptions("dp-sgd", 1, 1, 1)); err == nil ||
		!strings.Contains(err.Error(), "omit BROOD_ENGINE=native") {
		t.Errorf("the native engine: %v", err)
	}
}

// cut builds a model whose logits do not depend on its last parameter.
func cut(_ *G.ExprGraph, _ int, x *G.Node, p []*G.Node) (*G.Node, error) {
	return G.Slice(G.Must(G.Mul(G.Must(G.Concat(0, p[0], p[0])), x)), G.S(0, 10))
}

// TestOldLog: a log from before v0.1, whose version has another key, is rejected.
func TestOldLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	train(t, dir, prepare(t, tiny(1)), nil, nil)
	h, err := read(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := cbor.Marshal(map[int]any{0: 5, 2: h.config.Model, 4: h.config.Data})
	if err != nil {
		t.Fatal(err)
	}
	var old event.Config
	if err := cbor.Unmarshal(p, &old); err != nil {
		t.Fatal(err)
	}
	if _, err := FromSession(dir, old); err == nil ||
		!strings.Contains(err.Error(), "has version 0, and this brood reads version 1") {
		t.Error(err)
	}
}
