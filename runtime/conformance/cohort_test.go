package conformance

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"brood/models/engine"
	"brood/models/native"
	"brood/runtime/event"
)

// laned is a toy whose executor threads are separate toys.
type laned struct {
	*Toy
	lanes []engine.Doer
}

// Threads and ThreadEngines implement engine.ThreadedEngine.
func (l laned) Threads() int                 { return len(l.lanes) }
func (l laned) ThreadEngines() []engine.Doer { return l.lanes }

// counted is the toy of an executor thread that counts its tasks.
type counted struct {
	Toy
	tasks *atomic.Int64
}

// Do implements engine.Doer.
func (c *counted) Do(ctx context.Context, tasks ...engine.Task) error {
	c.tasks.Add(int64(len(tasks)))
	return c.Toy.Do(ctx, tasks...)
}

// onLanes makes a toy with this number of executor threads, whose tasks are counted.
func onLanes(t *testing.T, lanes int, tasks *atomic.Int64) func(*Toy) engine.Engine {
	return func(toy *Toy) engine.Engine {
		l := laned{Toy: toy}
		for range lanes {
			one := &counted{*toy, tasks}
			var err error
			if one.vector, err = native.New(toy.layout, 1); err != nil {
				t.Fatal(err)
			}
			l.lanes = append(l.lanes, one)
		}
		return l
	}
}

// points returns the recorded points without their times.
func points(o *Outcome) (out []event.Points) {
	for _, r := range o.Log.Records {
		if r.Points != nil {
			out = append(out, *r.Points)
		}
	}
	return out
}

// TestCohorts: members beyond one cohort step after the others, or in parallel on an engine with executor threads,
// without a change of any bit. Eight workers with a cohort each, one worker with three cohorts, and workers with one,
// three and seventeen threads, some of which do not divide the members, reach the same state, and one worker records
// the same points.
func TestCohorts(t *testing.T) {
	for _, v := range []struct {
		algorithm string
		set       [][2]string
	}{
		{"parle", nil},
		{"parle", [][2]string{{"thermal", "0.01"}, {"clip", "0.5"}, {"decay", "0.01"}, {"slice", "2"}, {"inner", "zeroed"}, {"wire", "int8"}}},
		{"parle", [][2]string{{"variant", "paper"}, {"split", "0.05"}}},
		{"parle", [][2]string{{"variant", "code"}, {"thermal", "0.01"}}},
		{"localsgd", [][2]string{{"h", "3"}, {"warmup", "2"}, {"decay", "0.01"}}},
		{"diloco", [][2]string{{"h", "3"}}},
		{"elastic", nil},
		{"popsgd", [][2]string{{"steps", "geometric"}, {"h", "3"}}},
		{"pesgd", [][2]string{{"vary", "2"}}},
		{"ad-psgd", nil},
		{"streaming-diloco", [][2]string{{"h", "3"}, {"fragments", "2"}}},
		{"decoupled-diloco", [][2]string{{"h", "4"}, {"fragments", "2"}}},
	} {
		t.Run(fmt.Sprintf("%s/%v", v.algorithm, v.set), func(t *testing.T) {
			r := quick(Rig{Algorithm: v.algorithm, Members: 40, Workers: 8, Rounds: 5, Seed: 3, Stats: true})
			for _, s := range v.set {
				r = r.With(s[0], s[1])
			}
			want := run(t, r).Hash()
			for _, workers := range []int{1, 2, 3} {
				r.Workers = workers
				if got := run(t, r).Hash(); got != want {
					t.Errorf("%d workers: %s, eight workers %s", workers, got, want)
				}
			}
			for _, c := range [][2]int{{1, 17}, {1, 3}, {2, 1}, {3, 3}} {
				workers, lanes := c[0], c[1]
				var tasks atomic.Int64
				r.Workers, r.Engine, r.Probe = workers, nil, 1
				whole := run(t, r)
				r.Engine = onLanes(t, lanes, &tasks)
				laned := run(t, r)
				few := lanes == 17 // of 40 members in pairs fewer step at once
				if got := laned.Hash(); got != want || tasks.Load() == 0 && !few {
					t.Errorf("%d workers of %d threads, which got %d tasks: %s, eight workers %s", workers, lanes, tasks.Load(),
						got, want)
				}
				if a, b := fmt.Sprint(points(laned)), fmt.Sprint(points(whole)); workers == 1 && a != b {
					t.Errorf("on threads a worker records %s, in cohorts %s", a, b)
				}
			}
		})
	}
}
