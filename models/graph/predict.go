package graph

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
)

// Logits writes the model's logits, before any softmax, for the samples ids with parameters params into out: len(ids) x
// Model.Positions x Model.Outputs, row-major. stats are batch-norm statistics, nil for a model without any. The caller
// owns all slices. Dropout is off, and a sample's row depends on the others only by their number, which is the size of
// the graph.
func (e *Engine) Logits(ctx context.Context, params, stats []float32, ids []int32, out []float32) error {
	parts, classes := slices.Collect(slices.Chunk(ids, chunk)), e.model.Outputs
	return engine.Each(ctx, e.workers, len(parts), func(w *worker, i int) error {
		part := parts[i]
		n, err := w.net(len(part), running)
		if err != nil {
			return err
		}
		px, _, err := w.gather(part, noise.Key{})
		if err != nil {
			return err
		}
		z, err := w.run(n, inputs{params: params, stats: stats, pixels: px})
		if err != nil {
			return err
		}
		transpose(out[i*chunk*classes*e.model.Positions:], z, classes, len(part)*e.model.Positions)
		return nil
	})
}
