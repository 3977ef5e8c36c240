// Package native computes on the CPU kernels of models/native/kernel: whole models by a plan (Engine), and the tasks
// that need no model on any layout (Vector). It imports models, their data and noise.
//
//	e, err := native.NewEngine(model, set, 2, kernel.Best())
//	err = e.Do(ctx, engine.Gradients{X: x, Rows: rows, Batches: batches, G: g, Loss: loss})
//
// A plan is the model's layers as operations on fixed activations; each thread has kernels and buffers of its own, so
// that a step allocates nothing once they have grown to its batch. Members run in parallel, one a thread; threads
// without a member help the others, layer by layer (helper.go). Vector tasks are cut by columns, an element being
// computed by one goroutine with rows and statements in order. So bits depend neither on the threads nor on the cohort.
// A layer is a file with a type that goes forward and back, and a line in plan.go; backward.go works out where the
// gradients lie.
package native

import (
	"context"
	"fmt"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native/kernel"
)

// tile is the columns over which a programme runs while they are in the first-level cache.
const tile = 1024

// grain is the least number of elements worth a goroutine of its own.
const grain = 64 * tile

// Vector runs tasks on vectors of one layout. It is used from one goroutine.
type Vector struct {
	ram.Memory
	layout  *engine.Layout
	lanes   []*lane     // one a thread
	helpers []*helper   // of the lanes but for the first
	cut     stretches   // under way
	prog    []statement // of the present update
	ids     []uint32
	scale   []float32
	whole   []int32
	polar   polar
}

// lane is one thread's kernels, the operands of its present statement, those of its present sum and the factors of its
// present noise.
type lane struct {
	*kernel.Kernels
	c           []float32
	x           [][]float32
	mapped      []float32   // a tile of a statement with a factor
	operands    [][]float32 // of the present sum, over a tile
	spare       [][]float32 // tiles for its partial sums
	bytes       []byte      // of the present digest
	factors     factors
	left, right []float32 // of many candidates
}

// New checks the layout and takes the variant that the environment asks for, or the best. Fewer than one thread counts as
// one.
func New(layout engine.Layout, threads int) (*Vector, error) {
	variant, err := kernel.FromEnv()
	if err != nil {
		return nil, err
	}
	return NewVariant(layout, threads, variant)
}

// NewVariant is New with a variant of one's own choice: these tasks give the same bits on all of them.
func NewVariant(layout engine.Layout, threads int, variant kernel.Variant) (*Vector, error) {
	at := 0
	for i, t := range layout.Tensors {
		if t.Lo != at || t.Len <= 0 || t.Cols <= 0 || t.Len%t.Cols != 0 {
			return nil, fmt.Errorf("layout: tensor %d (%s) covers [%d, %d) in rows of %d: tensors must follow each other in whole rows", i, t.Name, t.Lo, t.Lo+t.Len, t.Cols)
		}
		at += t.Len
	}
	if at != layout.Params {
		return nil, fmt.Errorf("layout: tensors cover %d of %d parameters", at, layout.Params)
	}
	v := &Vector{layout: &layout}
	for range max(1, threads) {
		k, err := kernel.New(variant)
		if err != nil {
			return nil, err
		}
		v.lanes = append(v.lanes, &lane{Kernels: k})
	}
	for _, l := range v.lanes[1:] {
		v.helpers = append(v.helpers, newHelper(l))
	}
	return v, nil
}

// Do runs the tasks in order and stops at the first error; earlier tasks keep their effect.
func (v *Vector) Do(ctx context.Context, tasks ...engine.Task) error {
	for _, t := range tasks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := v.do(t); err != nil {
			return err
		}
	}
	return nil
}

func (v *Vector) do(t engine.Task) error {
	if err := v.layout.Vector(t, held); err != nil {
		return err
	}
	switch t := t.(type) {
	case engine.Update:
		return v.update(t)
	case engine.Adam:
		return v.adam(t)
	case engine.Muon:
		return v.muon(t)
	case engine.NaturalStep:
		return v.naturalStep(t)
	case engine.Sum:
		return v.sum(t)
	case engine.Feedback:
		return v.feedback(t)
	case engine.Copy:
		return v.copy(t)
	case engine.Fill:
		return v.fill(t)
	case engine.Product:
		return v.product(t)
	case engine.Nudge:
		return v.nudge(t)
	case engine.Clip:
		return v.clip(t)
	case engine.Finite:
		return v.finite(t)
	case engine.Digest:
		return v.digest(t)
	case engine.NoiseSum:
		return v.noiseSum(t)
	case engine.Perturb:
		return v.perturb(t)
	case engine.Crossover:
		return v.crossover(t)
	case engine.Distance:
		return v.distance(t)
	}
	return &engine.UnsupportedError{Task: t}
}

// Inline says that tasks compute on the thread of who calls Do, and on no other.
func (v *Vector) Inline() bool { return len(v.lanes) == 1 }

// split calls f on pieces [lo, hi) that cover [0, n), whole multiples of unit but for the last, side by side on kernels
// of their own; cost is the elements of work per unit of n. It returns when all are done.
func (v *Vector) split(n, unit, cost int, f func(k *lane, lo, hi int)) {
	parts := min(len(v.lanes), n*cost/grain)
	if parts <= 1 {
		f(v.lanes[0], 0, n)
		return
	}
	step := (n/parts + unit) / unit * unit
	v.cut = stretches{f, n, step}
	jointly(&v.cut, (n+step-1)/step, v.lanes[0], v.helpers)
	v.cut = stretches{}
}

// stretches are [0, n) cut at whole steps, as a body.
type stretches struct {
	f       func(k *lane, lo, hi int)
	n, step int
}

func (w *stretches) do(s portion, l *lane) {
	for i := s.lo; i < s.hi; i++ {
		w.f(l, i*w.step, min(w.n, (i+1)*w.step))
	}
}

// crew runs n loops beside each other, of which there are no more than threads.
func (v *Vector) crew(n int, loop func(i int)) { jointly(loops(loop), n, v.lanes[0], v.helpers) }

// loops is a body, a unit being one call.
type loops func(i int)

func (w loops) do(s portion, _ *lane) {
	for i := s.lo; i < s.hi; i++ {
		w(i)
	}
}

// flat is the elements of m; nil where its memory is no engine's of the processor.
func flat(m engine.Mat) []float32 { return ram.View(m).F }

// row is row r of m.
func row(m engine.Mat, r engine.Row) []float32 { return ram.View(m).Row(r) }

// held says whether the memory of m is there.
func held(m engine.Mat) bool { return flat(m) != nil }
