// Package native runs the model-free tasks of brood on host memory in portable Go: linear programmes over rows, Adam,
// the reduction node, noise sums, perturbations, crossover and distances. It imports only models/engine and
// models/noise, so any engine may lean on it for the tasks that need no model.
//
//	v, _ := native.New(layout, 2)
//	err := v.Do(ctx, engine.Update{Rows: rows, Prog: prog})
//
// Work is cut by columns: an element is computed by one goroutine, rows and statements in order. The bits therefore
// depend neither on the number of threads nor on the cut. Products are rounded to float32 before they are added, which
// forbids the compiler to fuse, so that every architecture agrees.
package native

import (
	"context"
	"fmt"
	"sync"

	"brood/models/engine"
)

// tile is the columns over which a programme runs while they are in the first-level cache.
const tile = 1024

// grain is the least number of elements worth a goroutine of its own.
const grain = 32 * tile

// UnsupportedError says that a task needs a model.
type UnsupportedError struct{ Task engine.Task }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("unsupported task %T: it needs a model, give it to a model's engine", e.Task)
}

// ArgumentError says which argument of a task does not fit.
type ArgumentError struct {
	Task string // e.g. "update"
	What string
}

func (e *ArgumentError) Error() string { return e.Task + ": " + e.What }

func bad(task, format string, args ...any) error {
	return &ArgumentError{task, fmt.Sprintf(format, args...)}
}

// Vector runs tasks on vectors of one layout. It holds no state between calls and may be used from one goroutine at a time.
type Vector struct {
	layout  engine.Layout
	threads int
}

// New checks the layout. Fewer than one thread counts as one.
func New(layout engine.Layout, threads int) (*Vector, error) {
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
	return &Vector{layout, max(1, threads)}, nil
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
	switch t := t.(type) {
	case engine.Update:
		return v.update(t)
	case engine.Adam:
		return v.adam(t)
	case engine.TreeSum:
		return v.treeSum(t)
	case engine.NoiseSum:
		return v.noiseSum(t)
	case engine.Perturb:
		return v.perturb(t)
	case engine.Crossover:
		return v.crossover(t)
	case engine.Distance:
		return v.distance(t)
	}
	return &UnsupportedError{t}
}

// split calls f on pieces [lo, hi) that cover [0, n), whole multiples of unit but for the last, one goroutine a piece;
// cost is the elements of work per unit of n. It returns when all are done.
func (v *Vector) split(n, unit, cost int, f func(lo, hi int)) {
	k := min(v.threads, n*cost/grain)
	if k <= 1 {
		f(0, n)
		return
	}
	step := (n/k + unit) / unit * unit
	var wg sync.WaitGroup
	for lo := step; lo < n; lo += step {
		wg.Go(func() { f(lo, min(n, lo+step)) })
	}
	f(0, min(n, step))
	wg.Wait()
}

// fit checks that m is an F32 matrix of cols columns whose memory is all there.
func fit(task, name string, m engine.Mat, cols int) error {
	switch {
	case m.Type != engine.F32:
		return bad(task, "%s is %s, want f32", name, m.Type)
	case m.Cols != cols:
		return bad(task, "%s has %d columns, want %d", name, m.Cols, cols)
	case m.Rows < 0 || len(m.F) < m.Rows*m.Cols:
		return bad(task, "%s says %dx%d but holds %d elements", name, m.Rows, m.Cols, len(m.F))
	}
	return nil
}

func single(task, name string, m engine.Mat, cols int) error {
	if err := fit(task, name, m, cols); err != nil {
		return err
	}
	if m.Rows != 1 {
		return bad(task, "%s has %d rows, want 1", name, m.Rows)
	}
	return nil
}

func within(task, name string, m engine.Mat, rows []engine.Row) error {
	for _, r := range rows {
		if r < 0 || int(r) >= m.Rows {
			return bad(task, "row %d of %s, which has %d rows", r, name, m.Rows)
		}
	}
	return nil
}
