package worker

import (
	"context"
	"errors"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/runtime/timeline"
)

// A measurement is the maximum of a few runs: the first one warms up caches and links, and the machine may be shared.
const (
	rateRuns    = 3
	rateVectors = 32
	rateColumns = 1 << 16 // columns of the noise and of the exchanged row: at most 256 KiB sent by a worker
)

// rates measures the machine for choosing the knobs that a plan leaves to the run; it returns zeros if there are none.
// The call is collective over all workers that host members. Its traffic is counted in no round.
func (w *Worker) rates(ctx context.Context, s *epochState) (r optim.Rates, err error) {
	chooser, ok := s.alg.Program.(optim.Chooser)
	k := s.time.Values(timeline.Position{Round: s.round})
	if !ok || !w.cfg.Measure || len(s.env.Mine) == 0 || len(s.alg.Undecided(k)) == 0 {
		return r, nil
	}
	comm, cols, n := s.env.Comm, min(s.env.Layout.Params, rateColumns), len(s.env.Comm.Workers)
	sum := engine.NoiseSum{
		Dst:     engine.All(s.env.Scratch(1, s.env.Layout.Params)),
		Noise:   chooser.Noise(k),
		Key:     noise.Key{Purpose: noise.Candidate},
		Weights: slices.Repeat([]float32{1}, rateVectors),
		IDs:     make([]engine.Member, rateVectors),
	}
	sum.Dst.Hi = cols
	for i := range sum.IDs {
		sum.IDs[i] = engine.Member(i)
	}
	add := func() error { return errors.Join(w.cfg.Slow.Do(ctx, sum), w.cfg.Slow.Wait(ctx)) }
	r.Noise, err = w.fastest(float64(rateVectors*cols), func() error { return nil }, add)
	if err != nil || n < 2 {
		return r, rootCause(s.env, err)
	}
	// the untimed first exchange synchronizes the workers, so that the timed one waits for none that has not begun
	together, row := s.env.Scratch(1, n), s.env.Scratch(1, cols)
	r.Bytes, err = w.fastest(4*float64(cols)*float64(n-1)/float64(n),
		func() error { return comm.GatherSlices(ctx, "rates", together) },
		func() error { return comm.GatherSlices(ctx, "rates", row) })
	return r, rootCause(s.env, err)
}

// fastest returns the highest rate, in amount per second, over rateRuns runs of f; 0 if the clock did not advance.
// before is called first in each run and is not timed.
func (w *Worker) fastest(amount float64, before, f func() error) (rate float64, err error) {
	for range rateRuns {
		if err = before(); err != nil {
			return 0, err
		}
		t := w.cfg.Clock()
		if err = f(); err != nil {
			return 0, err
		}
		if nanos := w.cfg.Clock() - t; nanos > 0 {
			rate = max(rate, amount*1e9/float64(nanos))
		}
	}
	return rate, nil
}
