package host_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"brood/models/engine"
	"brood/models/graph"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

// edges is a small convolutional net, written as a gorgonia graph.
var edges = &host.Own{Graph: graph.Own{
	Name: "edges", Input: []int{1, 28, 28}, Classes: 10,
	Params: []engine.Tensor{
		{Name: "filters", Shape: []int{4, 1, 4, 4}},
		{Name: "weight", Shape: []int{10, 4 * 7 * 7}},
		{Name: "bias", Shape: []int{10, 1}},
	},
	Build: func(_ *G.ExprGraph, samples int, x *G.Node, p []*G.Node) (*G.Node, error) {
		y, err := G.Conv2d(x, p[0], tensor.Shape{4, 4}, []int{0, 0}, []int{4, 4}, []int{1, 1})
		if err != nil {
			return nil, err
		}
		if y, err = G.Tanh(y); err != nil {
			return nil, err
		}
		if y, err = G.Reshape(y, tensor.Shape{samples, 4 * 7 * 7}); err != nil {
			return nil, err
		}
		if y, err = G.Transpose(y, 1, 0); err != nil { // logits are classes x samples
			return nil, err
		}
		if y, err = G.Mul(p[1], y); err != nil {
			return nil, err
		}
		return G.BroadcastAdd(y, p[2], nil, []byte{1})
	},
}}

// train runs an algorithm for the given number of rounds and records the session in dir. It returns the first and the
// last loss of the centre on validation samples, and the hash of the last state.
func train(ctx context.Context, dir, algorithm string, members int, rounds uint64,
	knobs ...event.Setting) (first, last float64, hash string, err error) {
	job, err := host.Prepare(host.Options{Own: edges, Data: "glyphs", Algorithm: algorithm, Members: members, Seed: 1,
		Limit: event.Limit{Rounds: rounds}, Set: knobs, Probe: rounds / 2, Evaluate: event.NoTest})
	if err != nil {
		return 0, 0, "", err
	}
	s, err := session.Create(dir)
	if err != nil {
		return 0, 0, "", err
	}
	run, err := host.Start(job, s, nil, func(rec event.Record) {
		switch {
		case rec.Points != nil && rec.Points.Series == "centre.loss":
			last = rec.Points.Values[0]
			if first == 0 {
				first = last
			}
		case rec.Commit != nil:
			hash = rec.Commit.Hash
		}
	})
	if err != nil {
		return 0, 0, "", err
	}
	if _, err = run.Train(ctx); err != nil {
		return 0, 0, "", err
	}
	return first, last, hash, run.Close()
}

// Any algorithm can train a graph of a Go program, and its sessions verify to the same bits.
func Example_ownGraph() {
	ctx := context.Background()
	home, err := os.MkdirTemp("", "edges-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(home)
	for _, run := range []struct {
		algorithm string
		members   int
		rounds    uint64
		knobs     []event.Setting
	}{
		{"parle", 2, 2, []event.Setting{{Knob: "batch", Expr: "32"}, {Knob: "ell", Expr: "2"}}},
		{"openai-es", 8, 2, []event.Setting{{Knob: "batch", Expr: "16"}}},
	} {
		dir := filepath.Join(home, run.algorithm)
		first, last, hash, err := train(ctx, dir, run.algorithm, run.members, run.rounds, run.knobs...)
		if err != nil {
			log.Fatal(err)
		}
		again, err := edges.Verify(ctx, dir, 0, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: the loss fell: %t, verified: %t\n", run.algorithm, last < first, again.Last.Hash == hash)
	}
	// Output:
	// parle: the loss fell: true, verified: true
	// openai-es: the loss fell: true, verified: true
}
