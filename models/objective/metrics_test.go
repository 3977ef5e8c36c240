package objective

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
)

// declares are the metrics of the test programs by behaviour.
var declares = map[string][]string{
	"metrics": {"seed", "twice"}, "odd": {"seed", "twice"}, "few": {"seed", "twice"}, "cut": {"seed"}, "changing": {"seed"},
	"unnamed": {""}, "alike": {"a", "a"}, "bell": {"a\ab"}, "latin": {"gr\xf6n"}, "column": {"a.min"}, "long": {strings.Repeat("x", 65)},
	"many": slices.Repeat([]string{"x"}, 40),
}

// measured evaluates n candidates with their metrics.
func measured(t *testing.T, e *Engine, n int) (fitness []float32, metrics []float64) {
	t.Helper()
	theta := ram.New(1, 3)
	copy(ram.View(theta).F, []float32{1, 2, 3})
	c := engine.Candidates{Theta: theta, Sigma: 0.5, Key: noise.Key{Seed: 4, Purpose: noise.Candidate}, Antithetic: true,
		Batches: [][]int32{{2, 3, 7}},
		Fitness: make([]float32, n), Metrics: make([]float64, n*len(e.Metrics()))}
	for i := range n {
		c.IDs = append(c.IDs, engine.Member(i))
	}
	if err := e.Do(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	return c.Fitness, c.Metrics
}

// TestMetrics: metrics belong to their candidate, as means over its seeds, and do not change the fitness, for programs
// and Go functions.
func TestMetrics(t *testing.T) {
	plain := candidatesOf(t, open(t, program(t, "well", Flat(3)), 2), 10)
	function := Objective{Spec: Flat(3), Metrics: declares["metrics"],
		Measured: func(x []float32, seed uint64, m []float64) (float64, error) {
			f, err := naive(x, seed)
			m[0], m[1] = float64(seed), 2*f
			return f, err
		}}
	for name, o := range map[string]Objective{"program": program(t, "metrics", Flat(3)), "function": function} {
		for _, threads := range []int{1, 3} {
			e := open(t, o, threads)
			if !slices.Equal(e.Metrics(), []string{"seed", "twice"}) {
				t.Fatalf("%s: metrics %q", name, e.Metrics())
			}
			fitness, metrics := measured(t, e, 10)
			for i, f := range fitness {
				if f != plain[i] || metrics[2*i] != 4 || math.Abs(metrics[2*i+1]-2*float64(f)) > 1e-5*math.Abs(float64(f)) {
					t.Errorf("%s, %d threads, candidate %d: fitness %v, want %v; metrics %v, want 4 and twice the fitness", name,
						threads, i, f, plain[i], metrics[2*i:2*i+2])
				}
			}
			if notes := e.Notes(); notes != nil {
				t.Errorf("%s: notes %q", name, notes)
			}
		}
	}
}

// candidatesOf is measured for an engine without metrics.
func candidatesOf(t *testing.T, e *Engine, n int) []float32 {
	t.Helper()
	if len(e.Metrics()) != 0 {
		t.Fatalf("metrics %q", e.Metrics())
	}
	fitness, _ := measured(t, e, n)
	return fitness
}

// TestInvalidMetrics: a program's metrics are checked: the names in its answer to hello, the numbers in each
// result.
func TestInvalidMetrics(t *testing.T) {
	for how, why := range map[string]string{
		"unnamed": "give a name of 1 to 64 bytes in UTF-8 that can be printed", "bell": "that can be printed", "latin": "in UTF-8", "long": "1 to 64 bytes",
		"alike": "two metrics are named a", "column": "ends as columns of exports do", "many": "more than 32 metrics", "cut": "its answer to hello is cut",
	} {
		if _, err := New(program(t, how, Flat(3)), 1); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", how, err, why)
		}
	}
	if _, err := parseReady([]byte{1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0}); err == nil ||
		!strings.Contains(err.Error(), "it requests the features 0x9, but this program has only 0x1") {
		t.Errorf("a wish that is not known: %v", err)
	}
	if g, err := parseReady([]byte{1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}); err != nil || !g.shared || g.metrics != nil {
		t.Errorf("a wish for shared memory: %+v, %v", g, err)
	}
	if _, err := New(Objective{Spec: Flat(3), Func: naive, Metrics: []string{"a"}}, 1); err == nil ||
		!strings.Contains(err.Error(), "nothing that measures them") {
		t.Errorf("metrics without a function that measures them: %v", err)
	}
	e := open(t, program(t, "odd", Flat(3)), 1)
	fitness, metrics := measured(t, e, 4)
	if fitness[0] != fitness[0] || !math.IsNaN(metrics[0]) {
		t.Errorf("infinite metrics: fitness %v, metrics %v", fitness, metrics)
	}
	if notes := e.Notes(); len(notes) != 1 || notes[0].Kind != engine.NoteMetric ||
		!strings.Contains(notes[0].Text, "+Inf as the metric seed") {
		t.Errorf("infinite metrics: notes %q", notes)
	}
	if measured(t, e, 4); e.Notes() != nil {
		t.Error("the note is repeated")
	}
	e = open(t, program(t, "few", Flat(3)), 1)
	fitness, metrics = measured(t, e, 2)
	if fitness[0] == fitness[0] || !math.IsNaN(metrics[1]) {
		t.Errorf("too few metrics: fitness %v, metrics %v", fitness, metrics)
	}
	if notes := e.Notes(); len(notes) != 1 || !strings.Contains(notes[0].Text, "a count of 1 and 32 bytes for each") {
		t.Errorf("too few metrics: notes %q", notes)
	}
	e = open(t, program(t, "changing", Flat(3)), 2)
	theta := ram.New(1, 3)
	c := engine.Candidates{
		Theta:   theta,
		Sigma:   1,
		IDs:     []engine.Member{0, 1, 2, 3, 4, 5, 6, 7},
		Batches: [][]int32{slices.Repeat([]int32{1}, 64)},
		Fitness: make([]float32, 8),
	}
	if err := e.Do(context.Background(), c); err == nil || !strings.Contains(err.Error(), "where it declared") {
		t.Errorf("a second process with other metrics: %v", err)
	}
	c.Metrics = make([]float64, 3)
	if err := open(t, program(t, "metrics", Flat(3)), 1).Do(context.Background(), c); err == nil ||
		!strings.Contains(err.Error(), "room for 3 metrics") {
		t.Errorf("room for 3 metrics: %v", err)
	}
	missing := Objective{Spec: Flat(3), Metrics: []string{"a"},
		Measured: func([]float32, uint64, []float64) (float64, error) { return 0, errors.New("no") }}
	if _, metrics = measured(t, open(t, missing, 1), 2); !math.IsNaN(metrics[0]) {
		t.Errorf("metrics of a missing result: %v", metrics)
	}
}
