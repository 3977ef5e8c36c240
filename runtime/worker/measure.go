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
	probeSamples = 500    // maximum samples of a probe, from the validation split
	trainSamples = 10_000 // maximum training samples for the centre's training error
	statSamples  = 2048   // training samples to rebuild the centre's batch-norm statistics, by default: see Config.Rebuild
	statBatch    = 128
)

// measure evaluates the centre with a probe, a test, or both, without changing a block. It counts its bytes separately,
// in d.Evaluation. With judged, the probe also adds the points that a fitness target is compared with.
func (w *Worker) measure(
	ctx context.Context,
	k optim.Values,
	probe, test, judged bool,
	d *message.Done,
	points *series,
) error {
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
		if err := w.addLooks(ctx, points); err != nil {
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

// Player is an engine of a run in an environment.
type Player interface {
	// Play returns the episode of a seed, played with these parameters.
	Play(params []float32, seed uint64) *event.Episode
}

// addLooks adds the values that the round itself recorded for its probe. It omits the gradient norm if the algorithm
// reports that series itself.
func (w *Worker) addLooks(ctx context.Context, points *series) error {
	if err := w.cfg.Engine.Wait(ctx); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	all := w.now.env.Looks()
	if w.now.ownSeries(optim.SeriesGradient.Name) != nil {
		all = slices.DeleteFunc(all, func(p optim.Point) bool { return p.Series == optim.SeriesGradient.Name })
	}
	points.add(w.now.round, all)
	return nil
}

// centre computes the algorithm's single model, in scratch, and rebuilds its batch-norm statistics.
func (w *Worker) centre(ctx context.Context, k optim.Values) (params, stats engine.Mat, err error) {
	env := w.now.env
	params = env.Scratch(1, w.cfg.Layout.Params)
	if err := w.now.alg.Program.Centre(ctx, env, k, params); err != nil {
		return params, stats, fmt.Errorf("centre: %w", rootCause(env, err))
	}
	stats, err = w.rebuildStats(ctx, params)
	return params, stats, err
}

// Centre returns copies of the population's single model after the completed rounds, 1 x params, and of the batch-norm
// statistics rebuilt for it, 1 x stats or the zero value. The call is collective; a worker that calls it alone must
// host all members.
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
	return w.download(ctx, x, st)
}

// values returns the knobs of the next round.
func (s *epochState) values() optim.Values {
	p := s.progress()
	return s.time.Values(timeline.Position{Round: s.round, Epochs: p.Epochs, Steps: p.Steps})
}

// rebuildStats computes the batch-norm statistics of the centre from training samples, in fixed batches. It returns the
// zero Mat if the model has none.
func (w *Worker) rebuildStats(ctx context.Context, centre engine.Mat) (engine.Mat, error) {
	if w.cfg.Layout.Stats == 0 {
		return engine.Mat{}, nil
	}
	stats := w.now.env.Scratch(1, w.cfg.Layout.Stats)
	train := w.cfg.Data.Train()
	n := min(len(train), cmp.Or(w.cfg.Rebuild, statSamples)) / statBatch * statBatch
	batches := slices.Collect(slices.Chunk(train[:n], statBatch))
	if len(batches) == 0 {
		batches = [][]int32{train[:min(len(train), cmp.Or(w.cfg.Rebuild, len(train)))]}
	}
	t := engine.Statistics{X: centre, Rows: engine.Rows(1), Batches: batches, Stats: stats}
	return stats, rootCause(w.now.env, w.cfg.Engine.Do(ctx, t))
}

// evenlySpaced returns up to most of the samples, at even distances from the first on, since a user's data may be
// sorted.
func evenlySpaced(samples []int32, most int) []int32 {
	if len(samples) <= most {
		return samples
	}
	out := make([]int32, most)
	for i := range out {
		out[i] = samples[i*len(samples)/most]
	}
	return out
}

// ownSeries returns the series of that name that the algorithm reports itself; nil if there is none.
func (s *epochState) ownSeries(name string) *optim.Series {
	for i, d := range s.alg.Series {
		if d.Name == name {
			return &s.alg.Series[i]
		}
	}
	return nil
}

// measuresFitness reports whether the algorithm itself measures fitness on validation samples.
func (s *epochState) measuresFitness() bool {
	own := s.ownSeries(event.SeriesFitness)
	return own != nil && own.Validation
}

// probe measures the centre and, if members have their own parameters, every member, on the probe samples. Only the
// lead adds the centre's points. The last probe of a run also adds the training error.
func (w *Worker) probe(ctx context.Context, centre, stats engine.Mat, judged bool, points *series) error {
	s, env := w.now, w.now.env
	samples := w.probeSet()
	x := env.Block(optim.BlockX)
	members := x.Cols == w.cfg.Layout.Params && !s.shared()[optim.BlockX]
	own := s.ownSeries(event.SeriesFitness)
	if env.Lead() {
		sc, err := optim.Measure(ctx, w.cfg.Engine, centre, engine.Rows(1), stats, samples, len(env.Metrics))
		if err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		points.add(s.round, []optim.Point{{Member: engine.None, Series: event.SeriesCentre, Value: sc[0].Mean()}})
		points.add(s.round, env.CentreMetrics(sc[0]))
		if s.ended && !w.cfg.Measured {
			train := evenlySpaced(w.cfg.Data.Train(), trainSamples)
			on, err := optim.Score(ctx, w.cfg.Engine, centre, engine.Rows(1), stats, train)
			if err != nil {
				return fmt.Errorf("training error: %w", err)
			}
			trainError := optim.Point{Member: engine.None, Series: event.SeriesTrainError, Value: on[0].Error()}
			points.add(s.round, []optim.Point{trainError})
		}
		if judged && (!members || own != nil) && !s.measuresFitness() {
			first := env.Roster.Members[0]
			points.add(s.round, []optim.Point{{Member: first, Series: event.SeriesJudged, Value: -sc[0].Mean()}})
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

// probeSet returns the samples of a probe: from the validation split, or from training if that is empty.
func (w *Worker) probeSet() []int32 {
	samples := w.cfg.Data.Validation()
	if len(samples) == 0 {
		samples = w.cfg.Data.Train()
	}
	return samples[:min(len(samples), probeSamples)]
}

// test scores the centre on this worker's share of the test set and of the validation samples: every n-th chunk of n
// workers.
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
		if p, ok := w.cfg.Engine.(Player); ok {
			params, _, err := w.download(ctx, centre, engine.Mat{})
			if err != nil {
				return t, fmt.Errorf("test: %w", err)
			}
			t.Episode = p.Play(params.Row(0), uint64(w.cfg.Test[0]))
		}
	}
	var err error
	if t.Chunks, err = w.share(ctx, centre, stats, w.cfg.Test); err == nil {
		t.Validation, err = w.share(ctx, centre, stats, w.cfg.Validation)
	}
	if err != nil {
		return t, fmt.Errorf("test: %w", err)
	}
	return t, nil
}

// share scores the centre on this worker's chunks of the samples.
func (w *Worker) share(ctx context.Context, centre, stats engine.Mat,
	samples []int32) (out []message.Chunk, err error) {
	ws := w.now.env.Roster.Workers()
	me := slices.Index(ws, w.cfg.ID)
	i := 0
	for chunk := range slices.Chunk(samples, optim.ScoreChunk) {
		if i%len(ws) == me {
			sc, err := optim.Score(ctx, w.cfg.Engine, centre, engine.Rows(1), stats, chunk)
			if err != nil {
				return nil, err
			}
			out = append(out, message.Chunk{
				Index:   i,
				Loss:    sc[0].Loss,
				Correct: sc[0].Correct,
				Samples: sc[0].Samples,
				Squares: sc[0].Squares,
			})
		}
		i++
	}
	return out, nil
}
