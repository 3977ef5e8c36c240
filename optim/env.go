package optim

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
)

// Engine turns tasks into numbers. Do runs the tasks in order; it returns when their outputs are readable. Alloc gives
// zeroed memory that lives as long as the engine. Implementations are used by one worker, from one goroutine.
type Engine interface {
	Alloc(rows, cols int, t engine.DType) engine.Mat
	Do(ctx context.Context, tasks ...engine.Task) error
	Copy(ctx context.Context, dst, src engine.Span) error
}

// Data names the samples a program may train on and select by. The test set is out of reach.
type Data interface {
	Train() []int32      // sample ids, fixed for the run; read-only
	Validation() []int32 // a split of the training set; read-only
}

// Env is all a program may touch.
type Env struct {
	Seed   uint64
	Roster Roster
	Self   int
	Mine   []Member // hosted here, ascending: the rows of per-member blocks
	Layout engine.Layout
	Comm   *Comm
	Engine Engine
	Data   Data
	Blocks map[string]engine.Mat // owned by the runtime; use Block

	scratch map[shape]*pool
	zeros   engine.Mat
}

type shape struct{ rows, cols int }
type pool struct {
	mats []engine.Mat
	used int
}

// Block is the state of that name: 1 row when shared, else a row per member of Mine. The zero Mat when it does not exist.
func (e *Env) Block(name string) engine.Mat { return e.Blocks[name] }

// Scratch is memory for this round, contents undefined.
func (e *Env) Scratch(rows, cols int) engine.Mat {
	if e.scratch == nil {
		e.scratch = map[shape]*pool{}
	}
	p := e.scratch[shape{rows, cols}]
	if p == nil {
		p = &pool{}
		e.scratch[shape{rows, cols}] = p
	}
	if p.used == len(p.mats) {
		p.mats = append(p.mats, e.Engine.Alloc(rows, cols, engine.F32))
	}
	p.used++
	return p.mats[p.used-1]
}

// Recycle takes all scratch back; the runtime calls it before each round.
func (e *Env) Recycle() {
	for _, p := range e.scratch {
		p.used = 0
	}
}

// origin is a row of zeros, never written.
func (e *Env) origin() engine.Mat {
	if e.zeros.Rows == 0 {
		e.zeros = e.Engine.Alloc(1, e.Layout.Params, engine.F32)
	}
	return e.zeros
}

// Rand addresses randomness of this round.
func (e *Env) Rand(p noise.Purpose, round uint64, m Member) noise.Key {
	return noise.Key{Seed: e.Seed, Purpose: p, Round: round, Member: uint32(m)}
}

// Row is the row of member m in per-member blocks, or -1 when another worker hosts it.
func (e *Env) Row(m Member) engine.Row {
	i, ok := slices.BinarySearch(e.Mine, m)
	if !ok {
		return -1
	}
	return engine.Row(i)
}

// Lead says whether this worker hosts the lowest member: it reports what belongs to the whole population.
func (e *Env) Lead() bool {
	return len(e.Roster.Owner) > 0 && e.Roster.Owner[0] == e.Self
}

// Shape is the shape of a round that starts now.
func (e *Env) Shape(k Values) Shape {
	s := Shape{Roster: e.Roster, Layout: e.Layout, K: k, Direct: e.Comm.Direct, Data: DataSize{len(e.Data.Train()), len(e.Data.Validation())}}
	if p := e.Block(BlockPhase); p.Rows > 0 {
		s.Phase = p.U[0]
	}
	if w := e.Block(BlockWarm); w.Rows > 0 {
		s.Warm = w.U[0]
	}
	return s
}
