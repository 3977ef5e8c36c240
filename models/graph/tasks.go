package graph

import (
	"context"
	"math"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
)

// row returns row r of m.
func row(m engine.Mat, r engine.Row) []float32 { return ram.View(m).Row(r) }

// chunk is the number of samples per execution if samples are independent, so that a large batch needs no large graph.
const chunk = 256

func (e *Engine) gradients(ctx context.Context, t engine.Gradients) error {
	if err := e.bounds.Gradients(&t); err != nil {
		return err
	}
	return engine.Each(ctx, e.workers, len(t.Rows), func(w *worker, i int) error {
		ids := t.Batches[i]
		n, err := w.net(len(ids), training)
		if err != nil {
			return err
		}
		in := inputs{ids: ids, params: row(t.X, t.Rows[i]), grad: row(t.G, engine.Row(i))}
		var at noise.Key
		if e.bounds.Changes {
			at = t.Masks[i]
		}
		if in.pixels, in.labels, err = w.gather(ids, at); err != nil {
			return err
		}
		if e.bounds.Norms {
			in.stats = row(t.Stats, t.StatRows[i])
		}
		if e.bounds.Drops {
			in.mask = t.Masks[i]
		}
		logits, err := w.run(n, in)
		if err != nil {
			return err
		}
		loss, _, _ := w.score(logits, in.pixels, ids, in.labels)
		loss += w.smoothed(logits, ids, in.labels)
		t.Loss[i] = float32(loss / float64(len(ids)))
		return nil
	})
}

// forward returns the summed loss, the correct predictions and the squared errors over ids, drawn at an address.
// Without stats, batch-norm uses the batch's own.
func (w *worker) forward(params, stats []float32, ids []int32, at noise.Key) (loss float64, correct int64,
	squares float64, err error) {
	m, piece := running, chunk
	if w.e.bounds.Norms && stats == nil {
		m, piece = batchStats, len(ids)
	}
	for lo := 0; lo < len(ids); lo += piece {
		part := ids[lo:min(len(ids), lo+piece)]
		n, err := w.net(len(part), m)
		if err != nil {
			return 0, 0, 0, err
		}
		px, labels, err := w.gather(part, at)
		if err != nil {
			return 0, 0, 0, err
		}
		at.Round += uint64(len(part))
		logits, err := w.run(n, inputs{params: params, stats: stats, pixels: px})
		if err != nil {
			return 0, 0, 0, err
		}
		l, c, q := w.score(logits, px, part, labels)
		loss, correct, squares = loss+l, correct+c, squares+q
	}
	return loss, correct, squares, nil
}

func (e *Engine) evaluate(ctx context.Context, t engine.Evaluate) error {
	if err := e.bounds.Evaluate(&t); err != nil {
		return err
	}
	return engine.Each(ctx, e.workers, len(t.Rows), func(w *worker, i int) (err error) {
		var stats []float32
		if e.bounds.Norms && t.Stats.Rows > 0 {
			stats = row(t.Stats, t.Rows[i])
		}
		var squares float64
		t.Loss[i], t.Correct[i], squares, err = w.forward(row(t.X, t.Rows[i]), stats, t.Batches[i],
			engine.DrawnAt(t.Drawn, i))
		if t.Squares != nil {
			t.Squares[i] = squares
		}
		return err
	})
}

func (e *Engine) candidates(ctx context.Context, t engine.Candidates) error {
	if err := e.bounds.Candidates(&t); err != nil {
		return err
	}
	return engine.Each(ctx, e.workers, len(t.IDs), func(w *worker, i int) error {
		theta := w.buffer(&w.theta, e.model.Layout.Params)
		w.theta = theta
		if err := e.vector.Candidate(w.lane, theta, &t, i); err != nil {
			return err
		}
		b := i
		if len(t.Batches) == 1 {
			b = 0
		}
		ids := t.Batches[b]
		loss, _, _, err := w.forward(theta, nil, ids, engine.DrawnAt(t.Drawn, b))
		if err != nil {
			return err
		}
		f := float32(-loss / float64(len(ids)))
		if math.IsInf(float64(f), 0) {
			f = float32(math.NaN())
		}
		t.Fitness[i] = f
		t.Report(1)
		return nil
	})
}

func (e *Engine) statistics(ctx context.Context, t engine.Statistics) error {
	if err := e.bounds.Statistics(&t); err != nil || !e.bounds.Norms {
		return err
	}
	return engine.Each(ctx, e.workers, len(t.Rows), func(w *worker, i int) error {
		out := row(t.Stats, engine.Row(i))
		sum := make([]float64, len(out))
		own := w.buffer(&w.stats, len(out))
		for _, ids := range t.Batches {
			n, err := w.net(len(ids), batchStats)
			if err != nil {
				return err
			}
			px, _, err := w.gather(ids, noise.Key{})
			if err != nil {
				return err
			}
			if _, err := w.run(n, inputs{params: row(t.X, t.Rows[i]), stats: own, pixels: px}); err != nil {
				return err
			}
			for j, v := range own {
				sum[j] += float64(v)
			}
		}
		for j, v := range sum {
			out[j] = float32(v / float64(len(t.Batches)))
		}
		return nil
	})
}
