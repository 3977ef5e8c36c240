package host_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models/longtest"
	"brood/models/noise"
	"brood/models/objective"
	"brood/optim"
	"brood/runtime/evaluate"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/session"
)

// maximise runs an objective, records it in dir, and returns its last centre and the hash of the last commit.
func maximise(ctx context.Context, own *host.Own, dir string, o host.Options) (*evaluate.Model, string, error) {
	o.Own = own
	job, err := host.Prepare(o)
	if err != nil {
		return nil, "", err
	}
	s, err := session.Create(dir)
	if err != nil {
		return nil, "", err
	}
	hash := ""
	run, err := host.Start(job, s, nil, func(rec event.Record) {
		if rec.Commit != nil {
			hash = rec.Commit.Hash
		}
	})
	if err != nil {
		return nil, "", err
	}
	_, err = run.Train(ctx)
	if err = errors.Join(err, run.Close()); err != nil {
		return nil, "", err
	}
	t, err := evaluate.Export(ctx, own, dir, 0, 1, func(event.Commit) {})
	return t, hash, err
}

// A Go function of parameters and a seed can be an objective.
func ExampleOwn_objective() {
	own := &host.Own{Objective: &objective.Objective{
		Spec: objective.Spec{Name: "sphere", Params: []objective.Param{{Name: "x", Shape: []int{10}, Init: objective.Normal}}},
		Func: func(x []float32, _ uint64) (fitness float64, err error) {
			for _, v := range x {
				fitness -= float64(v) * float64(v)
			}
			return fitness, nil
		},
	}}
	dir, err := os.MkdirTemp("", "sphere-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	best, hash, err := maximise(ctx, own, filepath.Join(dir, "s"), host.Options{Algorithm: "snes", Members: 12, Seed: 1,
		Limit: event.Limit{Rounds: 300}, Set: []event.Setting{{Knob: "sigma", Expr: "0.5"}}})
	if err != nil {
		log.Fatal(err)
	}
	again, err := own.Verify(ctx, filepath.Join(dir, "s"), 0, nil)
	if err != nil {
		log.Fatal(err)
	}
	fitness, _ := own.Objective.Func(best.Params, 0)
	fmt.Printf("found: %t, verified: %t\n", fitness > -1e-6, again.Last.Hash == hash)
	// Output: found: true, verified: true
}

// naiveES is openai-es with plain SGD and raw fitness on a function of parameters and seed, written from the equations:
// candidates theta +- sigma*eps, g = 1/(P*sigma) * sum_k (F(2k)-F(2k+1)) eps_k, theta += eta*g.
func naiveES(f objective.Func, seed uint64, n, members, rounds int, sigma, eta float32, seeds []int32) []float32 {
	theta := make([]float32, n)
	for round := range rounds {
		sum := make([]float32, n)
		for k := range members / 2 {
			eps := make([]float32, n)
			noise.Key{
				Seed:    seed,
				Purpose: noise.Candidate,
				Round:   uint64(round),
				Member:  uint32(k),
			}.Each(0, n, n, func(at int, v []float32) { copy(eps[at:], v) })
			var fit [2]float32
			for side, s := range []float32{sigma, -sigma} {
				x := make([]float32, n)
				for i := range x {
					x[i] = theta[i] + float32(s*eps[i])
				}
				y, _ := f(x, uint64(seeds[round]))
				fit[side] = float32(y)
			}
			w := fit[0] - fit[1]
			for i := range sum {
				sum[i] += float32(w * eps[i])
			}
		}
		by := -1 / float32(float32(members)*sigma)
		for i := range theta {
			theta[i] += float32(-eta * float32(by*sum[i]))
		}
	}
	return theta
}

// A run on an objective has the bits of naiveES.
func TestObjectiveAgainstNaive(t *testing.T) {
	f := func(x []float32, seed uint64) (y float64, err error) {
		for i, v := range x {
			d := float64(v) - math.Sin(float64(i)+float64(seed))/4
			y -= d * d
		}
		return y, nil
	}
	const n, members, rounds = 37, 8, 20
	own := &host.Own{Objective: &objective.Objective{Spec: objective.Flat(n), Func: f}}
	got, _, err := maximise(context.Background(), own, filepath.Join(t.TempDir(), "s"),
		host.Options{Algorithm: "openai-es", Members: members, Workers: 2, Seed: 9,
			Limit: event.Limit{Rounds: rounds},
			Set:   []event.Setting{{Knob: "optimiser", Expr: "sgd"}, {Knob: "momentum", Expr: "0"}, {Knob: "shaping", Expr: "raw"}, {Knob: "sigma", Expr: "0.125"}, {Knob: "eta", Expr: "0.0625"}}})
	if err != nil {
		t.Fatal(err)
	}
	spec := objective.Flat(n)
	set := spec.Data()
	env := &optim.Env{Seed: 9, Data: set}
	seeds := make([]int32, rounds)
	env.SharedBatch(seeds, 0)
	want := naiveES(f, 9, n, members, rounds, 0.125, 0.0625, seeds)
	if !slices.Equal(got.Params, want) {
		t.Errorf("the run ends at %v\nnaiveES at %v", got.Params, want)
	}
}

// TestObjectiveFunctions: on standard test functions each strategy reaches a value far below the start within a fixed
// budget of evaluations. Each strategy has one function; with BROOD_LONG=studies each has all.
func TestObjectiveFunctions(t *testing.T) {
	start := 2.0
	for i, f := range []struct {
		name string
		f    objective.Func
		most float64
	}{
		{"sphere", func(x []float32, _ uint64) (float64, error) {
			return -each(x, func(_ int, v float64) float64 { return v * v }), nil
		}, 1e-3},
		{"ellipsoid", func(x []float32, _ uint64) (float64, error) {
			return -each(x, func(i int, v float64) float64 { return math.Pow(1e3, float64(i)/4) * v * v }), nil
		}, 1},
		{"rosenbrock", func(x []float32, _ uint64) (float64, error) {
			return -each(x[:len(x)-1], func(i int, v float64) float64 {
				a, b := float64(x[i+1])-v*v, 1-v
				return 100*a*a + b*b
			}), nil
		}, 6},
		{"rastrigin", func(x []float32, _ uint64) (float64, error) {
			return -each(x, func(_ int, v float64) float64 { return 10 + v*v - 10*math.Cos(2*math.Pi*v) }), nil
		}, 30},
	} {
		own := &host.Own{Objective: &objective.Objective{Func: f.f,
			Spec: objective.Spec{Name: f.name, Params: []objective.Param{{Name: "x", Shape: []int{5}, Start: start}}}}}
		for k, algorithm := range []string{"snes", "sep-cma", "cr-fm-nes", "lm-ma-es"} {
			if k != i && !longtest.On(longtest.Studies) {
				continue
			}
			best, _, err := maximise(context.Background(), own, filepath.Join(t.TempDir(), f.name+algorithm),
				host.Options{Algorithm: algorithm, Members: 20, Seed: 2,
					Limit: event.Limit{Rounds: 400}, Set: []event.Setting{{Knob: "sigma", Expr: "0.5"}}})
			if err != nil {
				t.Fatal(err)
			}
			if y, _ := f.f(best.Params, 0); !(-y <= f.most) {
				t.Errorf("%s by %s: %v after 8000 evaluations, want at most %v", f.name, algorithm, -y, f.most)
			}
		}
	}
}

func each(x []float32, f func(i int, v float64) float64) (sum float64) {
	for i, v := range x {
		sum += f(i, float64(v))
	}
	return sum
}

// TestObjectiveMisses: a missing result counts as the worst, raises an alert, and the session verifies.
func TestObjectiveMisses(t *testing.T) {
	own := &host.Own{Objective: &objective.Objective{Spec: objective.Flat(3),
		Func: func(x []float32, _ uint64) (float64, error) {
			if x[0] > x[1] {
				return 0, errors.New("broken")
			}
			return float64(x[2]), nil
		}}}
	for _, algorithm := range []string{"openai-es", "snes", "sep-cma", "cr-fm-nes", "lm-ma-es", "pgpe",
		"guided-es", "ga"} {
		dir := filepath.Join(t.TempDir(), algorithm)
		_, hash, err := maximise(context.Background(), own, dir,
			host.Options{Algorithm: algorithm, Members: 8, Workers: 2, Seed: 2, Limit: event.Limit{Rounds: 6}})
		if err != nil {
			t.Fatal(err)
		}
		again, err := own.Verify(context.Background(), dir, 1, nil)
		if err != nil || again.Last.Hash != hash {
			t.Errorf("%s: %v", algorithm, err)
		}
		if len(again.Alerts) != 1 || !strings.Contains(again.Alerts[0], "the first: broken") {
			t.Errorf("%s: recorded alerts %q", algorithm, again.Alerts)
		}
	}
}

// TestObjectiveHasNoGradientToGuide: Guided ES rejects gradients as a surrogate for an objective.
func TestObjectiveHasNoGradientToGuide(t *testing.T) {
	own := &host.Own{Objective: &objective.Objective{Spec: objective.Flat(3),
		Func: func(x []float32, _ uint64) (float64, error) { return float64(x[0]), nil }}}
	_, _, err := maximise(context.Background(), own, filepath.Join(t.TempDir(), "s"),
		host.Options{Algorithm: "guided-es", Members: 8, Seed: 2, Limit: event.Limit{Rounds: 6},
			Set: []event.Setting{{Knob: "surrogate", Expr: "gradient"}}})
	if err == nil || !strings.Contains(err.Error(), "surrogate gradient needs a model with gradients") {
		t.Errorf("an objective with surrogate gradients: %v", err)
	}
}

// TestSessionsStartNothing: no content of a session starts a program, here or on a worker.
func TestSessionsStartNothing(t *testing.T) {
	dir := t.TempDir()
	touched := filepath.Join(dir, "touched")
	c := event.Config{Version: 1, Model: "x", Data: "seeds", Objective: "touch " + touched,
		ModelSpec: "[[param]]\nname = \"x\"\nshape = [1]\n# word touch\n# word " + touched + "\n",
		Kernels:   objective.Kernels, More: map[string]string{}}
	if _, err := host.FromSession(dir, c); err == nil || !strings.Contains(err.Error(), "no session starts by itself") {
		t.Errorf("%v", err)
	}
	c.More = map[string]string{option.Objective.Name: "touch " + touched}
	if _, err := host.FromSession(dir, c); err == nil {
		t.Error("a session that names a program was accepted")
	}
	if _, err := os.Stat(touched); err == nil {
		t.Error("the program was started")
	}
}
