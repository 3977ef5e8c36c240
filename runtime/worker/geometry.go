package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/evolution"
	"brood/runtime/geometry"
)

// Geometry measures the parameters of members of, nil for all, after the completed rounds: RMS length, distance to the
// centre, and pairwise distances. It does not compute Line. This worker must host every member of the roster.
func (w *Worker) Geometry(ctx context.Context, of []engine.Member) (*geometry.Geometry, error) {
	x, params, err := w.memberParams(ctx)
	if err != nil {
		return nil, err
	}
	env := w.now.env
	if of == nil {
		of = env.Roster.Members
	}
	n := len(of)
	g := &geometry.Geometry{
		Members:  of,
		Length:   make([]float64, n),
		Spread:   make([]float64, n),
		Distance: make([][]float64, n),
	}
	var tasks []engine.Task
	for i, m := range of {
		row := x.Sub(env.Row(m), 1)
		g.Distance[i] = make([]float64, n)
		tasks = append(tasks,
			engine.Distance{X: row, RMS: g.Length[i : i+1]},
			engine.Distance{X: row, Centre: params, RMS: g.Spread[i : i+1]})
		for j, other := range of[:i] {
			to := x.Sub(env.Row(other), 1)
			tasks = append(tasks, engine.Distance{X: row, Centre: to, RMS: g.Distance[i][j : j+1]})
		}
	}
	if err := w.cfg.Engine.Do(ctx, tasks...); err != nil {
		return nil, fmt.Errorf("geometry: %w", err)
	}
	if err := w.cfg.Engine.Wait(ctx); err != nil {
		return nil, fmt.Errorf("geometry: %w", err)
	}
	for i := range n {
		for j := range i {
			g.Distance[j][i] = g.Distance[i][j]
		}
	}
	return g, nil
}

// Line evaluates the model at evenly spaced points on the straight line from member a to member b, both included, on
// the probe samples. It rebuilds the batch-norm statistics for each point, as for a centre. This worker must host every
// member of the roster.
func (w *Worker) Line(ctx context.Context, a, b engine.Member, points int) ([]optim.Scores, error) {
	x, at, err := w.memberParams(ctx)
	if err != nil {
		return nil, err
	}
	env := w.now.env
	from, to := x.Sub(env.Row(a), 1), x.Sub(env.Row(b), 1)
	out := make([]optim.Scores, points)
	for i := range out {
		t := float32(i) / float32(max(1, points-1))
		mix := optim.Assign(at, optim.T(1-t, from), optim.T(t, to))
		step := engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{mix}}
		if err := w.cfg.Engine.Do(ctx, step); err != nil {
			return nil, fmt.Errorf("geometry: %w", err)
		}
		stats, err := w.rebuildStats(ctx, at)
		if err != nil {
			return nil, err
		}
		sc, err := optim.Score(ctx, w.cfg.Engine, at, engine.Rows(1), stats, w.probeSet())
		if err != nil {
			return nil, fmt.Errorf("geometry: %w", err)
		}
		out[i] = sc[0]
	}
	return out, nil
}

// slopeBatch is the number of training samples in a batch of Slope's gradient; slopeBatches is the maximum number of
// batches.
const (
	slopeBatch   = 512
	slopeBatches = 8
)

// Slope compares the gradient at the current parameters with the estimates that the next generations would make there.
// The gradient uses samples spaced evenly over the training set. Slope changes only the cursor of the mini-batches, so
// that the worker must not execute rounds afterwards. It must host every member. samples is the number of samples used.
func (w *Worker) Slope(ctx context.Context, generations int) (all []evolution.Slope, samples int, err error) {
	w.install(w.epoch)
	s := w.now
	if s == nil {
		return nil, 0, errors.New("geometry: no plan is in force")
	}
	p, ok := s.alg.Program.(evolution.Estimator)
	if !ok {
		return nil, 0, ErrNoReplicas
	}
	train := slices.Collect(slices.Chunk(evenlySpaced(w.cfg.Data.Train(), slopeBatches*slopeBatch), slopeBatch))
	if n := len(train); n > 1 && len(train[n-1]) < slopeBatch { // all batches have the same weight
		train = train[:n-1]
	}
	for _, batch := range train {
		samples += len(batch)
	}
	k := s.values()
	for i := range generations {
		s.env.Recycle()
		one, err := evolution.EstimateSlope(ctx, s.env, k, p, s.round+uint64(i), train)
		if err = rootCause(s.env, err); err != nil {
			return nil, 0, fmt.Errorf("geometry: %w", err)
		}
		all = append(all, one)
	}
	return all, samples, nil
}

// ErrNoReplicas reports that an algorithm has one model, and no members with their own parameters.
var ErrNoReplicas = errors.New("its members have no parameters of their own")

// memberParams returns the parameters of the members, one row each, and the centre, 1 row in scratch. It fails with
// ErrNoReplicas if members have none.
func (w *Worker) memberParams(ctx context.Context) (x, centre engine.Mat, err error) {
	w.install(w.epoch)
	s := w.now
	if s == nil {
		return x, centre, errors.New("geometry: no plan is in force")
	}
	x = s.env.Block(optim.BlockX)
	if s.shared()[optim.BlockX] || x.Rows == 0 || x.Cols != w.cfg.Layout.Params || x.Cols == 0 {
		return x, centre, ErrNoReplicas
	}
	s.env.Recycle()
	centre = s.env.Scratch(1, w.cfg.Layout.Params)
	if err := s.alg.Program.Centre(ctx, s.env, s.values(), centre); err != nil {
		return x, centre, fmt.Errorf("centre: %w", rootCause(s.env, err))
	}
	return x, centre, nil
}
