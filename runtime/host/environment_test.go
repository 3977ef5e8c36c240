package host

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
)

// inCartpole returns options of a short run in an environment. extra are options by name.
func inCartpole(t *testing.T, algorithm string, workers int, extra ...string) Options {
	t.Helper()
	o := Options{Algorithm: algorithm, Members: 8, Workers: workers, Threads: 2, Seed: 3, Evaluate: 2, Unattended: true,
		Limit: event.Limit{Rounds: 4}}
	extra = append([]string{"env", "cartpole"}, extra...)
	for i := 0; i < len(extra); i += 2 {
		if err := option.Named(extra[i]).Set(&o, extra[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// trainOrder trains an order and returns the hash of the last commit.
func trainOrder(t *testing.T, order Order) (hash string) {
	t.Helper()
	p, err := order.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	run, err := Start(p.Job, p.Session, p.From, func(rec event.Record) {
		if rec.Commit != nil {
			hash = rec.Commit.Hash
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = run.Train(t.Context())
	if err = errors.Join(err, run.Close()); err != nil {
		t.Fatal(err)
	}
	return hash
}

// A run in an environment has the same state on one and two workers; its session resumes, branches, verifies and
// exports without options.
func TestEnvironment(t *testing.T) {
	for _, algorithm := range []string{"openai-es", "ga", "sep-cma"} {
		home := t.TempDir()
		dir := func(name string) string { return filepath.Join(home, name) }
		want := trainOrder(t, Order{Dir: dir("one"), Options: inCartpole(t, algorithm, 1)})
		if got := trainOrder(t, Order{Dir: dir("two"), Options: inCartpole(t, algorithm, 2)}); got != want {
			t.Errorf("%s: two workers end at %s, one at %s", algorithm, got, want)
		}
		part := inCartpole(t, algorithm, 2)
		part.Limit.Rounds = 2
		trainOrder(t, Order{Dir: dir("part"), Options: part})
		more := Options{Limit: event.Limit{Rounds: 4}, Unattended: true}
		if got := trainOrder(t, Order{Dir: dir("branch"), From: dir("part"), At: 1, Options: more}); got != want {
			t.Errorf("%s: the fork ends at %s, want %s", algorithm, got, want)
		}
		if got := trainOrder(t, Order{Dir: dir("part"), Resume: true, Options: more}); got != want {
			t.Errorf("%s: the resumed run ends at %s, want %s", algorithm, got, want)
		}
		v, err := Verify(t.Context(), dir("part"), 1, nil)
		if err != nil || v.Last.Hash != want || v.Evaluations == 0 {
			t.Errorf("%s: verified %+v, %v", algorithm, v.Result, err)
		}
	}
}

// The log records the environment and the policy, also the default policy. A session of another version of the dynamics
// is rejected.
func TestEnvironmentIsRecorded(t *testing.T) {
	j, err := Prepare(inCartpole(t, "openai-es", 1))
	if err != nil {
		t.Fatal(err)
	}
	c := j.Config
	if c.Environment() != "cartpole" || c.More["policy"] != "mlp:16" || c.Objective != "cartpole" ||
		!strings.Contains(c.ModelSpec, "# environment cartpole, version 1\n") || c.Score().Title != "test return" {
		t.Errorf("recorded %+v", c)
	}
	if _, err := FromSession("", c); err != nil {
		t.Error(err)
	}
	if _, err := (&Own{command: []string{"true"}}).FromSession("", c); err == nil ||
		!strings.Contains(err.Error(), "cartpole, which is part of brood: omit --objective") {
		t.Errorf("with a program: %v", err)
	}
	c.ModelSpec = strings.Replace(c.ModelSpec, "version 1", "version 0", 1)
	want := "the session maximises another version of cartpole: this brood has environment cartpole, " +
		"version 1, where the session has environment cartpole, version 0; use the brood that recorded it"
	if _, err := FromSession("", c); err == nil || err.Error() != want {
		t.Errorf("another version: %v, want %s", err, want)
	}
}

func TestEnvironmentRefuses(t *testing.T) {
	for _, x := range []struct {
		algorithm string
		extra     []string
		want      string
	}{
		{"openai-es", []string{"env", "pong"}, `env "pong": choose acrobot, cartpole, mountaincar or pendulum`},
		{"openai-es", []string{"policy", "mlp:0"}, `policy "mlp:0": write linear, or mlp: and the units`},
		{"openai-es", []string{"env", "", "policy", "linear"}, "policy = linear: a policy needs an environment"},
		{"openai-es", []string{"model", "mlp-small"}, "model = mlp-small: an environment has no model and no data: omit it"},
		{"openai-es", []string{"data", "mnist"}, "data = mnist: an environment has no model and no data: omit it"},
		{"openai-es", []string{"objective", "./x"}, "objective = ./x: the run maximises the return in the environment cartpole"},
		{"openai-es", []string{"program", "./x"}, "program = ./x: the run maximises the return in the environment cartpole"},
		{"openai-es", []string{"params", "4"}, "params = 4: the run maximises the return in the environment cartpole"},
		{"openai-es", []string{"device", "gpu"}, "device gpu: an environment computes on the processor: omit the device"},
		{"openai-es", []string{"target", "test_error=3"}, "an environment has no error rate"},
		{"dp-sgd", nil, "dp-sgd needs gradients, and an environment gives none: choose one of"},
		{"egg", nil, "whole numbers, and the parameters of an environment are none"},
	} {
		if _, err := Prepare(inCartpole(t, x.algorithm, 1, x.extra...)); err == nil ||
			!strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want %s", x.extra, err, x.want)
		}
	}
}

// A run ends when the mean return on the test seeds meets the target. Each test records an episode.
func TestEnvironmentTarget(t *testing.T) {
	o := inCartpole(t, "openai-es", 2, "target", "test_fitness=5")
	j, err := Prepare(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.checkTarget(); err != nil {
		t.Error(err)
	}
	dir := filepath.Join(t.TempDir(), "s")
	trainOrder(t, Order{Dir: dir, Options: o})
	h, err := read(dir, 0)
	if err != nil || h.last == nil || h.last.To != 2 || h.goal.Met == "" {
		t.Errorf("ended at %+v, met %q, %v", h.last, h.goal.Met, err)
	}
	if _, err := Verify(context.Background(), dir, 1, nil); err != nil {
		t.Error(err)
	}
	for rec, err := range session.Records(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Evaluation == nil {
			continue
		}
		e := rec.Evaluation.Episode
		if e == nil || e.Seed != uint64(j.Samples.Test()[0]) || e.Steps < 5 || float64(e.Steps) != e.Return ||
			len(e.States) != event.EpisodeWidth*(e.Steps/4+2) && len(e.States) != event.EpisodeWidth*((e.Steps+3)/4+1) {
			t.Errorf("recorded the episode %+v", e)
		}
		return
	}
	t.Error("no test in the log")
}
