package remote

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"brood/models/engine"
	"brood/models/graph"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/testutil"
)

// TestServedOwnGraph: two processes that have the graph train it on augmented data to the hash of one process. A worker
// without the graph is refused with the reason.
func TestServedOwnGraph(t *testing.T) {
	own := &host.Own{Graph: graph.Own{Name: "bent", Input: []int{784}, Classes: 10,
		Params: []engine.Tensor{{Name: "w", Shape: []int{8, 784}}, {Name: "v", Shape: []int{10, 8}}},
		Build: func(_ *G.ExprGraph, _ int, x *G.Node, p []*G.Node) (*G.Node, error) {
			return G.Mul(p[1], G.Must(G.Tanh(G.Must(G.Mul(p[0], x)))))
		}}}
	o := small(8)
	o.Own, o.Model, o.Augment = own, "", "pad=2,flip"
	want := localHash(t, o)
	o.Workers = 2
	dir := filepath.Join(t.TempDir(), "run")
	s := serve(t, prepare(t, o), nil, dir, nil)
	var refused *RefusedError
	if err := testutil.Receive(t, s.work(t.Context(), s.config()), "end of the worker"); !errors.As(err, &refused) ||
		!strings.Contains(err.Error(), "a graph that a Go program defines") {
		t.Errorf("a worker without the graph: %v", err)
	}
	var ends []<-chan error
	for range 2 {
		cfg := s.config()
		cfg.Own = own
		ends = append(ends, s.work(t.Context(), cfg))
	}
	exit := s.train()
	for _, end := range ends {
		if err := testutil.Receive(t, end, "end of a worker"); err != nil {
			t.Errorf("a worker ends with %v", err)
		}
	}
	if exit.Phase != event.Finished || s.hash != want {
		t.Errorf("%+v, hash %s, alone %s", exit, s.hash, want)
	}
	if v, err := own.Verify(t.Context(), dir, 1, nil); err != nil || v.Last.Hash != want {
		t.Errorf("verify: %+v, %v", v.Result, err)
	}
}
