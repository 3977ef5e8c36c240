package engine

import (
	"context"
	"sync"
	"sync/atomic"
)

// Each calls f for every entry 0..n-1, in parallel with one goroutine per worker, waits for all, and returns the error
// of the lowest failed entry. Entries after a failed one may be skipped. The result must not depend on which worker
// processes which entry. A panic of f is propagated to the caller, as a [Panic] if several goroutines run, after all have
// stopped.
func Each[W any](ctx context.Context, workers []W, n int, f func(w W, i int) error) error {
	return EachBy(ctx, goroutines, workers, n, f)
}

// Pool is a worker pool: it calls loop for 0..n-1, in parallel if possible, and returns when all calls have returned.
type Pool func(n int, loop func(i int))

// goroutines is a Pool that runs each call on its own goroutine, and the first on the caller's.
func goroutines(n int, loop func(i int)) {
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() { loop(i) })
	}
	loop(0)
	wg.Wait()
}

// EachBy is like Each but runs on the given worker pool.
func EachBy[W any](ctx context.Context, pool Pool, workers []W, n int, f func(w W, i int) error) error {
	if n == 0 {
		return ctx.Err()
	}
	if len(workers) == 1 || n == 1 {
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f(workers[0], i); err != nil {
				return err
			}
		}
		return nil
	}
	var next, failed atomic.Int64
	var mu sync.Mutex
	var first error
	var thrown *Panic
	failed.Store(int64(n))
	loop := func(w int) {
		defer func() {
			if r := recover(); r != nil {
				mu.Lock()
				thrown = Recovered(r)
				failed.Store(0)
				mu.Unlock()
			}
		}()
		for {
			i := next.Add(1) - 1
			if i >= failed.Load() {
				return
			}
			err := ctx.Err()
			if err == nil {
				err = f(workers[w], int(i))
			}
			if err != nil {
				mu.Lock()
				if i < failed.Load() {
					failed.Store(i)
					first = err
				}
				mu.Unlock()
			}
		}
	}
	pool(min(len(workers), n), loop)
	if thrown != nil {
		panic(thrown)
	}
	return first
}
