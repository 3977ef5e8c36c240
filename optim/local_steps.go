package optim

import (
	"context"
	"iter"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
)

// CohortSize is the number of members that take all their steps before the next members start, on an engine whose
// threads work on the same members. Their rows stay in the caches between steps, and only they need gradient memory. It
// does not affect results.
const CohortSize = 16

// Cohorts yields ranges [lo, hi) of at most `most` rows that partition n rows.
func Cohorts(n, most int) iter.Seq2[int, int] {
	return func(yield func(lo, hi int) bool) {
		for lo := 0; lo < n; lo += most {
			if !yield(lo, min(n, lo+most)) {
				return
			}
		}
	}
}

// atOnce returns the maximum number of members whose steps are computed at the same time.
func (e *Env) atOnce() int {
	if t, ok := e.Engine.(engine.Threaded); ok {
		return max(CohortSize, t.Threads())
	}
	return CohortSize
}

// CohortScratch returns scratch with a parameter row for each of n members that step at the same time, as
// [Env.InCohorts] addresses it.
func (e *Env) CohortScratch(n int) engine.Mat { return e.Scratch(min(n, e.atOnce()), e.Layout.Params) }

// InCohorts calls f for ranges [lo, hi) that partition n rows of members whose steps are independent of each other. at
// is the first of their rows in CohortScratch. On an engine with executor threads ([engine.ThreadedEngine]) each thread
// runs all steps of one member: f is called concurrently, each call with a copy of the Env, on which it may call
// Engine.Do, but neither Scratch nor Comm. The remaining members, fewer than there are threads, step together, as do
// all members if joint is true.
func (e *Env) InCohorts(ctx context.Context, n int, joint bool, f func(e *Env, lo, hi int, at engine.Row) error) error {
	single, most := 0, CohortSize // single rows step on one thread each
	if !joint {
		most = e.atOnce()
	}
	// On other engines tasks may still be queued, so that steps are not reported.
	threaded, ok := e.Engine.(engine.ThreadedEngine)
	stepped := e.Stepped
	if !ok || stepped == nil {
		stepped = func(int) {}
	}
	if ok && !joint {
		var threads []threadEngine
		for i, one := range threaded.ThreadEngines() {
			threads = append(threads, threadEngine{e.Engine, one, engine.Row(i)})
		}
		single = n - n%len(threads)
		looks := make([][]look, single)
		err := engine.Each(ctx, threads, single, func(t threadEngine, i int) error {
			one := *e
			one.Engine, one.onThread, one.looks = t, true, nil
			err := f(&one, i, i+1, t.at)
			looks[i] = one.looks
			stepped(1)
			return err
		})
		if err != nil {
			return err
		}
		e.looks = append(e.looks, slices.Concat(looks...)...)
	}
	for lo, hi := range Cohorts(n-single, most) {
		if err := f(e, single+lo, single+hi, 0); err != nil {
			return err
		}
		stepped(hi - lo)
	}
	return nil
}

// threadEngine is an engine whose Do runs on one executor thread; at is the row of that thread in CohortScratch.
type threadEngine struct {
	engine.Engine
	one engine.Doer
	at  engine.Row
}

// Do implements [engine.Engine].
func (t threadEngine) Do(ctx context.Context, tasks ...engine.Task) error {
	return t.one.Do(ctx, tasks...)
}

// StepTasks returns the tasks of one step of the member in row r along its gradient g (1 row). It may be called
// concurrently, with the Env of the member's cohort, and must write only state of that member.
type StepTasks func(e *Env, r engine.Row, g engine.Mat) []engine.Task

// TakeSteps takes the given number of steps with the members of s: their gradients, then the tasks of update for each.
// s.G is CohortScratch.
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

// RowOptimiser returns the optimiser of the member in row r of block x, and the weight decay that is added to its
// gradient in addition to the decay of the Step. Only Eta and Decay may differ between rows. It may be called
// concurrently for different rows.
type RowOptimiser func(r engine.Row) (d Optimiser, decay float32)

// By returns the RowOptimiser that is d for every row.
func By(d Optimiser) RowOptimiser { return func(engine.Row) (Optimiser, float32) { return d, 0 } }

// OptimiserSteps takes the given number of steps of block x with the members of s, each by its optimiser. An engine
// that is an [engine.Stepper] takes them in one task.
func OptimiserSteps(ctx context.Context, e *Env, s Step, steps int, by RowOptimiser) error {
	if len(s.Rows) > 0 {
		if d, _ := by(s.Rows[0]); e.stepsItself(d) {
			return e.stepTask(ctx, s, slices.Repeat([]int{steps}, len(s.Rows)), by, Anchored{})
		}
	}
	return TakeSteps(ctx, e, s, steps, func(e *Env, r engine.Row, g engine.Mat) []engine.Task {
		d, decay := by(r)
		x := e.Block(BlockX).Sub(r, 1)
		if decay > 0 {
			return e.OptimiserTasks(d, x, r, g, Assign(g, T(1, g), T(decay, x)))
		}
		return e.OptimiserTasks(d, x, r, g)
	})
}

// stepsItself reports whether the engine takes the steps of an optimiser itself.
func (e *Env) stepsItself(d Optimiser) bool {
	st, ok := e.Engine.(engine.Stepper)
	return ok && st.Steps(d.Name)
}

// Anchored adds to each of the steps of a [Step] a pull to an anchor, as part of the gradient, and a running mean:
//
//	g += Pull*(x - anchor);  the step;  mean <- Alpha*mean + (1-Alpha)*x
//
// Row s.Rows[i] of Anchor and Mean belongs to entry i.
type Anchored struct {
	Anchor, Mean engine.Mat
	Pull, Alpha  float32
}

// AnchoredSteps takes the given number of steps of s.X with the members of s by the optimiser d, if the engine takes
// such steps itself; done reports whether it does.
func AnchoredSteps(ctx context.Context, e *Env, s Step, steps int, d Optimiser, a Anchored) (done bool, err error) {
	if !e.stepsItself(d) {
		return false, nil
	}
	return true, e.stepTask(ctx, s, slices.Repeat([]int{steps}, len(s.Rows)), By(d), a)
}

// stepTask has the engine take steps[i] steps with the member in s.Rows[i], and advances its data stream and the step
// count of its optimiser.
func (e *Env) stepTask(ctx context.Context, s Step, steps []int, by RowOptimiser, a Anchored) error {
	d, _ := by(s.Rows[0])
	t := engine.Steps{
		Optimiser: d.Name,
		X:         s.X,
		XRows:     s.XRows,
		Anchor:    a.Anchor,
		Mean:      a.Mean,
		Pull:      a.Pull,
		Alpha:     a.Alpha,
		Stats:     e.Block(BlockStats),
		Rows:      s.Rows,
		Mu:        d.Mu,
		B1:        d.Beta1,
		B2:        d.Beta2,
		Eps:       AdamEpsilon,
		Clip:      s.Clip,
		Loss:      s.Loss,
	}
	cursor, counts := e.Record(BlockCursor), engine.Host{}
	switch d.Name {
	case "sgd":
		t.M = e.Block(BlockM)
	case engine.Program:
		t.State = e.Record(BlockState)
	default:
		first, second, count := moments(d.Name, d.HiddenOnly)
		t.M, t.V, counts = e.Block(first), e.Block(second), e.Record(count)
	}
	for i, r := range s.Rows {
		m, at := e.Mine[r], cursor.URow(r)
		batches, masks := make([][]int32, steps[i]), make([]noise.Key, steps[i])
		for k := range batches {
			batches[k], masks[k] = e.nextBatch(m, at, s)
		}
		own, decay := by(r)
		step := engine.RowSteps{Batches: batches, Masks: masks, Eta: own.Eta, Coupled: s.Decay + decay, Decay: own.Decay}
		if counts.Rows > 0 {
			taken := counts.URow(r)
			step.T = taken[0]
			taken[0] += uint64(steps[i])
		}
		t.Entries = append(t.Entries, step)
	}
	if err := e.Engine.Do(ctx, t); err != nil {
		return err
	}
	if e.Stepped != nil {
		e.Stepped(len(s.Rows))
	}
	return nil
}

// DefaultStep returns the step of block x by the optimiser of the knobs eta and momentum.
func DefaultStep(k Values) StepTasks { return StepBy(k.Optimiser("eta", "momentum")) }

// StepBy returns the step of block x by an optimiser.
func StepBy(d Optimiser) StepTasks {
	return func(e *Env, r engine.Row, g engine.Mat) []engine.Task {
		return e.OptimiserTasks(d, e.Block(BlockX).Sub(r, 1), r, g)
	}
}

// LocalRound takes the steps of one round of an algorithm whose members train independently for h steps (a knob), at
// most slice of them per round, and advances block phase. ends reports whether the cycle is complete, so that members
// communicate now.
func LocalRound(ctx context.Context, e *Env, k Values) (rep Report, ends bool, err error) {
	n := len(e.Mine)
	loss, steps := make([]*float32, n), e.Shape(k).SliceSteps("h")
	if err := LocalSteps(ctx, e, k, engine.Rows(n), steps, e.CohortScratch(n), loss); err != nil {
		return Report{}, false, err
	}
	rep = e.ReportSteps(k, int64(len(e.Roster.Members)*steps))
	rep.Points = e.LatePointsOf("loss", loss)
	return rep, e.AdvanceCycle(k, "h", steps), nil
}

// InnerRound is LocalRound with steps of the inner optimiser (InnerKnobs).
func InnerRound(ctx context.Context, e *Env, k Values) (rep Report, ends bool, err error) {
	loss, steps := make([]float32, len(e.Mine)), e.Shape(k).SliceSteps("h")
	if err := e.InnerSteps(ctx, k, steps, loss); err != nil {
		return Report{}, false, err
	}
	rep = e.ReportSteps(k, int64(len(e.Roster.Members)*steps))
	rep.Points = e.LatePoints("loss", loss)
	return rep, e.AdvanceCycle(k, "h", steps), nil
}

// LocalSteps takes h optimiser steps with the members in rows. g is CohortScratch. last, indexed by row, receives
// pointers to their last losses, valid after the engine's Wait.
func LocalSteps(ctx context.Context, e *Env, k Values, rows []engine.Row, h int, g engine.Mat, last []*float32) error {
	steps := make([]int, len(rows))
	for i := range steps {
		steps[i] = h
	}
	return UnevenSteps(ctx, e, k, rows, steps, g, last)
}

// UnevenSteps is LocalSteps with a number of steps for each row. It does not change last of a row without steps.
func UnevenSteps(ctx context.Context, e *Env, k Values, rows []engine.Row, steps []int, g engine.Mat,
	last []*float32) error {
	if d := k.Optimiser("eta", "momentum"); e.stepsItself(d) {
		var now []engine.Row
		var counts []int
		for i, r := range rows {
			if steps[i] > 0 {
				now, counts = append(now, r), append(counts, steps[i])
			}
		}
		if len(now) == 0 {
			return nil
		}
		loss := make([]float32, len(now))
		for i, r := range now {
			last[r] = &loss[i]
		}
		return e.stepTask(ctx, e.GradientStep(k, e.Block(BlockX), now, engine.Mat{}, loss), counts, By(d), Anchored{})
	}
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

// InnerSteps takes the given number of steps of the inner optimiser (InnerKnobs) with every member hosted here. loss
// receives their last losses, valid after the engine's Wait.
func (e *Env) InnerSteps(ctx context.Context, k Values, steps int, loss []float32) error {
	n := len(e.Mine)
	s := e.GradientStep(k, e.Block(BlockX), engine.Rows(n), e.CohortScratch(n), loss)
	return OptimiserSteps(ctx, e, s, steps, By(k.Optimiser("eta_in", "momentum_in")))
}

// KnobOuterEta is the rate of an outer step, which follows a cycle of inner steps.
var KnobOuterEta = Knob{
	Name:    "eta",
	Label:   "η",
	Title:   "outer learning rate",
	Doc:     "step size of the outer step on the agreed model, or on the part of it that was exchanged",
	Min:     0,
	Max:     100,
	Default: 0.7,
	Scale:   Log,
}

// InnerKnobs are the knobs of an inner optimiser, by default AdamW, that InnerSteps reads.
var InnerKnobs = OrProgram(append([]Knob{
	{
		Name:    "eta_in",
		Label:   "η_in",
		Title:   "inner learning rate",
		Doc:     "step size of the inner optimiser",
		Min:     0,
		Max:     100,
		Default: 0.001,
		Scale:   Log,
	},
	knobOptimiser.Choosing("adamw"),
	{
		Name:    "momentum_in",
		Label:   "μ_in",
		Title:   "inner momentum",
		Doc:     "momentum of the inner optimiser if it is SGD or Muon",
		Only:    When{"optimiser", []string{"sgd", "muon"}},
		Min:     0,
		Max:     0.9999,
		Default: 0.9,
	},
	{
		Name:  "decay",
		Title: "weight decay",
		Unit:  "coefficient",
		Doc:   "decoupled with AdamW and Muon: every inner step shrinks x by eta_in*decay*x; else part of the gradient",
		Min:   0,
		Max:   1,
		Scale: Log,
	},
}, OptimiserKnobsWithoutMomentum[1:]...))

// KnobH is the number of steps between two communications.
var KnobH = Knob{
	Name:    "h",
	Title:   "local steps",
	Unit:    "steps",
	Doc:     "steps of each member before it communicates (H in the sources)",
	Min:     1,
	Max:     10000,
	Default: 1,
	Integer: true,
	Scale:   Log,
}

// SliceSteps returns the number of steps of the next round in a cycle whose length is the value of the knob `length`.
func (s Shape) SliceSteps(length string) int {
	left := s.K.I(length) - int(min(s.Phase, uint64(s.K.I(length))))
	return max(1, min(left, s.K.I("slice")))
}

// AdvanceCycle counts the steps of a round in block phase. It reports whether they complete the cycle, whose number of
// steps is the value of the knob length; the next cycle then begins.
func (e *Env) AdvanceCycle(k Values, length string, steps int) (ends bool) {
	phase := e.Record(BlockPhase).U
	if ends = e.Shape(k).EndsCycle(length); ends {
		phase[0] = 0
	} else {
		phase[0] += uint64(steps)
	}
	return ends
}

// EndsCycle reports whether the next round completes its cycle.
func (s Shape) EndsCycle(length string) bool {
	return s.Phase+uint64(s.SliceSteps(length)) >= uint64(s.K.I(length))
}
