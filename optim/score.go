package optim

import (
	"context"

	"brood/models/engine"
)

// ScoreChunk is the samples of one evaluation task: a constant, so that sums of losses have one association.
const ScoreChunk = 500

// Scores is the sum over samples of one evaluation.
type Scores struct {
	Loss    float64 // summed over the samples
	Correct int64
	Samples int64
}

// Mean is the mean loss.
func (s Scores) Mean() float64 { return s.Loss / float64(max(1, s.Samples)) }

// Error is the share of wrong predictions in percent.
func (s Scores) Error() float64 {
	return 100 * float64(s.Samples-s.Correct) / float64(max(1, s.Samples))
}

// Score evaluates rows of x on samples, dropout off, chunk by chunk in order. stats holds batch-norm statistics in the
// same rows, or is the zero Mat.
func Score(ctx context.Context, eng Engine, x engine.Mat, rows []engine.Row, stats engine.Mat, samples []int32) ([]Scores, error) {
	out := make([]Scores, len(rows))
	loss, correct, batches := make([]float64, len(rows)), make([]int64, len(rows)), make([][]int32, len(rows))
	for lo := 0; lo < len(samples); lo += ScoreChunk {
		chunk := samples[lo:min(lo+ScoreChunk, len(samples))]
		for i := range batches {
			batches[i] = chunk
		}
		t := engine.Evaluate{X: x, Rows: rows, Batches: batches, Stats: stats, Loss: loss, Correct: correct}
		if err := eng.Do(ctx, t); err != nil {
			return nil, err
		}
		for i := range out {
			out[i].Loss += loss[i]
			out[i].Correct += correct[i]
			out[i].Samples += int64(len(chunk))
		}
	}
	return out, nil
}
