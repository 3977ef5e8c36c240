package conformance

import (
	"context"
	"errors"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/averaging"
	"brood/runtime/event"
	"brood/transport/local"
)

// wrong is data-parallel SGD with a fault at the start of a round.
type wrong struct {
	optim.Program
	fault func(*optim.Env) error
}

func (p wrong) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	if err := p.fault(e); err != nil {
		return optim.Report{}, err
	}
	return p.Program.Round(ctx, e, k, round)
}

// TestFaultyPrograms: the run of an algorithm that fails, panics or computes different copies of a block ends with the
// reason.
func TestFaultyPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		want  string
		fault func(*optim.Env) error
	}{
		"error": {"no such sample", func(*optim.Env) error { return errors.New("no such sample") }},
		"panic": {"panicked at faulty_test.go:", func(e *optim.Env) error { _ = e.Mine[9]; return nil }},
		"panic on a thread": {"panicked at faulty_test.go:", func(e *optim.Env) error {
			return engine.Each(context.Background(), e.Mine, len(e.Mine), func(_ engine.Member, i int) error {
				_ = e.Mine[i+1]
				return nil
			})
		}},
		"copies": {"differ in block x", func(e *optim.Env) error {
			x := e.Block(optim.BlockX)
			return e.Engine.Do(context.Background(), optim.Update(1, optim.Assign(x, optim.T(float32(e.Self), x))))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			alg := *averaging.DPSGD
			alg.Program = wrong{alg.Program, c.fault}
			r := quick(Rig{Algorithm: alg.Name, Members: 4, Workers: 2, Rounds: 3, Seed: 3})
			r.Lookup = func(string) (*optim.Algorithm, error) { return &alg, nil }
			o, err := r.Run(t.Context())
			if err == nil && o.Exit.Phase == event.Failed {
				err = errors.New(o.Exit.Reason)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestStalledWithoutReason: a run in which no worker waits and none was lost ends with a sentence too.
func TestStalledWithoutReason(t *testing.T) {
	err := Rig{Workers: 2}.stalled(&local.Hub{}, &Outcome{Log: &Log{}})
	if want := "nothing happened for 20s: a round of the algorithm does not end"; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
