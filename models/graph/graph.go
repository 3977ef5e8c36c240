// Package graph is the gorgonia engine: every model becomes a gorgonia graph, executed once per member. It supports all
// layer kinds of package models except grouped convolutions, and its gradients are tested against float64 finite
// differences. It is therefore the engine for models that no faster one supports, and the reference for those that do.
//
//	e, err := graph.New(model, set, 2)
//	err = e.Do(ctx, engine.Gradients{X: x, Rows: rows, Batches: batches, G: g, Loss: loss})
//
// NewOwn takes a user-defined graph instead of a list of layers.
//
// Members run in parallel, and each thread has its graph. A graph is compiled once for a number of samples and
// reused. A row's bits depend neither on the other rows nor on the threads. models/native executes tasks without a
// model.
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
	values  int64 // elements per sample of the nodes of a user-defined graph
	images  bool  // samples are passed as images, not flat
	set     *data.Set
	vector  *native.Vector
	workers []*worker
	bounds  engine.Bounds
}

// UncoveredError reports a layer that gorgonia does not support, and why.
type UncoveredError struct {
	Model string
	Layer int // counted from 1
	Why   string
}

func (e *UncoveredError) Error() string {
	return fmt.Sprintf("model %s: layer %d: %s; the native engine computes it (BROOD_ENGINE=native)", e.Model, e.Layer,
		e.Why)
}

// New returns an engine. It fails if the data set does not fit the model. Fewer than one thread counts as one.
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

// Kernels returns the name of the arithmetic: results are equal to the bit only if it is equal.
func (e *Engine) Kernels() string { return "gorgonia/gonum/" + runtime.GOARCH }

// Do runs the tasks in order; their outputs are readable when it returns. It stops at the first error.
func (e *Engine) Do(ctx context.Context, tasks ...engine.Task) error {
	return engine.InOrder(ctx, tasks, e.do)
}

func (e *Engine) do(ctx context.Context, t engine.Task) error {
	switch t := t.(type) {
	case engine.Gradients:
		return e.gradients(ctx, t)
	case engine.Evaluate:
		return e.evaluate(ctx, t)
	case engine.Statistics:
		return e.statistics(ctx, t)
	case engine.Candidates:
		return e.candidates(ctx, t)
	}
	return e.vector.Do(ctx, t)
}

// nodes returns how many values of the size of its result a layer consists of.
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

// EstimateMemory estimates the memory of the graphs of all threads: parameters with their gradients, and for every
// batch size every layer's values, including a convolution's patches. A value costs 16 bytes, as measured. The native
// engine's estimate covers noise sums.
func (e *Engine) EstimateMemory(w engine.Work) int64 {
	acts := e.values
	for _, l := range e.model.Layers {
		acts += nodes(l.Kind) * int64(models.Size(l.Out))
		if l.Kind == models.Conv || l.Kind == models.AvgPool {
			acts += int64(l.In[0]*l.Kernel*l.Kernel) * int64(models.Size(l.Out[1:]))
		}
	}
	return e.vector.EstimateMemory(w) + int64(len(e.workers))*(4*4*int64(e.model.Layout.Params)+
		int64(max(w.Gradients, w.Batch)+max(w.Scores, w.Own))*acts*16)
}
