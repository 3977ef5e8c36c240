package native

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"brood/models"
	"brood/models/arith"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// Engine runs all tasks for one model and one data set on the kernels of one variant. It is used from one goroutine,
// except for its ThreadEngines.
type Engine struct {
	*Vector
	plan          *plan
	set           *data.Set
	bounds        engine.Bounds
	tables        []*kernel.ByteTable // normalisation tables of the data set, see byteTables
	passes        []*pass             // one per thread
	task          uint64              // number of candidate tasks so far
	whole         []wholeLayer        // layers of a whole-number model, whose plan has no ops
	bf16          bool                // bfloat16 arithmetic in the given order, see NewBF16
	order         kernel.Order
	threadEngines []engine.Doer // see ThreadEngines
}

// NewEngine returns an engine for a model and a data set. It fails with an UncoveredError if a layer has no kernels,
// and if the data do not fit the model.
func NewEngine(m *models.Model, d *data.Set, threads int, variant kernel.Variant) (*Engine, error) {
	if m == nil || d == nil {
		return nil, errors.New("native: needs a model and a data set")
	}
	if err := m.Fits(d.Info); err != nil {
		return nil, fmt.Errorf("native: data %s: %w", d.Name, err)
	}
	v, err := NewVariant(m.Layout, threads, variant)
	if err != nil {
		return nil, err
	}
	pl := &plan{model: m}
	if m.Int8 {
		err = wholeFits(m, d)
	} else {
		pl, err = compile(m)
	}
	if err != nil {
		return nil, err
	}
	e := &Engine{Vector: v, plan: pl, set: d, bounds: m.Bounds(d)}
	if m.Int8 {
		e.whole = wholeLayers(m)
	} else {
		e.tables = byteTables(d)
	}
	for _, k := range v.threads {
		e.passes = append(e.passes, newPass(pl, k, e.tables))
	}
	return e, nil
}

// NewBF16 is like NewEngine with the arithmetic arith.BF16: the operands of dense layers are rounded to bfloat16 in
// candidate evaluations, which AMD CPUs with AVX512_BF16 multiply up to 1.9 times as fast. Noise of low rank and
// gradients are not affected.
func NewBF16(m *models.Model, d *data.Set, threads int, variant kernel.Variant) (*Engine, error) {
	return newRounded(m, d, threads, variant, kernel.Pairs, "bf16")
}

// NewAMX is like NewBF16 with the arithmetic arith.AMX, whose summation order is the order of AMX tiles. It rounds
// convolutions too. CPUs with AMX multiply several times as fast.
func NewAMX(m *models.Model, d *data.Set, threads int, variant kernel.Variant) (*Engine, error) {
	return newRounded(m, d, threads, variant, kernel.Blocks, "amx")
}

// newRounded returns an engine with bfloat16 products in the given order. word is the user's option for it, for errors.
func newRounded(
	m *models.Model, d *data.Set, threads int, variant kernel.Variant, order kernel.Order, word string,
) (*Engine, error) {
	if m != nil && m.Int8 {
		return nil, fmt.Errorf("native: model %s computes in whole numbers, without products in bfloat16: "+
			"leave %s out", m.Name, word)
	}
	e, err := NewEngine(m, d, threads, variant)
	if err != nil {
		return nil, err
	}
	what := "no dense layer"
	if order == kernel.Blocks {
		what += fmt.Sprintf(" and no convolution of %d input channels or more", kernel.LeastBlocks)
	}
	if !slices.ContainsFunc(e.plan.ops, func(o op) bool {
		_, is := o.(*dense)
		c, convolves := o.(*conv)
		return is || convolves && c.inBlocks(order)
	}) {
		return nil, fmt.Errorf("native: model %s has %s, so %s changes nothing: leave it out", m.Name, what, word)
	}
	e.bf16, e.order = true, order
	return e, nil
}

// Kernels returns the name of the arithmetic. Engines with the same name compute the same bits, independent of variant,
// threads and machine.
func (e *Engine) Kernels() string {
	switch {
	case e.bf16 && e.order == kernel.Blocks:
		return arith.AMX
	case e.bf16:
		return arith.BF16
	}
	return arith.Name
}

// Do runs the tasks in order. Their outputs are readable when it returns. It stops at the first error.
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
	return e.Vector.do(t)
}

// Threads implements engine.Threaded.
func (e *Engine) Threads() int { return len(e.passes) }

// ThreadEngines implements engine.ThreadedEngine. With one engine per thread, a member's rows stay in the caches of one
// core from step to step, and no thread waits for another between steps.
func (e *Engine) ThreadEngines() []engine.Doer {
	if e.threadEngines == nil {
		for i := range e.passes {
			one := *e
			one.Vector, one.passes = &Vector{layout: e.layout, threads: e.threads[i : i+1]}, e.passes[i:i+1]
			e.threadEngines = append(e.threadEngines, &one)
		}
	}
	return e.threadEngines
}

// maxPassSamples is the maximum samples of a pass if samples are independent (no batch-norm over the batch). Their
// activations stay in the second-level cache, and a large batch needs no large buffers.
const maxPassSamples = 128

// each calls f for n entries in parallel. If there are more threads than entries, the other threads become helpers of
// the passes, so that layers run on several threads.
func (e *Engine) each(ctx context.Context, n int, f func(p *pass, i int) error) error {
	if n > 0 {
		for i := n; i < len(e.passes); i++ {
			p := e.passes[i%n]
			p.helpers = append(p.helpers, e.helpers[i-1])
		}
	}
	defer func() {
		for _, p := range e.passes {
			p.helpers = p.helpers[:0]
		}
	}()
	return engine.EachBy(ctx, e.pool, e.passes, n, f)
}

func (e *Engine) gradients(ctx context.Context, t engine.Gradients) error {
	if err := e.bounds.Gradients(&t); err != nil {
		return err
	}
	return e.each(ctx, len(t.Rows), func(p *pass, i int) error {
		var at noise.Key
		if e.bounds.Changes {
			at = t.Masks[i]
		}
		if err := p.load(e.set, t.Batches[i], at, true); err != nil {
			return err
		}
		p.mode, p.params, p.grad, p.stats = training, row(t.X, t.Rows[i]), row(t.G, engine.Row(i)), nil
		if e.bounds.Norms {
			p.stats = row(t.Stats, t.StatRows[i])
		}
		if e.bounds.Drops {
			p.mask = t.Masks[i]
		}
		loss, err := p.gradient()
		t.Loss[i] = float32(loss / float64(p.n))
		return err
	})
}

// batchPart is a part of an entry's batch, the address at which it was drawn, and its results.
type batchPart struct {
	entry   int
	ids     []int32
	at      noise.Key
	loss    float64
	correct int64
	squares float64
}

// splitBatches divides batches into parts of at most maxPassSamples. With whole, each batch is one part.
func (e *Engine) splitBatches(batches [][]int32, drawn []noise.Key, whole bool) (out []batchPart) {
	for i, ids := range batches {
		at := engine.DrawnAt(drawn, i)
		for size := maxPassSamples; len(ids) > 0; {
			if whole {
				size = len(ids)
			}
			n := min(size, len(ids))
			out = append(out, batchPart{entry: i, ids: ids[:n], at: at})
			ids, at.Round = ids[n:], at.Round+uint64(n)
		}
	}
	return out
}

func (e *Engine) evaluate(ctx context.Context, t engine.Evaluate) error {
	if e.whole != nil {
		return e.wholeEvaluate(ctx, t)
	}
	if err := e.bounds.Evaluate(&t); err != nil {
		return err
	}
	own := e.bounds.Norms && t.Stats.Rows == 0
	work := e.splitBatches(t.Batches, t.Drawn, own)
	err := e.each(ctx, len(work), func(p *pass, i int) (err error) {
		w := &work[i]
		p.mode, p.params, p.stats = running, row(t.X, t.Rows[w.entry]), nil
		if e.bounds.Norms && !own {
			p.stats = row(t.Stats, t.Rows[w.entry])
		}
		w.loss, w.correct, err = p.evaluate(e.set, w.ids, w.at)
		w.squares = p.squares()
		return err
	})
	if err != nil {
		return err
	}
	for i := range t.Rows {
		t.Loss[i], t.Correct[i] = 0, 0
		if t.Squares != nil {
			t.Squares[i] = 0
		}
	}
	for _, w := range work {
		t.Loss[w.entry] += w.loss
		t.Correct[w.entry] += w.correct
		if t.Squares != nil {
			t.Squares[w.entry] += w.squares
		}
	}
	return nil
}

// evaluate returns the summed loss and the correct predictions of the samples, in one pass.
func (p *pass) evaluate(set *data.Set, ids []int32, at noise.Key) (float64, int64, error) {
	if err := p.load(set, ids, at, false); err != nil {
		return 0, 0, err
	}
	return p.score()
}

func (e *Engine) statistics(ctx context.Context, t engine.Statistics) error {
	if err := e.bounds.Statistics(&t); err != nil || !e.bounds.Norms {
		return err
	}
	return e.each(ctx, len(t.Rows), func(p *pass, i int) error {
		out := row(t.Stats, engine.Row(i))
		if len(p.own) < len(out) {
			p.own = make([]float32, len(out))
		}
		total := make([]float64, len(out))
		for _, ids := range t.Batches {
			if err := p.load(e.set, ids, noise.Key{}, false); err != nil {
				return err
			}
			p.mode, p.params, p.stats = batchStats, row(t.X, t.Rows[i]), p.own
			p.forward()
			for j, v := range p.own {
				total[j] += float64(v)
			}
		}
		for j, v := range total {
			out[j] = float32(v / float64(len(t.Batches)))
		}
		return nil
	})
}
