package native

import (
	"context"

	"brood/models/noise"
)

// Logits writes the model's logits, before any softmax, for the samples ids with parameters params into out: len(ids) x
// Model.Positions x Model.Outputs, row-major. stats are batch-norm statistics, nil for a model without any. The caller
// owns all slices. Dropout is off, and a sample's row does not depend on the others.
func (e *Engine) Logits(ctx context.Context, params, stats []float32, ids []int32, out []float32) error {
	wide := e.plan.model.Positions * e.plan.model.Outputs
	work := e.splitBatches([][]int32{ids}, nil, false)
	at := 0
	places := make([]int, len(work))
	for i, w := range work {
		places[i] = at
		at += len(w.ids) * wide
	}
	return e.each(ctx, len(work), func(p *pass, i int) error {
		if e.whole != nil {
			return e.wholeLogits(p, params, work[i].ids, out[places[i]:])
		}
		if err := p.load(e.set, work[i].ids, noise.Key{}, false); err != nil {
			return err
		}
		p.mode, p.params, p.stats = running, params, stats
		copy(out[places[i]:], p.forward()[:len(work[i].ids)*wide])
		return nil
	})
}
