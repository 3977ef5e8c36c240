package engine

import "context"

// Doer runs tasks in order. Their outputs are readable when it returns; it stops at the first error.
type Doer interface {
	Do(ctx context.Context, tasks ...Task) error
}

// Laned is an engine whose threads can work for different members at the same time. Lanes has a lane for each thread:
// each may be given tasks of gradients and of vectors while the others are given theirs, as long as none touches what
// another writes. Meanwhile the engine itself is given nothing. Lanes are the same at each call.
type Laned interface {
	Threaded
	Lanes() []Doer
}

// Threaded is an engine that may work for so many members at the same time.
type Threaded interface{ Threads() int }
