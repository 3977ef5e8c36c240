package host

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"brood/models/engine"
	"brood/optim/catalog"
	"brood/runtime/event"
)

// sleeper is an engine that sleeps for a fixed time per sample, and five times as long for the first task of each size.
type sleeper struct {
	Engine
	sample time.Duration
	seen   map[int]bool
	slept  time.Duration
}

func (s *sleeper) Do(_ context.Context, tasks ...engine.Task) error {
	n := len(tasks[0].(engine.Gradients).Batches[0])
	took := time.Duration(n) * s.sample
	if !s.seen[n] {
		took *= 5
	}
	s.seen[n] = true
	s.slept += took
	time.Sleep(took)
	return nil
}

func (s *sleeper) Wait(context.Context) error { return nil }

// TestReducedSamples: short tasks are timed with all samples, long ones with some of them, and the choice itself takes
// little time.
func TestReducedSamples(t *testing.T) {
	for _, c := range []struct {
		sample time.Duration
		most   int
		want   int
		took   time.Duration // time of the task if no further measurement is needed, else 0
		within time.Duration
	}{
		{time.Microsecond, 1000, 1000, 0, 15 * time.Millisecond},
		{time.Microsecond, 8, 8, 0, time.Millisecond},
		{100 * time.Microsecond, 128, 128, 0, 100 * time.Millisecond},
		{time.Millisecond, 20, 20, 0, 150 * time.Millisecond},
		{4 * time.Millisecond, 1000, 32, 128 * time.Millisecond, time.Second},
		{4 * time.Millisecond, 3, 3, 0, 100 * time.Millisecond},
		{time.Second, 1000, 32, 160 * time.Second, 3 * time.Minute}, // timed once: the result is the time of the first run
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &sleeper{sample: c.sample, seen: map[int]bool{}}
			n, seconds, err := reducedSamples(t.Context(), s, block, c.most, func(n int) engine.Task {
				return engine.Gradients{Batches: [][]int32{make([]int32, n)}}
			})
			if err != nil || n != c.want || seconds != c.took.Seconds() || s.slept > c.within {
				t.Errorf("%d samples of %v: %d of them take %v s (%v), measured in %v; want %d, %v, at most %v", c.most, c.sample,
					n, seconds, err, s.slept, c.want, c.took, c.within)
			}
		})
	}
}

// TestDryRunMeta: a dry run without samples and without vector storage has the same counts as one with them. Each
// algorithm takes one of three models, in turn.
func TestDryRunMeta(t *testing.T) {
	compared := 0
	models := []string{"mlp-small", "lenets", "mlp-int8"}
	for i, a := range catalog.All() {
		if !a.Needs.Model() {
			continue
		}
		for k := range models {
			model := models[(i+k)%len(models)]
			o := Options{Algorithm: a.Name, Model: model, Data: fewImages, Members: 8, Workers: 2, Threads: 2, By: "test"}
			_, err := prepared(o, func(j *Job, _ Engine) error {
				compared++
				for _, x := range []excerpt{{evaluate: event.NoTest, rounds: 3}, {probe: 1, evaluate: 1, rounds: 1, limit: 1}} {
					with, without := totalsOf(t, j, x, false), totalsOf(t, j, x, true)
					if !reflect.DeepEqual(with, without) {
						t.Errorf("%s of %s, %+v:\n%+v without samples, with them\n%+v", a.Name, model, x, without, with)
					}
				}
				return nil
			})
			if err == nil {
				break
			}
			t.Logf("%s of %s: %v", a.Name, model, err)
		}
	}
	if compared < 30 {
		t.Errorf("%d dry runs were compared, want 30 and more", compared)
	}
}

// totalsOf returns the counts of the rounds of an excerpt.
func totalsOf(t *testing.T, j *Job, x excerpt, metaOnly bool) workerTotals {
	t.Helper()
	h := *j
	h.metaOnly = metaOnly
	c, err := h.count(x)
	if err != nil {
		t.Errorf("%s of %s, meta %v: %v", j.Alg.Name, j.Net.Name, metaOnly, err)
	}
	return c
}
