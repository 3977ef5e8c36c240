package evolution

import (
	"context"
	"math"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
)

// Estimator is a program that estimates the ascent direction of the fitness from candidates.
type Estimator interface {
	// Estimate writes to g (1 x Params) the direction along which a round would move the shared parameters, before
	// momentum, Adam and decay. Its length is arbitrary. Estimate returns the number of independent perturbations and
	// changes no block except the cursor.
	Estimate(ctx context.Context, e *optim.Env, k optim.Values, round uint64, g engine.Mat) (directions int, err error)
}

// Slope has the cosines of the angle between an estimate and minus the gradient.
type Slope struct {
	Batch      float64 // gradient on the mini-batch of all candidates; NaN if each has its own
	Train      float64 // gradient on training samples
	Directions int     // independent perturbations of the estimate
}

// gradientTo returns a task that writes the gradient at the shared parameters to g. The caller sets Batches and Masks.
func gradientTo(e *optim.Env, g engine.Mat) engine.Gradients {
	task := engine.Gradients{X: e.Block(optim.BlockX), Rows: engine.Rows(1), G: g, Loss: make([]float32, 1)}
	if e.Layout.Stats > 0 {
		// Receives running statistics; the gradient uses the statistics of the batch.
		task.Stats = e.Scratch(1, e.Layout.Stats)
	}
	return task
}

// EstimateSlope compares the estimate of a round with minus the gradient at the shared parameters, on that round's
// mini-batch and on the batches of training samples in train, whose gradients are averaged. Call it on a single worker
// that hosts all members. The cosine is NaN if the estimate or the gradient is zero.
func EstimateSlope(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	p Estimator,
	round uint64,
	train [][]int32,
) (s Slope, err error) {
	g, down, one := e.Scratch(1, e.Layout.Params), e.Scratch(1, e.Layout.Params), e.Scratch(1, e.Layout.Params)
	at := e.Record(optim.BlockCursor).U[0]
	if s.Directions, err = p.Estimate(ctx, e, k, round, g); err != nil {
		return s, err
	}
	task := gradientTo(e, one)
	gradient := func(batch []int32, drawn noise.Key) error {
		task.Batches, task.Masks = [][]int32{batch}, []noise.Key{drawn}
		return e.Engine.Do(ctx, task)
	}
	s.Batch = math.NaN()
	if k.Is("samples", "shared") {
		own := make([]int32, k.I("batch"))
		e.SharedBatch(own, at)
		if err := gradient(own, e.SharedBatchKey(at)); err != nil {
			return s, err
		}
		if s.Batch, err = ascentCosine(ctx, e, g, one); err != nil {
			return s, err
		}
	}
	if err := e.Engine.Do(ctx, engine.Fill{Dst: engine.All(down)}); err != nil {
		return s, err
	}
	for i, batch := range train {
		if err := gradient(batch, e.SharedBatchKey(uint64(i*len(batch)))); err != nil {
			return s, err
		}
		add := optim.Update(1, optim.Assign(down, optim.T(1, down), optim.T(1/float32(len(train)), one)))
		if err := e.Engine.Do(ctx, add); err != nil {
			return s, err
		}
	}
	s.Train, err = ascentCosine(ctx, e, g, down)
	return s, err
}

// ascentCosine returns the cosine of the angle between g and minus the gradient h, NaN if one of them is zero. With
// g' = -h |g|/|h| it is 1 - |g - g'|^2 / 2|g|^2. It overwrites h.
func ascentCosine(ctx context.Context, e *optim.Env, g, h engine.Mat) (float64, error) {
	a, err := e.RMS(ctx, g)
	if err != nil {
		return 0, err
	}
	b, err := e.RMS(ctx, h)
	if err != nil || a == 0 || b == 0 {
		return math.NaN(), err
	}
	d := make([]float64, 1)
	err = e.Engine.Do(
		ctx,
		optim.Update(1, optim.Assign(h, optim.T(-float32(a/b), h))),
		engine.Distance{X: g, Centre: h, RMS: d},
	)
	if err != nil {
		return 0, err
	}
	if err := e.Engine.Wait(ctx); err != nil {
		return 0, err
	}
	return 1 - d[0]*d[0]/(2*a*a), nil
}
