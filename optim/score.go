package optim

import (
	"context"
	"slices"

	"brood/models/engine"
)

// ScoreChunk is the number of samples of one evaluation task. It is constant, so that losses are always summed in the
// same order.
const ScoreChunk = 500

// Scores is the sum over samples of one evaluation.
type Scores struct {
	Loss    float64 // summed over the samples
	Correct int64
	Samples int64
	Squares float64   // regression: squared errors of the standardised targets, mean over outputs, summed over samples
	Metrics []float64 // objective: its metrics besides the fitness, summed over samples; nil if not requested
}

// Mean returns the mean loss.
func (s Scores) Mean() float64 { return s.Loss / float64(max(1, s.Samples)) }

// MeanSquare returns the mean squared error of the standardised targets.
func (s Scores) MeanSquare() float64 { return s.Squares / float64(max(1, s.Samples)) }

// Error returns the percentage of wrong predictions.
func (s Scores) Error() float64 {
	return 100 * float64(s.Samples-s.Correct) / float64(max(1, s.Samples))
}

// Score evaluates rows of x on samples, dropout off, chunk by chunk in order. stats holds batch-norm statistics in the
// same rows, or is the zero Mat.
func Score(ctx context.Context, eng engine.Engine, x engine.Mat, rows []engine.Row, stats engine.Mat,
	samples []int32) ([]Scores, error) {
	return Measure(ctx, eng, x, rows, stats, samples, 0)
}

// Measure is Score with the given number of metrics of an objective.
func Measure(ctx context.Context, eng engine.Engine, x engine.Mat, rows []engine.Row, stats engine.Mat, samples []int32,
	metrics int) ([]Scores, error) {
	type part struct {
		loss    []float64
		correct []int64
		squares []float64
		metrics []float64
		samples int
	}
	var parts []part
	for chunk := range slices.Chunk(samples, ScoreChunk) {
		p := part{make([]float64, len(rows)), make([]int64, len(rows)), make([]float64, len(rows)),
			make([]float64, metrics*len(rows)), len(chunk)}
		t := engine.Evaluate{
			X:       x,
			Rows:    rows,
			Batches: slices.Repeat([][]int32{chunk}, len(rows)),
			Stats:   stats,
			Loss:    p.loss,
			Correct: p.correct,
			Squares: p.squares,
			Metrics: p.metrics,
		}
		if err := eng.Do(ctx, t); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	if err := eng.Wait(ctx); err != nil {
		return nil, err
	}
	out := make([]Scores, len(rows))
	for _, p := range parts {
		for i := range out {
			out[i].Loss += p.loss[i]
			out[i].Correct += p.correct[i]
			out[i].Squares += p.squares[i]
			out[i].Samples += int64(p.samples)
			if out[i].Metrics == nil {
				out[i].Metrics = make([]float64, metrics)
			}
			for k, x := range p.metrics[i*metrics : (i+1)*metrics] {
				out[i].Metrics[k] += x
			}
		}
	}
	return out, nil
}

// RMS waits for all queued tasks and returns the root mean square of the elements of x (1 row).
func (e *Env) RMS(ctx context.Context, x engine.Mat) (float64, error) {
	out := make([]float64, 1)
	if err := e.Engine.Do(ctx, engine.Distance{X: x, RMS: out}); err != nil {
		return 0, err
	}
	err := e.Engine.Wait(ctx)
	return out[0], err
}
