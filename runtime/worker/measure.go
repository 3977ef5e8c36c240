package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

const (
	probeSamples = 500    // of the validation split
	trainSamples = 10_000 // of the training split, for the centre's error on it
	statSamples  = 2048   // of the training split, to rebuild the centre's batch-norm statistics: see Config.Rebuild
	statBatch    = 128
)

// measure evaluates the centre, without changing a block. Its bytes are counted apart. judged asks a probe for what a
// target of fitness is compared with.
func (w *Worker) measure(ctx context.Context, k optim.Values, probe, test, judged bool, d *message.Done, points *series) error {
	s := w.now
	env := s.env
	sent := env.Comm.Ledger
	env.Comm.Ledger = d.Evaluation
	defer func() { env.Comm.Ledger = sent }()

	centre, stats, err := w.centre(ctx, k)
	if err != nil {
		return err
	}
	if probe {
		if err := w.probe(ctx, centre, stats, judged, points); err != nil {
			return err
		}
		if err := w.looks(ctx, points); err != nil {
			return err
		}
	}
	if test {
		t, err := w.test(ctx, centre, stats)
		if err != nil {
			return err
		}
		d.Tests = append(d.Tests, t)
	}
	return nil
}

// looks adds what the round measured for its probe, but for a norm of gradients where the algorithm has one of its own.
func (w *Worker) looks(ctx context.Context, points *series) error {
	if err := w.cfg.Engine.Wait(ctx); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	all := w.now.env.Looks()
	if w.now.measures(optim.SeriesGradient.Name) != nil {
		all = slices.DeleteFunc(all, func(p optim.Point) bool { return p.Series == optim.SeriesGradient.Name })
	}
	points.add(w.now.round, all)
	return nil
}

// centre is the one model of the algorithm, in scratch, and its batch-norm statistics.
func (w *Worker) centre(ctx context.Context, k optim.Values) (params, stats engine.Mat, err error) {
	env := w.now.env
	params = env.Scratch(1, w.cfg.Layout.Params)
	if err := w.now.alg.Program.Centre(ctx, env, k, params); err != nil {
		return params, stats, fmt.Errorf("centre: %w", because(env, err))
	}
	stats, err = w.rebuildStats(ctx, params)
	return params, stats, err
}

// Centre is the one model that the population stands for after the rounds done, 1 x params, and the batch-norm
// statistics rebuilt for it, 1 x stats or the zero Mat. It is collective: a worker that calls it alone hosts all
// members. Both are copies.
func (w *Worker) Centre(ctx context.Context) (params, stats engine.Host, err error) {
	w.install(w.epoch)
	s := w.now
	if s == nil {
		return params, stats, errors.New("centre: no plan is in force")
	}
	s.env.Recycle()
	x, st, err := w.centre(ctx, s.values())
	if err != nil {
		return params, stats, err
	}
	return w.taken(ctx, x, st)
}

// values are the knobs of the round that would be next.
func (s *installed) values() optim.Values {
	p := s.progress()
	return s.time.Values(timeline.Position{Round: s.round, Epochs: p.Epochs, Steps: p.Steps})
}

// rebuildStats runs the centre over training samples in fixed batches, so that its batch-norm statistics are its own.
// The zero Mat for a model that has none.
func (w *Worker) rebuildStats(ctx context.Context, centre engine.Mat) (engine.Mat, error) {
	if w.cfg.Layout.Stats == 0 {
		return engine.Mat{}, nil
	}
	stats := w.now.env.Scratch(1, w.cfg.Layout.Stats)
	train := w.cfg.Data.Train()
	batches := slices.Collect(slices.Chunk(train[:min(len(train), cmp.Or(w.cfg.Rebuild, statSamples))/statBatch*statBatch], statBatch))
	if len(batches) == 0 {
		batches = [][]int32{train[:min(len(train), cmp.Or(w.cfg.Rebuild, len(train)))]}
	}
	t := engine.Statistics{X: centre, Rows: engine.Rows(1), Batches: batches, Stats: stats}
	return stats, because(w.now.env, w.cfg.Engine.Do(ctx, t))
}

// spaced are at most so many of some samples, evenly from the first on: those of one's own data may be sorted.
func spaced(samples []int32, most int) []int32 {
	if len(samples) <= most {
		return samples
	}
	out := make([]int32, most)
	for i := range out {
		out[i] = samples[i*len(samples)/most]
	}
	return out
}

// measures is the series of a name that the algorithm measures of its own, nil where it has none.
func (s *installed) measures(name string) *optim.Series {
	for i, d := range s.alg.Series {
		if d.Name == name {
			return &s.alg.Series[i]
		}
	}
	return nil
}

// judges says that the algorithm itself measures fitness on validation samples.
func (s *installed) judges() bool {
	own := s.measures(event.SeriesFitness)
	return own != nil && own.Validation
}

func (w *Worker) probe(ctx context.Context, centre, stats engine.Mat, judged bool, points *series) error {
	s, env := w.now, w.now.env
	samples := w.probed()
	x := env.Block(optim.BlockX)
	members, own := x.Cols == w.cfg.Layout.Params && !s.shared()[optim.BlockX], s.measures(event.SeriesFitness)
	if env.Lead() {
		sc, err := optim.Measure(ctx, w.cfg.Engine, centre, engine.Rows(1), stats, samples, len(env.Metrics))
		if err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		points.add(s.round, []optim.Point{{Member: engine.None, Series: event.SeriesCentre, Value: sc[0].Mean()}})
		points.add(s.round, env.CentreMetrics(sc[0]))
		if s.ended && !w.cfg.Measured {
			on, err := optim.Score(ctx, w.cfg.Engine, centre, engine.Rows(1), stats, spaced(w.cfg.Data.Train(), trainSamples))
			if err != nil {
				return fmt.Errorf("training error: %w", err)
			}
			points.add(s.round, []optim.Point{{Member: engine.None, Series: event.SeriesTrainError, Value: on[0].Error()}})
		}
		if judged && (!members || own != nil) && !s.judges() {
			points.add(s.round, []optim.Point{{Member: env.Roster.Members[0], Series: event.SeriesJudged, Value: -sc[0].Mean()}})
		}
	}
	if !members {
		return nil
	}
	if own == nil {
		sc, err := optim.Score(ctx, w.cfg.Engine, x, engine.Rows(x.Rows), env.Block(optim.BlockStats), samples)
		if err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		fit := make([]float32, len(sc))
		for i := range sc {
			fit[i] = float32(-sc[i].Mean())
		}
		points.add(s.round, env.MemberPoints(event.SeriesFitness, fit))
		if judged {
			points.add(s.round, env.MemberPoints(event.SeriesJudged, fit))
		}
	}
	far := make([]float64, x.Rows)
	if err := w.cfg.Engine.Do(ctx, engine.Distance{X: x, Centre: centre, RMS: far}); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if err := w.cfg.Engine.Wait(ctx); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	spread := make([]optim.Point, len(far))
	for i, m := range env.Mine {
		spread[i] = optim.Point{Member: m, Series: event.SeriesSpread, Value: far[i]}
	}
	points.add(s.round, spread)
	return nil
}

// probed are the samples that probes look at: of validation, or where there are none of training.
func (w *Worker) probed() []int32 {
	samples := w.cfg.Data.Validation()
	if len(samples) == 0 {
		samples = w.cfg.Data.Train()
	}
	return samples[:min(len(samples), probeSamples)]
}

// test scores this worker's share of the fixed chunks of the test set.
func (w *Worker) test(ctx context.Context, centre, stats engine.Mat) (message.Test, error) {
	env := w.now.env
	t := message.Test{Round: w.now.round}
	if env.Lead() {
		hash := make([][32]byte, 1)
		if err := w.cfg.Engine.Do(ctx, engine.Digest{X: centre, Hash: hash}); err != nil {
			return t, fmt.Errorf("test: %w", err)
		}
		if err := w.cfg.Engine.Wait(ctx); err != nil {
			return t, fmt.Errorf("test: %w", err)
		}
		t.Centre = fmt.Sprintf("blake3:%x", hash[0])
	}
	ws := env.Roster.Workers()
	me := slices.Index(ws, w.cfg.ID)
	i := 0
	for chunk := range slices.Chunk(w.cfg.Test, optim.ScoreChunk) {
		if i%len(ws) == me {
			sc, err := optim.Score(ctx, w.cfg.Engine, centre, engine.Rows(1), stats, chunk)
			if err != nil {
				return t, fmt.Errorf("test: %w", err)
			}
			t.Chunks = append(t.Chunks, message.Chunk{Index: i, Loss: sc[0].Loss, Correct: sc[0].Correct, Samples: sc[0].Samples, Squares: sc[0].Squares})
		}
		i++
	}
	return t, nil
}
