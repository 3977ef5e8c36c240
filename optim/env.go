package optim

import (
	"brood/models/engine"
	"brood/models/noise"
	"brood/optim/collective"
)

// Data names the samples a program may train on and select by. The test set is not accessible.
type Data interface {
	Train() []int32       // sample ids, fixed for the run; read-only
	Validation() []int32  // a split of the training set; read-only
	Label(id int32) int32 // class of a sample, if samples have classes
}

// Env contains everything that a program may access.
type Env struct {
	Seed     uint64
	Roster   collective.Roster
	Self     int
	Mine     []engine.Member // hosted here, ascending: the rows of per-member blocks
	Layout   engine.Layout
	Comm     *collective.Comm
	Engine   engine.Engine
	Data     Data
	MetaOnly bool                   // the engine computes nothing (matrices have no storage), so no samples are drawn
	Metrics  []string               // names of the metrics that an objective measures in addition to the fitness
	Blocks   map[string]engine.Mat  // owned by the runtime; access by Block
	Records  map[string]engine.Host // owned by the runtime; access by Record

	// Stepped reports that the given number of further members have finished their steps of the round, or candidates their
	// evaluation. Several goroutines may call it concurrently. Nil: no report is needed.
	Stepped func(members int)

	scratch  map[shape]*pool
	inDouble *inDouble
	fault    error
	probed   bool // see Probe
	looks    []look
	dealing  dealing   // how parts were dealt, see Deal
	parts    [][]int32 // samples of each member, by rank; nil: ranges of the training set
	onThread bool      // this copy belongs to one executor thread, see InCohorts
	memoKey  any       // see Memo
	memo     any
}

// Memo returns what build returned for this comparable key, and calls it only if the last call of Memo had another key.
// It is for constants of knobs that take long to compute, never for state: a resumed run builds them again.
func (e *Env) Memo(key any, build func() any) any {
	if e.memoKey != key {
		e.memoKey, e.memo = key, build()
	}
	return e.memo
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
	if e.onThread {
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
func (e *Env) Rand(p noise.Purpose, round uint64, m engine.Member) noise.Key {
	return noise.Key{Seed: e.Seed, Purpose: p, Round: round, Member: uint32(m)}
}

// Row returns the row of member m in per-member blocks, or -1 if another worker hosts it.
func (e *Env) Row(m engine.Member) engine.Row {
	return collective.RowAmong(e.Mine, m)
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
		Data:   DataSize{Train: len(e.Data.Train()), Validation: len(e.Data.Validation())},
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

// Incoming returns the edges that end at a member hosted here, in the order of the rows that Comm.Move writes.
func (e *Env) Incoming(edges []collective.Edge) (in []collective.Edge) {
	for _, edge := range edges {
		if e.Row(edge.To) >= 0 {
			in = append(in, edge)
		}
	}
	return in
}
