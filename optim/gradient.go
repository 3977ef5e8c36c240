package optim

import (
	"context"

	"brood/models/data"
	"brood/models/engine"
	"brood/models/noise"
	"brood/optim/collective"
)

// Step is one mini-batch gradient computation for some members.
type Step struct {
	X     engine.Mat   // parameters
	XRows []engine.Row // row of X of each entry of Rows
	Rows  []engine.Row // positions in Mine of the members that step
	G     engine.Mat   // out: a row per entry of Rows
	Loss  []float32    // out, after the engine's Wait: one per entry of Rows
	Batch int
	Clip  float32 // maximum norm of a gradient, applied before Decay; 0: none
	Decay float32 // weight decay: G += Decay*X
	Joint bool    // all threads compute the optimiser's step of one member at a time, see [Env.InCohorts]

	next []engine.Draw // batches to announce, see [engine.Gradients]
}

// GradientStep returns the step of the members in the given rows of Mine, at the same rows of x, with the values of the
// knobs [MemberStream]. A knob that the algorithm does not declare has its default.
func (e *Env) GradientStep(k Values, x engine.Mat, rows []engine.Row, g engine.Mat, loss []float32) Step {
	s := Step{
		X:     x,
		XRows: rows,
		Rows:  rows,
		G:     g,
		Loss:  loss,
		Batch: k.I("batch"),
		Clip:  k.Clip(),
		Decay: k.F("decay"),
		Joint: k.Orthogonalises(),
	}
	if k.DecouplesDecay() {
		s.Decay = 0
	}
	return s
}

// Clip returns the maximum norm of a gradient, 0 for none.
func (v Values) Clip() float32 {
	if v.Has(KnobClip.Name) {
		return v.F(KnobClip.Name)
	}
	return float32(KnobClip.Default)
}

// MemberGradients draws each member's next mini-batch from its data stream, advances its cursor (block cursor) and
// queues the gradients, clipping and weight decay. Mini-batches and dropout masks are functions of (member, cursor) and
// so do not depend on placement.
func MemberGradients(ctx context.Context, e *Env, s Step) error {
	cursor := e.Record(BlockCursor)
	batches, masks, ahead := make([][]int32, len(s.Rows)), make([]noise.Key, len(s.Rows)), e.ahead()
	for i, r := range s.Rows {
		m, at := e.Mine[r], cursor.URow(r)
		if ahead > 0 {
			var next engine.Draw
			next.Batch, next.Mask = e.nextBatch(m, []uint64{at[0] + uint64(ahead*s.Batch)}, s)
			s.next = append(s.next, next)
		}
		batches[i], masks[i] = e.nextBatch(m, at, s)
	}
	return e.Gradients(ctx, s, batches, masks)
}

// ahead returns how many gradients later a member takes the batch that its gradient announces, 0 for no announcements.
func (e *Env) ahead() int {
	if a, ok := e.Engine.(engine.Ahead); ok {
		return a.Ahead(len(e.Mine))
	}
	return 0
}

// nextBatch draws the next mini-batch of a member and the address of its dropout masks, and advances its cursor.
func (e *Env) nextBatch(m engine.Member, cursor []uint64, s Step) (batch []int32, mask noise.Key) {
	batch = e.Stream(m, cursor[0], s.Batch)
	mask = e.Rand(noise.Dropout, cursor[0], m)
	mask.Stream = uint32(e.Samples(m))
	cursor[0] += uint64(s.Batch)
	return batch, mask
}

// Gradients queues the gradients of a step on the given mini-batches and dropout masks, one per entry of s.Rows, then
// clipping and weight decay.
func (e *Env) Gradients(ctx context.Context, s Step, batches [][]int32, masks []noise.Key) error {
	tasks := []engine.Task{engine.Gradients{
		X:        s.X,
		Rows:     s.XRows,
		Batches:  batches,
		Stats:    e.Block(BlockStats),
		StatRows: s.Rows,
		Masks:    masks,
		Next:     s.next,
		G:        s.G.Sub(0, len(s.Rows)),
		Loss:     s.Loss,
	}}
	tasks = append(tasks, e.norms(s)...)
	return e.Engine.Do(ctx, append(tasks, s.Regularise()...)...)
}

// Regularise returns the tasks that follow the gradients of a step: clipping, then weight decay.
func (s Step) Regularise() (tasks []engine.Task) {
	if s.Clip > 0 {
		tasks = append(tasks, engine.Clip{X: s.G.Sub(0, len(s.Rows)), Longest: s.Clip})
	}
	if s.Decay > 0 {
		for i := range s.Rows {
			g := s.G.Sub(engine.Row(i), 1)
			tasks = append(tasks, Update(1, Assign(g, T(1, g), T(s.Decay, s.X.Sub(s.XRows[i], 1)))))
		}
	}
	return tasks
}

// ReportSteps returns the report of a round in which members took steps mini-batch steps in total, on one data stream
// per member.
func (e *Env) ReportSteps(k Values, steps int64) Report {
	samples := steps * int64(k.I("batch"))
	return Report{Steps: steps, Samples: samples, Pass: Pass{samples, e.passSamples()}}
}

// batch draws samples of a stream over ids into dst, unless the engine computes nothing.
func (e *Env) batch(dst, ids []int32, of noise.Key, cursor uint64, w data.Window) {
	if !e.MetaOnly {
		data.Batch(dst, ids, of, cursor, w)
	}
}

// SharedBatch writes sample ids [at, at+len(dst)) of the single data stream of a shared model to dst.
func (e *Env) SharedBatch(dst []int32, at uint64) {
	all := e.Data.Train()
	e.batch(dst, all, e.Rand(noise.Order, 0, 0), at, data.Window{Len: len(all)})
}

// SharedBatchKey returns the key that identifies the mini-batch at position at of the shared stream, see
// [engine.Evaluate].
func (e *Env) SharedBatchKey(at uint64) noise.Key { return e.Rand(noise.Order, at, 0) }

// SharedGradient writes the mean over all members of the gradients at the shared model x (1 row) to mean. Each member
// computes the gradient of its part of the next global batch of the shared stream. g is scratch with a row per member
// of Mine. It returns the losses of the members hosted here, valid after the engine's Wait.
func SharedGradient(ctx context.Context, e *Env, k Values, op collective.Op, x, g, mean engine.Mat) ([]float32, error) {
	n, mine, b := len(e.Roster.Members), len(e.Mine), k.I("batch")
	at := e.Record(BlockCursor).U
	batches, masks, loss, ahead := make([][]int32, mine), make([]noise.Key, mine), make([]float32, mine), e.ahead()
	s := e.GradientStep(k, x, engine.Rows(mine), g, loss)
	s.XRows = make([]engine.Row, mine)
	draw := func(pos uint64) (batch []int32, mask noise.Key) {
		batch = make([]int32, b)
		e.SharedBatch(batch, pos)
		return batch, e.Rand(noise.Dropout, pos, 0)
	}
	for i, m := range e.Mine {
		pos := at[0] + uint64(e.Roster.Rank(m)*b)
		batches[i], masks[i] = draw(pos)
		if ahead > 0 {
			var next engine.Draw
			next.Batch, next.Mask = draw(pos + uint64(ahead*n*b))
			s.next = append(s.next, next)
		}
	}
	at[0] += uint64(n * b)
	if err := e.Gradients(ctx, s, batches, masks); err != nil {
		return nil, err
	}
	return loss, e.AllReduceMean(ctx, k, op, g, mean)
}

// ReportSharedSteps returns the report of the given number of steps on the shared stream.
func (e *Env) ReportSharedSteps(k Values, steps int64) Report {
	samples := steps * int64(len(e.Roster.Members)*k.I("batch"))
	return Report{Steps: steps, Samples: samples, Pass: Pass{samples, int64(len(e.Data.Train()))}}
}
