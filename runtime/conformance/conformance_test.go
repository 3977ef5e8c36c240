package conformance

import (
	"context"
	"maps"
	"testing"

	"brood/optim/catalog"
	"brood/runtime/event"
)

func mustRun(t *testing.T, r Rig) *Outcome {
	t.Helper()
	o, err := r.Run(context.Background())
	if err != nil {
		t.Fatalf("%s: %v", r.Algorithm, err)
	}
	if o.Exit.Phase != event.Finished {
		t.Fatalf("%s: ended %s: %s", r.Algorithm, o.Exit.Phase, o.Exit.Reason)
	}
	return o
}

func TestSmoke(t *testing.T) {
	for _, a := range catalog.All() {
		r := Rig{Algorithm: a.Name, Members: 8, Workers: 1, Rounds: 12, Seed: 3}
		one := mustRun(t, r)
		r.Workers = 3
		three := mustRun(t, r)
		if one.Hash() != three.Hash() {
			t.Errorf("%s: %s on one worker, %s on three", a.Name, one.Hash(), three.Hash())
		}
		sent, predicted := three.Bytes()
		if !maps.Equal(sent, predicted) {
			t.Errorf("%s: sent %v, predicted %v", a.Name, sent, predicted)
		}
		if _, err := r.Verify(context.Background(), three); err != nil {
			t.Errorf("%s: %v", a.Name, err)
		}
	}
}
