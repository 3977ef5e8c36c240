// Package graph is the gorgonia engine: every model as a gorgonia graph, one execution per member. It covers all layer
// kinds of package models but convolutions in groups, and its gradients are held against float64 finite differences, so
// it is the engine for what no faster one covers and the judge of those that do.
//
//	e, err := graph.New(model, set, 2)
//	err = e.Do(ctx, engine.Gradients{X: x, Rows: rows, Batches: batches, G: g, Loss: loss})
//
// NewOwn takes a graph of one's own instead of a list of layers.
//
// Members run in parallel, each in a graph of its own thread; a graph is compiled once for a number of samples and
// kept. A row's bits depend neither on the cohort nor on the threads. Tasks without a model go to models/native.
package graph

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native"
)

// Engine runs tasks for one model and one data set. It is used from one goroutine.
type Engine struct {
	ram.Memory
	model   *models.Model
	own     *Own  // nil: a list of layers
	values  int64 // of an own graph, for a sample
	images  bool  // samples go in as images, not flat
	set     *data.Set
	vector  *native.Vector
	workers []*worker
	bounds  engine.Bounds
}

// UncoveredError says that gorgonia has nothing for a layer, and why.
type UncoveredError struct {
	Model string
	Layer int // counted from 1
	Why   string
}

func (e *UncoveredError) Error() string {
	return fmt.Sprintf("model %s: layer %d: %s; the native engine computes it (BROOD_ENGINE=native)", e.Model, e.Layer,
		e.Why)
}

// New checks that the set's images and classes are the model's. Fewer than one thread counts as one.
func New(m *models.Model, d *data.Set, threads int) (*Engine, error) {
	if m == nil || d == nil {
		return nil, errors.New("graph: needs a model and a data set")
	}
	if err := m.Fits(d.Info); err != nil {
		return nil, fmt.Errorf("graph: data %s: %w", d.Name, err)
	}
	if m.Int8 {
		return nil, &UncoveredError{m.Name, 1, "gorgonia has no arithmetic of whole numbers"}
	}
	for i := range m.Layers {
		if l := &m.Layers[i]; l.Groups > 1 {
			return nil, &UncoveredError{m.Name, i + 1, "gorgonia has no convolution in groups"}
		}
	}
	threads = max(1, threads)
	v, err := native.New(m.Layout, threads)
	if err != nil {
		return nil, err
	}
	e := &Engine{model: m, images: images(m), set: d, vector: v, bounds: m.Bounds(d)}
	for i := range threads {
		e.workers = append(e.workers, &worker{e: e, lane: i, nets: map[netKey]*net{}})
	}
	return e, nil
}

// Kernels names what computes: results are equal to the bit only where this is equal.
func (e *Engine) Kernels() string { return "gorgonia/gonum/" + runtime.GOARCH }

// Do runs the tasks in order; their outputs are readable when it returns. It stops at the first error.
func (e *Engine) Do(ctx context.Context, tasks ...engine.Task) error {
	for _, t := range tasks {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch t := t.(type) {
		case engine.Gradients:
			err = e.gradients(ctx, t)
		case engine.Evaluate:
			err = e.evaluate(ctx, t)
		case engine.Statistics:
			err = e.statistics(ctx, t)
		case engine.Candidates:
			err = e.candidates(ctx, t)
		default:
			err = e.vector.Do(ctx, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nodes is how many values of its result's size a layer is made of.
func nodes(k models.Kind) int64 {
	switch k {
	case models.LayerNorm:
		return 8
	case models.GELU, models.LeakyReLU:
		return 5
	case models.SiLU:
		return 2
	}
	return 1
}

// Room predicts the memory of the graphs of all threads: parameters with their gradients, and for every size of batch
// every layer's values, a convolution's patches among them. A value costs 16 bytes, as measured. Sums of noise are the
// native engine's.
func (e *Engine) Room(w engine.Work) int64 {
	acts := e.values
	for _, l := range e.model.Layers {
		acts += nodes(l.Kind) * int64(models.Size(l.Out))
		if l.Kind == models.Conv || l.Kind == models.AvgPool {
			acts += int64(l.In[0]*l.Kernel*l.Kernel) * int64(models.Size(l.Out[1:]))
		}
	}
	return e.vector.Room(w) + int64(len(e.workers))*(4*4*int64(e.model.Layout.Params)+
		int64(max(w.Gradients, w.Batch)+max(w.Scores, w.Own))*acts*16)
}
