package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"brood/models/engine"
	"brood/optim/catalog"
	"brood/runtime/event"
)

// sleeper is an engine whose samples take so long each, and the first task of a length five times as long.
type sleeper struct {
	compute
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

// TestPortion: tasks that take moments are timed whole, others by a part of their samples, and nothing takes long to
// find that out.
func TestPortion(t *testing.T) {
	for _, c := range []struct {
		sample time.Duration
		most   int
		want   int
		took   time.Duration // of a task of so many that is timed already
		within time.Duration
	}{
		{time.Microsecond, 1000, 1000, 0, 15 * time.Millisecond},
		{time.Microsecond, 8, 8, 0, time.Millisecond},
		{100 * time.Microsecond, 128, 128, 0, 100 * time.Millisecond},
		{time.Millisecond, 20, 20, 0, 150 * time.Millisecond},
		{4 * time.Millisecond, 1000, 32, 128 * time.Millisecond, time.Second},
		{4 * time.Millisecond, 3, 3, 0, 100 * time.Millisecond},
		{time.Second, 1000, 32, 160 * time.Second, 3 * time.Minute}, // not a second time: what it first takes is said
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &sleeper{sample: c.sample, seen: map[int]bool{}}
			n, seconds, err := portion(t.Context(), s, c.most, func(n int) engine.Task {
				return engine.Gradients{Batches: [][]int32{make([]int32, n)}}
			})
			if err != nil || n != c.want || seconds != c.took.Seconds() || s.slept > c.within {
				t.Errorf("%d samples of %v: %d of them take %v s (%v), found out in %v; want %d, %v, at most %v", c.most, c.sample, n, seconds, err, s.slept, c.want, c.took, c.within)
			}
		})
	}
}

func TestLeaning(t *testing.T) {
	for _, c := range []struct {
		members, workers, threads int
		want                      float64
	}{{4, 2, 2, 1}, {3, 2, 2, 4. / 3}, {3, 1, 2, 1}, {1, 2, 2, 1}, {7, 3, 8, 9. / 7}, {9, 8, 2, 1}, {9, 8, 8, 16. / 9}} {
		if got := leaning(c.members, c.workers, c.threads); got != c.want {
			t.Errorf("%d members on %d workers with %d threads: %v, want %v", c.members, c.workers, c.threads, got, c.want)
		}
	}
}

// TestHollow: what a rehearsal without samples and vectors counts is what one with them does, of every algorithm.
func TestHollow(t *testing.T) {
	compared := 0
	for _, a := range catalog.All() {
		_, err := prepared(Options{Algorithm: a.Name, Model: "mlp-small", Data: "glyphs", Members: 8, Workers: 2, Threads: 2, By: "test"}, func(j *Job, _ compute) error {
			for _, x := range []excerpt{{evaluate: event.NoTest, rounds: 6}, {probe: 1, evaluate: 1, rounds: 1, limit: 1}} {
				var of [2]crew
				for i := range of {
					h := *j
					h.hollow = i == 1
					var err error
					if of[i], err = h.count(x); err != nil {
						return err
					}
				}
				with, without := of[0], of[1]
				if with.effort != without.effort || with.blocks != without.blocks || with.scratch != without.scratch || with.host != without.host || with.progress != without.progress {
					t.Errorf("%s, %+v: %+v without samples, with them %+v", a.Name, x, without, with)
				}
				for i := range with.works {
					if with.works[i] != without.works[i] {
						t.Errorf("%s, %+v: worker %d needs room for %+v without samples, with them %+v", a.Name, x, i, without.works[i], with.works[i])
					}
				}
			}
			compared++
			return nil
		})
		if err != nil {
			t.Logf("%s: %v", a.Name, err)
		}
	}
	if compared < 20 {
		t.Errorf("%d algorithms were compared, want 20 and more", compared)
	}
}
