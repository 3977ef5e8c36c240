package evaluate

import (
	"context"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/optim"
	"brood/runtime/host"
	"brood/runtime/option"
)

// predictor is implemented by engines on the processor. Logits writes the outputs of the model for the samples ids,
// before the softmax or sigmoid, to out, which has a row of Net.Outputs values per sample and position of the loss.
// stats may be nil.
type predictor interface {
	Logits(ctx context.Context, params, stats []float32, ids []int32, out []float32) error
}

// Predict computes the predictions of the model for the samples ids of a set, without dropout, on the processor.
// threads 0 means one per processor. It calls each with chunks of predictions in the order of ids: p[i] is the row of
// sample ids[at+i]. A row holds the probabilities of the classes, which are independent for a multi-label model; for a
// regression it holds the predicted values in the unit of the targets; for a text it predicts the byte behind the
// window. p is valid until each returns; an error of each
// ends Predict. Predict returns the name of the kernels that computed the predictions. It returns an error if the model
// has no predictions, does not fit the set, or has an output that is not finite.
func (t *Model) Predict(
	ctx context.Context, set *data.Set, ids []int32, threads int, each func(at int, p [][]float64) error,
) (kernels string, err error) {
	if t.Net.Loss == models.Distance {
		return "", fmt.Errorf("model %s has no classes to predict: its loss is %s", t.Net.Name, models.Distance)
	}
	if err := t.Net.Fits(set.Info); err != nil {
		return "", err
	}
	if len(ids) == 0 {
		return "", fmt.Errorf("data %s has no test samples", set.Name)
	}
	if threads == 0 {
		threads = goruntime.NumCPU()
	}
	eng, of, err := t.predictor(set, threads)
	if err != nil {
		return "", err
	}
	defer host.Release(eng)
	at, wide := 0, t.Net.Outputs*t.Net.Positions
	for chunk := range slices.Chunk(ids, max(1, min(optim.ScoreChunk, resultsAtOnce/wide))) {
		z := make([]float32, len(chunk)*wide)
		if err := of.Logits(ctx, t.Params, t.givenStats(), chunk, z); err != nil {
			return "", err
		}
		if !engine.AllFinite(z) {
			return "", fmt.Errorf("data %s: %w for a sample: its values are far outside the range of the training data",
				set.Name, errNotFinite)
		}
		var p [][]float64
		for row := range slices.Chunk(z, wide) {
			row = row[wide-t.Net.Outputs:] // the last position
			switch {
			case t.Net.Regression():
				p = append(p, restored(set, row))
			case t.Net.MultiLabel():
				p = append(p, sigmoids(row))
			default:
				p = append(p, softmax(row))
			}
		}
		if err := each(at, p); err != nil {
			return "", err
		}
		at += len(chunk)
	}
	return eng.Kernels(), nil
}

// predictor returns an engine on the processor, which the caller releases, in both its forms.
func (t *Model) predictor(set *data.Set, threads int) (host.Engine, predictor, error) {
	eng, err := t.compute(set, option.CPU, threads)
	if err != nil {
		return nil, nil, err
	}
	of, ok := eng.(predictor)
	if !ok {
		host.Release(eng)
		return nil, nil, fmt.Errorf("kernels %s do not support predictions: unset BROOD_ENGINE", eng.Kernels())
	}
	return eng, of, nil
}

// givenStats returns the batch-norm statistics, nil for a model without any.
func (t *Model) givenStats() []float32 {
	if len(t.Stats) == 0 {
		return nil
	}
	return t.Stats
}

// resultsAtOnce bounds the number of outputs per chunk: with many classes a row is long.
const resultsAtOnce = 1 << 22

// restored returns a row of outputs in the unit of the targets.
func restored(set *data.Set, z []float32) (out []float64) {
	for k, v := range z {
		out = append(out, set.Restore(k, v))
	}
	return out
}

// softmax returns exp(z_c) / sum_k exp(z_k) for each c. It subtracts the largest z first, so that exp does not
// overflow.
func softmax(z []float32) []float64 {
	top := float64(slices.Max(z))
	p, sum := make([]float64, len(z)), 0.0
	for c, v := range z {
		p[c] = math.Exp(float64(v) - top)
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// sigmoids returns 1/(1 + exp(-z_c)) for each c.
func sigmoids(z []float32) (p []float64) {
	for _, v := range z {
		p = append(p, 1/(1+math.Exp(-float64(v))))
	}
	return p
}
