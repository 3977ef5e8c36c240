package worker

import "sync/atomic"

// Stage is a part of a worker's work that may take long.
type Stage string

const (
	StageMemory  Stage = "memory"  // it allocates the blocks of a plan; counted in blocks
	StageMembers Stage = "members" // it fills the rows of new members; counted in members
	StageRound   Stage = "round"   // it runs granted rounds; counted in members that took their steps of the newest round
)

// Doing is what a worker does now. The zero Doing is of a worker that waits for an order.
type Doing struct {
	Stage Stage
	Since int64  // nanoseconds of the worker's clock at the beginning of the stage
	Round uint64 // that is executed, from 1, in StageRound
	// Done of Of parts. Done stays 0 in a round whose algorithm does not step its members one by one, or on a device.
	Done, Of int
	Members  int // that the worker hosts
}

// stage is a Doing in progress. Threads of the engine count.
type stage struct {
	Doing
	done atomic.Int64
}

// Doing is what the worker does now. It may be called from any goroutine.
func (w *Worker) Doing() Doing {
	s := w.doing.Load()
	if s == nil {
		return Doing{}
	}
	d := s.Doing
	d.Done = int(s.done.Load())
	return d
}

// enters begins a stage with so many parts. All stages of an order began with it.
func (w *Worker) enters(what Stage, members, of int) *stage {
	s := &stage{Doing: Doing{Stage: what, Of: of, Members: members}}
	if before := w.doing.Load(); before != nil {
		s.Since = before.Since
	} else if w.cfg.Clock != nil {
		s.Since = w.cfg.Clock()
	}
	w.doing.Store(s)
	return s
}

// turns begins another round of a grant that began at a time of the worker's clock.
func (w *Worker) turns(begun int64) {
	env := w.now.env
	s := &stage{Doing: Doing{Stage: StageRound, Since: begun, Round: w.now.round + 1, Of: len(env.Mine), Members: len(env.Mine)}}
	env.Stepped = func(members int) { s.done.Add(int64(members)) }
	w.doing.Store(s)
}

// rests ends the stage.
func (w *Worker) rests() { w.doing.Store(nil) }
