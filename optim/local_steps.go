package optim

import (
	"context"
	"iter"
	"slices"

	"brood/models/engine"
)

// cohort is how many members take their steps before the next do, where an engine has all threads work for the same
// ones: what their rows hold stays in the caches from step to step, and gradients take memory for them alone. No bit
// depends on it.
const CohortSize = 16

// cohorts cuts n rows into runs [lo, hi) of at most so many.
func Cohorts(n, most int) iter.Seq2[int, int] {
	return func(yield func(lo, hi int) bool) {
		for lo := 0; lo < n; lo += most {
			if !yield(lo, min(n, lo+most)) {
				return
			}
		}
	}
}

// atOnce is how many members take their steps before the next do, whether together or each on a thread.
func (e *Env) atOnce() int {
	if t, ok := e.Engine.(engine.Threaded); ok {
		return max(CohortSize, t.Threads())
	}
	return CohortSize
}

// CohortScratch is a row for each of n members who take their steps at once.
func (e *Env) CohortScratch(n int) engine.Mat { return e.Scratch(min(n, e.atOnce()), e.Layout.Params) }

// InCohorts calls f for runs [lo, hi) that cover n rows of members whose steps touch nothing of each other's. at is the
// first row of CohortScratch that is theirs. On an engine with lanes members step apart, one on each thread from its
// first step to its last: f is called at the same time for several, each with an Env of its own, of which it takes
// neither scratch nor the communicator, and whose engine it gives tasks, and nothing else. The last ones, of whom there
// are fewer than threads, and all where steps are joint, step together.
func (e *Env) InCohorts(ctx context.Context, n int, joint bool, f func(e *Env, lo, hi int, at engine.Row) error) error {
	alone, most := 0, CohortSize
	if !joint {
		most = e.atOnce()
	}
	// tasks that other engines are given may wait in a queue
	l, laned := e.Engine.(engine.Laned)
	stepped := e.Stepped
	if !laned || stepped == nil {
		stepped = func(int) {}
	}
	if laned && !joint {
		var lanes []lane
		for i, one := range l.Lanes() {
			lanes = append(lanes, lane{e.Engine, one, engine.Row(i)})
		}
		alone = n - n%len(lanes)
		looks := make([][]look, alone)
		err := engine.Each(ctx, lanes, alone, func(l lane, i int) error {
			one := *e
			one.Engine, one.inLane, one.looks = l, true, nil
			err := f(&one, i, i+1, l.at)
			looks[i] = one.looks
			stepped(1)
			return err
		})
		if err != nil {
			return err
		}
		e.looks = append(e.looks, slices.Concat(looks...)...)
	}
	for lo, hi := range Cohorts(n-alone, most) {
		if err := f(e, alone+lo, alone+hi, 0); err != nil {
			return err
		}
		stepped(hi - lo)
	}
	return nil
}

// lane is an engine of which one thread computes, and the row of CohortScratch of the member that it works for. Only Do
// is its own.
type lane struct {
	engine.Engine
	one engine.Doer
	at  engine.Row
}

// Do implements Engine.
func (l lane) Do(ctx context.Context, tasks ...engine.Task) error { return l.one.Do(ctx, tasks...) }

// updating lists a step of a member in row r along its gradient g. It may be called for several at the same time, each
// with the Env of its cohort, and writes what is that member's alone.
type StepTasks func(e *Env, r engine.Row, g engine.Mat) []engine.Task

// advance takes so many steps of some members: a gradient of each, and then what update lists for it. Of s.G it needs
// CohortScratch.
func TakeSteps(ctx context.Context, e *Env, s Step, steps int, update StepTasks) error {
	return e.InCohorts(ctx, len(s.Rows), s.Joint, func(e *Env, lo, hi int, at engine.Row) error {
		part := s
		part.Rows, part.XRows, part.Loss, part.G = s.Rows[lo:hi], s.XRows[lo:hi], s.Loss[lo:hi], s.G.Sub(at, hi-lo)
		for range steps {
			if err := MemberGradients(ctx, e, part); err != nil {
				return err
			}
			var tasks []engine.Task
			for i, r := range part.Rows {
				tasks = append(tasks, update(e, r, part.G.Sub(engine.Row(i), 1))...)
			}
			if err := e.Engine.Do(ctx, tasks...); err != nil {
				return err
			}
		}
		return nil
	})
}

// descend is a step of one member's x by the optimiser.
func DefaultStep(k Values) StepTasks { return StepBy(k.Optimiser("eta", "momentum")) }

// StepBy is descend by numbers of one's own.
func StepBy(d Optimiser) StepTasks {
	return func(e *Env, r engine.Row, g engine.Mat) []engine.Task {
		return e.OptimiserTasks(d, e.Block(BlockX).Sub(r, 1), r, g)
	}
}

// LocalRound takes the steps of a round of those that train apart for h steps, or slice of them, and counts the phase;
// ends says that the cycle of h is over, and it is time to meet.
func LocalRound(ctx context.Context, e *Env, k Values) (rep Report, ends bool, err error) {
	n, shape := len(e.Mine), e.Shape(k)
	loss, steps := make([]*float32, n), shape.SliceSteps("h")
	if err := LocalSteps(ctx, e, k, engine.Rows(n), steps, e.CohortScratch(n), loss); err != nil {
		return Report{}, false, err
	}
	rep = e.ReportSteps(k, int64(len(e.Roster.Members)*steps))
	rep.Points = e.LatePointsOf("loss", loss)
	if ends = shape.EndsCycle("h"); ends {
		e.Record(BlockPhase).U[0] = 0
	} else {
		e.Record(BlockPhase).U[0] += uint64(steps)
	}
	return rep, ends, nil
}

// LocalSteps takes h steps of the optimiser on some members, with g as CohortScratch; last receives their last losses,
// by row.
func LocalSteps(ctx context.Context, e *Env, k Values, rows []engine.Row, h int, g engine.Mat, last []*float32) error {
	steps := make([]int, len(rows))
	for i := range steps {
		steps[i] = h
	}
	return UnevenSteps(ctx, e, k, rows, steps, g, last)
}

// UnevenSteps is LocalSteps with a number of steps for each row; those of a row with none keep their last loss.
func UnevenSteps(ctx context.Context, e *Env, k Values, rows []engine.Row, steps []int, g engine.Mat, last []*float32) error {
	return e.InCohorts(ctx, len(rows), k.Orthogonalises(), func(e *Env, lo, hi int, at engine.Row) error {
		g := g.Sub(at, hi-lo)
		for s := range slices.Max(steps[lo:hi]) {
			var now []engine.Row
			for i, r := range rows[lo:hi] {
				if s < steps[lo+i] {
					now = append(now, r)
				}
			}
			loss := make([]float32, len(now))
			if err := TakeSteps(ctx, e, e.GradientStep(k, e.Block(BlockX), now, g, loss), 1, DefaultStep(k)); err != nil {
				return err
			}
			for i, r := range now {
				last[r] = &loss[i]
			}
		}
		return nil
	})
}

// InnerSteps takes so many steps of an inner optimiser on every member's x, each with moments and a count of its own.
func (e *Env) InnerSteps(ctx context.Context, k Values, steps int, loss []float32) error {
	n := len(e.Mine)
	s := e.GradientStep(k, e.Block(BlockX), engine.Rows(n), e.CohortScratch(n), loss)
	return TakeSteps(ctx, e, s, steps, StepBy(k.Optimiser("eta_in", "momentum_in")))
}

// InnerKnobs are those of an inner optimiser, AdamW where nothing else is said: what InnerSteps reads.
var InnerKnobs = append([]Knob{
	{Name: "eta_in", Label: "η_in", Title: "inner learning rate", Doc: "step size of the inner optimiser", Min: 0, Max: 100, Default: 0.001, Scale: Log},
	knobOptimiser.Choosing("adamw"),
	{Name: "momentum_in", Label: "μ_in", Title: "inner momentum", Doc: "momentum of the inner optimiser where it is SGD or Muon", Min: 0, Max: 0.9999, Default: 0.9},
	{Name: "decay", Title: "weight decay", Unit: "coefficient", Doc: "of AdamW and Muon decoupled: every inner step shrinks x by eta_in*decay*x; of the others part of the gradient", Min: 0, Max: 1, Scale: Log},
}, OptimiserKnobsWithoutMomentum[1:]...)

// KnobH is the steps between two communications.
var KnobH = Knob{Name: "h", Title: "local steps", Unit: "steps", Doc: "steps of each member before it communicates (H in the sources)", Min: 1, Max: 10000, Default: 1, Integer: true, Scale: Log}

// SliceSteps is how many steps of a cycle of `length` the next round takes.
func (s Shape) SliceSteps(length string) int {
	left := s.K.I(length) - int(min(s.Phase, uint64(s.K.I(length))))
	return max(1, min(left, s.K.I("slice")))
}

// ends says whether the next round ends its cycle of `length`.
func (s Shape) EndsCycle(length string) bool {
	return s.Phase+uint64(s.SliceSteps(length)) >= uint64(s.K.I(length))
}
