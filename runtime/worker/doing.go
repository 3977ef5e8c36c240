package worker

import "sync/atomic"

// Stage is a part of a worker's work that may take long.
type Stage string

const (
	StageMemory  Stage = "memory"  // allocates the blocks of a plan; counted in blocks
	StageMembers Stage = "members" // initializes the rows of new members; counted in members
	StageRound   Stage = "round"   // executes granted rounds; counted in members that completed the current round
)

// Doing is the current activity of a worker. The zero value means that it waits for an order.
type Doing struct {
	Stage Stage
	Since int64  // start of the stage, in nanoseconds of the worker's clock
	Round uint64 // round being executed, counted from 1, in StageRound
	// Done of Of parts are complete. Done stays 0 in a round whose algorithm neither steps members one by one nor
	// reports candidates, and on a device.
	Done, Of int
	Members  int // number of members that the worker hosts
}

// stage is a Doing in progress. The engine's threads increment done.
type stage struct {
	Doing
	done atomic.Int64
}

// Doing returns the current activity. It may be called from any goroutine.
func (w *Worker) Doing() Doing {
	s := w.doing.Load()
	if s == nil {
		return Doing{}
	}
	d := s.Doing
	d.Done = int(s.done.Load())
	return d
}

// beginStage begins a stage with of parts. All stages of one order have the start time of the first.
func (w *Worker) beginStage(what Stage, members, of int) *stage {
	s := &stage{Doing: Doing{Stage: what, Of: of, Members: members}}
	if before := w.doing.Load(); before != nil {
		s.Since = before.Since
	} else if w.cfg.Clock != nil {
		s.Since = w.cfg.Clock()
	}
	w.doing.Store(s)
	return s
}

// beginRound begins the stage of the next round of a grant. begun is the start of the grant on the worker's clock.
func (w *Worker) beginRound(begun int64) {
	env := w.now.env
	s := &stage{Doing: Doing{
		Stage:   StageRound,
		Since:   begun,
		Round:   w.now.round + 1,
		Of:      len(env.Mine),
		Members: len(env.Mine),
	}}
	env.Stepped = func(members int) { s.done.Add(int64(members)) }
	w.doing.Store(s)
}

// endStage ends the current stage: the worker waits for an order.
func (w *Worker) endStage() { w.doing.Store(nil) }
