package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
)

// TestEach: every entry is processed once with any number of workers, and the error of the lowest failed entry is
// returned.
func TestEach(t *testing.T) {
	ctx := context.Background()
	inTurn := func(n int, loop func(int)) { // a pool with one worker
		for i := range n {
			loop(i)
		}
	}
	for _, workers := range []int{1, 2, 3, 7} {
		for _, n := range []int{0, 1, 2, 50} {
			seen := make([]atomic.Int32, n)
			err := Each(ctx, make([]int, workers), n, func(_ int, i int) error {
				seen[i].Add(1)
				return nil
			})
			if err != nil {
				t.Errorf("%d workers, %d entries: %v", workers, n, err)
			}
			err = EachBy(ctx, inTurn, make([]int, workers), n, func(_ int, i int) error {
				if seen[i].Add(1) != 2 {
					return fmt.Errorf("entry %d", i)
				}
				return nil
			})
			if err != nil {
				t.Errorf("%d workers, one after the other, %d entries: %v", workers, n, err)
			}
			for i := range seen {
				if seen[i].Load() != 2 {
					t.Errorf("%d workers: entry %d of %d was done %d times, want once by each", workers, i, n, seen[i].Load())
				}
			}
		}
		for range 20 {
			err := Each(ctx, make([]int, workers), 30, func(_ int, i int) error {
				if i%10 == 7 {
					return fmt.Errorf("entry %d", i)
				}
				return nil
			})
			if err == nil || err.Error() != "entry 7" {
				t.Fatalf("%d workers: %v, want the error of entry 7", workers, err)
			}
		}
	}
}

func TestEachStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var done atomic.Int32
	err := Each(ctx, make([]int, 2), 1000, func(int, int) error {
		if done.Add(1) == 5 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || done.Load() > 10 {
		t.Errorf("%v after %d entries", err, done.Load())
	}
	if err := Each(ctx, make([]int, 2), 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("nothing to do, cancelled: %v", err)
	}
}

func TestFreshStats(t *testing.T) {
	l := Layout{Stats: 5, StatTensors: []Tensor{{Name: "mean", Len: 2}, {Name: "var", Lo: 2, Len: 3, Start: 1}}}
	got := []float32{9, 9, 9, 9, 9}
	l.FreshStats(got)
	if fmt.Sprint(got) != "[0 0 1 1 1]" {
		t.Errorf("%v", got)
	}
}

// TestEachPanics: a panic on any goroutine is propagated to the caller, who may recover it with the line that panicked.
func TestEachPanics(t *testing.T) {
	faults := map[string]func(){
		"entry fails":          func() { panic("entry fails") },
		"nil map":              func() { maps.Clone[map[string]int](nil)["x"] = 1 },
		"out of range":         func() { _ = make([]int, 1)[len(t.Name())] },
		"nil pointer":          func() { (*Layout)(nil).Params++ },
		"divide by zero":       func() { _ = 1 / len(t.Name()[:0]) },
		"interface conversion": func() { _ = any(t).(int) },
	}
	for want, fault := range faults {
		for _, workers := range []int{1, 2, 7} {
			for at := range 7 {
				thrown := func() (p *Panic) {
					defer func() { p = Recovered(recover()) }()
					_ = Each(context.Background(), make([]int, workers), 7, func(_ int, i int) error {
						if i == at {
							fault()
						}
						return nil
					})
					return nil
				}()
				if text := thrown.String(); !strings.HasPrefix(text, "each_test.go:") || !strings.Contains(text, want) {
					t.Errorf("%d workers, entry %d: %s", workers, at, text)
				}
			}
		}
	}
}
