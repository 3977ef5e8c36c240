// Package native executes tasks with the CPU kernels of models/native/kernel: models by a plan (Engine), and tasks that
// need no model on any layout (Vector). It imports models, their data and noise.
//
//	e, err := native.NewEngine(model, set, 2, kernel.Best())
//	err = e.Do(ctx, engine.Gradients{X: x, Rows: rows, Batches: batches, G: g, Loss: loss})
//
// A plan is the list of the model's layers as operations on preallocated activations. Each thread has its own kernels
// and buffers, so that a step allocates nothing once these have grown to its batch size. Members run in parallel, one
// per thread; threads without a member help the others layer by layer (helper.go). Vector tasks are divided by columns:
// each element is computed by one goroutine, with rows and statements in order. The bits therefore depend neither on
// the number of threads nor on the other members. Each layer has a file with a type that has forward and backward
// methods, and a case in plan.go. backward.go assigns the gradient buffers.
package native

import (
	"context"
	"fmt"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native/kernel"
)

// tile is the number of columns processed at once by an update program, so that they stay in the first-level cache.
const tile = 1024

// grain is the minimum number of elements of work per additional thread.
const grain = 64 * tile

// Vector runs tasks on vectors of one layout. It is used from one goroutine.
type Vector struct {
	ram.Memory
	layout  *engine.Layout
	threads []*thread   // one per executor thread; the first is the caller's
	helpers []*helper   // of all threads but the first
	columns columnJob   // the current split
	prog    []statement // of the current update
	ids     []uint32
	scale   []float32
	whole   []int32
	polar   polar
}

// thread is the state of one executor thread: its kernels, and scratch memory for the current statement, sum and noise.
type thread struct {
	*kernel.Kernels
	c           []float32
	x           [][]float32
	mapped      []float32   // one tile of a statement with a factor
	operands    [][]float32 // of the current sum, one tile each
	spare       [][]float32 // tiles for partial sums
	bytes       []byte      // of the current digest
	factors     factors
	left, right []float32 // low-rank factors of several candidates
}

// New returns a Vector for a layout, with the kernel variant requested by the environment, or the best one. threads
// below 1 counts as 1. It fails if the tensors of the layout are not contiguous whole rows.
func New(layout engine.Layout, threads int) (*Vector, error) {
	variant, err := kernel.FromEnv()
	if err != nil {
		return nil, err
	}
	return NewVariant(layout, threads, variant)
}

// NewVariant is like New with a given kernel variant. All variants compute the same bits.
func NewVariant(layout engine.Layout, threads int, variant kernel.Variant) (*Vector, error) {
	at := 0
	for i, t := range layout.Tensors {
		if t.Lo != at || t.Len <= 0 || t.Cols <= 0 || t.Len%t.Cols != 0 {
			return nil, fmt.Errorf("layout: tensor %d (%s) covers [%d, %d) in rows of %d: "+
				"tensors must follow each other in whole rows", i, t.Name, t.Lo, t.Lo+t.Len, t.Cols)
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
		v.threads = append(v.threads, &thread{Kernels: k})
	}
	for _, l := range v.threads[1:] {
		v.helpers = append(v.helpers, newHelper(l))
	}
	return v, nil
}

// Do runs the tasks in order and stops at the first error. The results of earlier tasks remain.
func (v *Vector) Do(ctx context.Context, tasks ...engine.Task) error {
	return engine.InOrder(ctx, tasks, func(_ context.Context, t engine.Task) error { return v.do(t) })
}

func (v *Vector) do(t engine.Task) error {
	if err := v.layout.Vector(t, owned); err != nil {
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
	case engine.CopyColumns:
		return v.copyColumns(t)
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

// Inline reports whether tasks run only on the goroutine that calls Do.
func (v *Vector) Inline() bool { return len(v.threads) == 1 }

// split divides [0, n) into ranges [lo, hi), whose sizes except the last are multiples of unit, calls f for them in
// parallel on different threads, and returns when all calls have returned. cost is the elements of work per element of
// [0, n).
func (v *Vector) split(n, unit, cost int, f func(k *thread, lo, hi int)) {
	parts := min(len(v.threads), n*cost/grain)
	if parts <= 1 {
		f(v.threads[0], 0, n)
		return
	}
	step := (n/parts + unit) / unit * unit
	v.columns = columnJob{f, n, step}
	runParallel(&v.columns, (n+step-1)/step, v.threads[0], v.helpers)
	v.columns = columnJob{}
}

// columnJob is the parallelBody of split: [0, n) in ranges of step elements.
type columnJob struct {
	f       func(k *thread, lo, hi int)
	n, step int
}

func (w *columnJob) do(s portion, l *thread) {
	for i := s.lo; i < s.hi; i++ {
		w.f(l, i*w.step, min(w.n, (i+1)*w.step))
	}
}

// pool is an engine.Pool: it runs n loops in parallel. n must not exceed the number of threads.
func (v *Vector) pool(n int, loop func(i int)) {
	runParallel(loopBody(loop), n, v.threads[0], v.helpers)
}

// loopBody is the parallelBody of pool: a unit is one call.
type loopBody func(i int)

func (w loopBody) do(s portion, _ *thread) {
	for i := s.lo; i < s.hi; i++ {
		w(i)
	}
}

// flat returns the elements of m; nil if it has no host memory.
func flat(m engine.Mat) []float32 { return ram.View(m).F }

// row returns row r of m.
func row(m engine.Mat, r engine.Row) []float32 { return ram.View(m).Row(r) }

// owned reports whether m has host memory.
func owned(m engine.Mat) bool { return flat(m) != nil }
