package engine

import "context"

// Doer runs tasks in order. When Do returns, the outputs of the tasks are readable. It stops at the first error.
type Doer interface {
	Do(ctx context.Context, tasks ...Task) error
}

// ThreadedEngine is implemented by engines whose executor threads can work for different members in parallel.
type ThreadedEngine interface {
	Threaded
	// ThreadEngines returns one Doer per executor thread, the same at each call. Each may be used from its own goroutine,
	// for gradient and vector tasks, as long as no task accesses memory that a concurrent task writes. The caller must not
	// call the engine itself while any of them is running.
	ThreadEngines() []Doer
}

// Threaded is implemented by engines with executor threads. Threads returns the number of members that the engine can
// work for in parallel.
type Threaded interface{ Threads() int }
