package optim

import (
	"context"

	"brood/models/engine"
	"brood/models/noise"
)

// Memory is what an engine keeps matrices in. Nobody else sees their elements but by Write and Read.
type Memory interface {
	// Alloc gives zeroed memory, which is the caller's to Free. The error says what was wanted and what is free.
	Alloc(rows, cols int) (engine.Mat, error)
	// Free gives the memory behind m, and so that of every view of it, back once all that was queued before is done.
	Free(m engine.Mat)
	// Write copies little-endian elements to dst, row by row, after all that was queued before; p is the caller's again on
	// return.
	Write(ctx context.Context, dst engine.Span, p []byte) error
	// Read copies the elements of src to p after all that was queued before, and so waits for it.
	Read(ctx context.Context, p []byte, src engine.Span) error
}

// Engine turns tasks into numbers. It is used by one worker, from one goroutine but for its lanes ([engine.Laned]).
type Engine interface {
	Memory
	// Do queues tasks, to be run in order. A task that does not fit is refused at once; what fails later is the error of
	// the next call. See [engine.Task] for when slices of a task are whose.
	Do(ctx context.Context, tasks ...engine.Task) error
	// Wait returns when all that was queued is done, and everything marked "out" holds its result.
	Wait(ctx context.Context) error
}

// Upload is h (F32) in memory of e, which the caller frees.
func Upload(ctx context.Context, e Memory, h engine.Host) (engine.Mat, error) {
	m, err := e.Alloc(h.Rows, h.Cols)
	if err != nil {
		return m, err
	}
	if err := e.Write(ctx, engine.All(m), engine.AppendRows(nil, h, 0, h.Rows)); err != nil {
		e.Free(m)
		return engine.Mat{}, err
	}
	return m, nil
}

// Download is the elements of m, once all that was queued before is done.
func Download(ctx context.Context, e Memory, m engine.Mat) (engine.Host, error) {
	h, p := engine.NewHost(m.Rows, m.Cols, engine.F32), make([]byte, m.Bytes())
	if err := e.Read(ctx, p, engine.All(m)); err != nil {
		return h, err
	}
	engine.ReadFloats(h.F, p)
	return h, nil
}

// Data names the samples a program may train on and select by. The test set is out of reach.
type Data interface {
	Train() []int32      // sample ids, fixed for the run; read-only
	Validation() []int32 // a split of the training set; read-only
}

// Env is all a program may touch.
type Env struct {
	Seed    uint64
	Roster  Roster
	Self    int
	Mine    []Member // hosted here, ascending: the rows of per-member blocks
	Layout  engine.Layout
	Comm    *Comm
	Engine  Engine
	Data    Data
	Hollow  bool                   // the engine computes nothing: no samples are drawn for it
	Metrics []string               // of an objective: the names of what it measures beside the fitness
	Blocks  map[string]engine.Mat  // owned by the runtime; use Block
	Records map[string]engine.Host // likewise; use Record

	// Stepped reports so many members more that took their steps of the round. Nil: nobody asks. Several goroutines may
	// call it at the same time.
	Stepped func(members int)

	scratch  map[shape]*pool
	inDouble *inDouble
	fault    error
	probed   bool // see Probe
	looks    []look
	inLane   bool // see inCohorts
}

type shape struct{ rows, cols int }
type pool struct {
	mats []engine.Mat
	used int
}

// Block is the state of that name in the engine's memory: 1 row when shared, else a row per member of Mine. The zero
// Mat when it does not exist.
func (e *Env) Block(name string) engine.Mat {
	if _, ok := e.Records[name]; ok {
		panic("block " + name + " is declared as a record: take Env.Record")
	}
	return e.Blocks[name]
}

// Record is the state of that name in host memory, with rows as Block has. The zero Host when it does not exist.
func (e *Env) Record(name string) engine.Host {
	if _, ok := e.Blocks[name]; ok {
		panic("block " + name + " is no record: take Env.Block, or declare it as one")
	}
	return e.Records[name]
}

// Scratch is memory for this round, contents undefined. Where the engine has none left it is a matrix without memory,
// which every task refuses; Fault says why.
func (e *Env) Scratch(rows, cols int) engine.Mat {
	if e.inLane {
		panic("scratch is taken before members step apart")
	}
	if e.scratch == nil {
		e.scratch = map[shape]*pool{}
	}
	p := e.scratch[shape{rows, cols}]
	if p == nil {
		p = &pool{}
		e.scratch[shape{rows, cols}] = p
	}
	if p.used == len(p.mats) {
		m, err := e.Engine.Alloc(rows, cols)
		if err != nil {
			if e.fault == nil {
				e.fault = err
			}
			return engine.Mat{Rows: rows, Cols: cols}
		}
		p.mats = append(p.mats, m)
	}
	p.used++
	return p.mats[p.used-1]
}

// Fault is why scratch could not be had, if ever.
func (e *Env) Fault() error { return e.fault }

// Free gives all blocks, all scratch and what the collectives hold back to the engine. The Env must not be used any
// more.
func (e *Env) Free() {
	for _, p := range e.scratch {
		for _, m := range p.mats {
			e.Engine.Free(m)
		}
	}
	for _, m := range e.Blocks {
		e.Engine.Free(m)
	}
	e.Comm.Free()
	e.scratch, e.inDouble, e.Blocks = nil, nil, nil
}

// Recycle takes all scratch back; the runtime calls it before each round.
func (e *Env) Recycle() {
	for _, p := range e.scratch {
		p.used = 0
	}
	if e.inDouble != nil {
		e.inDouble.used = 0
	}
}

// Rand addresses randomness of this round.
func (e *Env) Rand(p noise.Purpose, round uint64, m Member) noise.Key {
	return noise.Key{Seed: e.Seed, Purpose: p, Round: round, Member: uint32(m)}
}

// Row is the row of member m in per-member blocks, or -1 when another worker hosts it.
func (e *Env) Row(m Member) engine.Row {
	return rowAmong(e.Mine, m)
}

// Lead says whether this worker hosts the lowest member: it reports what belongs to the whole population.
func (e *Env) Lead() bool {
	return len(e.Roster.Owner) > 0 && e.Roster.Owner[0] == e.Self
}

// Shape is the shape of a round that starts now.
func (e *Env) Shape(k Values) Shape {
	s := Shape{comm: e.Comm, Roster: e.Roster, Layout: e.Layout, K: k, Direct: e.Comm.Direct, Data: DataSize{len(e.Data.Train()), len(e.Data.Validation())}}
	if p := e.Record(BlockPhase); p.Rows > 0 {
		s.Phase = p.U[0]
	}
	if w := e.Record(BlockWarm); w.Rows > 0 {
		s.Warm = w.U[0]
	}
	return s
}
