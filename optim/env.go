package optim

import (
	"context"

	"brood/models/engine"
	"brood/models/noise"
)

// Memory is the memory of an engine, which stores matrices. Other code accesses their elements only by Write and Read.
type Memory interface {
	// Alloc returns a zeroed matrix, which the caller must Free. The error states the requested and the free memory.
	Alloc(rows, cols int) (engine.Mat, error)
	// Free releases the memory of m, including all views of it, once all tasks queued before have finished.
	Free(m engine.Mat)
	// Write copies little-endian elements from p to dst, row by row, after all tasks queued before. The caller may reuse p
	// once Write returns.
	Write(ctx context.Context, dst engine.Span, p []byte) error
	// Read waits for all tasks queued before, then copies the elements of src to p.
	Read(ctx context.Context, p []byte, src engine.Span) error
}

// Engine executes tasks. One worker uses it, from one goroutine, except for its executor threads ([engine.Laned]).
type Engine interface {
	Memory
	// Do queues tasks, which run in order. It rejects a task of mismatched shapes immediately; the next call returns the
	// error of a task that fails later. See [engine.Task] for the ownership of slices in a task.
	Do(ctx context.Context, tasks ...engine.Task) error
	// Wait returns when all queued tasks have finished and all fields marked "out" contain their results.
	Wait(ctx context.Context) error
}

// Upload copies h (F32) into a new matrix in the memory of e, which the caller must free.
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

// Download returns the elements of m, after all tasks queued before have finished.
func Download(ctx context.Context, e Memory, m engine.Mat) (engine.Host, error) {
	h, p := engine.NewHost(m.Rows, m.Cols, engine.F32), make([]byte, m.Bytes())
	if err := e.Read(ctx, p, engine.All(m)); err != nil {
		return h, err
	}
	engine.ReadFloats(h.F, p)
	return h, nil
}

// Data names the samples a program may train on and select by. The test set is not accessible.
type Data interface {
	Train() []int32      // sample ids, fixed for the run; read-only
	Validation() []int32 // a split of the training set; read-only
}

// Env contains everything that a program may access.
type Env struct {
	Seed    uint64
	Roster  Roster
	Self    int
	Mine    []Member // hosted here, ascending: the rows of per-member blocks
	Layout  engine.Layout
	Comm    *Comm
	Engine  Engine
	Data    Data
	Hollow  bool                   // the engine computes nothing (matrices have no storage), so no samples are drawn
	Metrics []string               // names of the metrics that an objective measures in addition to the fitness
	Blocks  map[string]engine.Mat  // owned by the runtime; access by Block
	Records map[string]engine.Host // owned by the runtime; access by Record

	// Stepped reports that further members, as many as given, have finished their steps of the round. Several goroutines
	// may call it concurrently. Nil: no report is needed.
	Stepped func(members int)

	scratch  map[shape]*pool
	inDouble *inDouble
	fault    error
	probed   bool // see Probe
	looks    []look
	inLane   bool // see InCohorts
}

type shape struct{ rows, cols int }
type pool struct {
	mats []engine.Mat
	used int
}

// Block returns the named state in engine memory: 1 row if shared, else a row per member of Mine. It returns the zero
// Mat if the block does not exist and panics if it is a record.
func (e *Env) Block(name string) engine.Mat {
	if _, ok := e.Records[name]; ok {
		panic("block " + name + " is declared as a record: take Env.Record")
	}
	return e.Blocks[name]
}

// Record returns the named state in host memory, with rows as in Block. It returns the zero Host if the record does not
// exist and panics if the name is a block in engine memory.
func (e *Env) Record(name string) engine.Host {
	if _, ok := e.Blocks[name]; ok {
		panic("block " + name + " is no record: take Env.Block, or declare it as one")
	}
	return e.Records[name]
}

// Scratch returns a matrix of undefined contents, valid until the end of the round. If the engine is out of memory, the
// matrix has no storage and every task rejects it; Fault returns the cause. Scratch panics on an executor thread:
// allocate before members step concurrently.
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

// Fault returns the first allocation error of Scratch, or nil.
func (e *Env) Fault() error { return e.fault }

// Free releases all blocks, all scratch and the staging memory of the collectives. The Env must not be used afterwards.
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

// Recycle makes all scratch available again. The runtime calls it before each round.
func (e *Env) Recycle() {
	for _, p := range e.scratch {
		p.used = 0
	}
	if e.inDouble != nil {
		e.inDouble.used = 0
	}
}

// Rand returns the key of the random numbers of one purpose, round and member.
func (e *Env) Rand(p noise.Purpose, round uint64, m Member) noise.Key {
	return noise.Key{Seed: e.Seed, Purpose: p, Round: round, Member: uint32(m)}
}

// Row returns the row of member m in per-member blocks, or -1 if another worker hosts it.
func (e *Env) Row(m Member) engine.Row {
	return rowAmong(e.Mine, m)
}

// Lead reports whether this worker hosts the lowest member, and thus reports the values of the whole population.
func (e *Env) Lead() bool {
	return len(e.Roster.Owner) > 0 && e.Roster.Owner[0] == e.Self
}

// Shape returns the shape of a round that starts now.
func (e *Env) Shape(k Values) Shape {
	s := Shape{
		Roster: e.Roster,
		Layout: e.Layout,
		K:      k,
		Direct: e.Comm.Direct,
		Data:   DataSize{len(e.Data.Train()), len(e.Data.Validation())},
		comm:   e.Comm,
	}
	if p := e.Record(BlockPhase); p.Rows > 0 {
		s.Phase = p.U[0]
	}
	if w := e.Record(BlockWarm); w.Rows > 0 {
		s.Warm = w.U[0]
	}
	return s
}
