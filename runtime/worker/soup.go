package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/optim"
)

// Models that a population can produce in addition to its centre. This worker must host every member of the roster.

// ErrNoneHeld reports that there are no validation samples to compare members by.
var ErrNoneHeld = errors.New("no validation samples were held out")

// Ingredient is a candidate member of a greedy soup, with its scores on validation samples; lower is better.
type Ingredient struct {
	Member engine.Member
	Alone  float64 // score of the member
	With   float64 // score of the mean of the members selected so far and this one
	In     bool    // selected
}

// Soup selects the ingredients of a greedy soup, trying the best member first (Wortsman et al.: Model soups: averaging
// weights of multiple fine-tuned models improves accuracy without increasing inference time, 2022, recipe 1):
//
//	soup <- {};  for each member, by its score alone:  in <- score(mean(soup and it)) <= score(mean(soup))
//
// Among equal members the lower id comes first. A NaN score comes last and is never selected after another member.
// Batch-norm statistics are rebuilt for each model, as for a centre.
func (w *Worker) Soup(ctx context.Context, score func(optim.Scores) float64) ([]Ingredient, error) {
	if _, _, err := w.memberParams(ctx); err != nil {
		return nil, err
	}
	if len(w.cfg.Data.Validation()) == 0 {
		return nil, ErrNoneHeld
	}
	all := make([]Ingredient, len(w.now.env.Roster.Members))
	for i, m := range w.now.env.Roster.Members {
		alone, err := w.scoreMean(ctx, []engine.Member{m}, score)
		if err != nil {
			return nil, err
		}
		all[i] = Ingredient{Member: m, Alone: alone, With: alone}
	}
	slices.SortStableFunc(all, func(a, b Ingredient) int {
		if a.Alone != a.Alone || b.Alone != b.Alone { // numbers before NaN
			return -cmp.Compare(a.Alone, b.Alone)
		}
		return cmp.Compare(a.Alone, b.Alone)
	})
	all[0].In = true
	best := all[0].Alone
	for i := 1; i < len(all); i++ {
		var err error
		if all[i].With, err = w.scoreMean(ctx, append(Chosen(all[:i]), all[i].Member), score); err != nil {
			return nil, err
		}
		if all[i].With <= best {
			all[i].In, best = true, all[i].With
		}
	}
	return all, nil
}

// Chosen returns the selected members of a soup, ascending.
func Chosen(of []Ingredient) (in []engine.Member) {
	for _, x := range of {
		if x.In {
			in = append(in, x.Member)
		}
	}
	slices.Sort(in)
	return in
}

// scoreMean returns the score of the mean of some members on validation samples.
func (w *Worker) scoreMean(ctx context.Context, of []engine.Member, score func(optim.Scores) float64) (float64, error) {
	x, stats, err := w.mean(ctx, of)
	if err != nil {
		return 0, err
	}
	sc, err := optim.Score(ctx, w.cfg.Engine, x, engine.Rows(1), stats, w.cfg.Data.Validation())
	if err != nil {
		return 0, fmt.Errorf("soup: %w", err)
	}
	return score(sc[0]), nil
}

// Mean returns copies of the mean of some members, nil for all, and of its batch-norm statistics, in the form of
// [Worker.Centre].
func (w *Worker) Mean(ctx context.Context, of []engine.Member) (params, stats engine.Host, err error) {
	if _, _, err := w.memberParams(ctx); err != nil {
		return params, stats, err
	}
	if of == nil {
		of = w.now.env.Roster.Members
	}
	x, st, err := w.mean(ctx, of)
	if err != nil {
		return params, stats, err
	}
	return w.download(ctx, x, st)
}

// mean computes the mean of some members in scratch, which it recycles first, and rebuilds its statistics.
func (w *Worker) mean(ctx context.Context, of []engine.Member) (x, stats engine.Mat, err error) {
	env := w.now.env
	of = slices.Sorted(slices.Values(of))
	env.Recycle()
	x = env.Scratch(1, w.cfg.Layout.Params)
	rows := make([]engine.Span, len(of))
	for i, m := range of {
		rows[i] = engine.RowOf(env.Block(optim.BlockX), env.Row(m))
	}
	if err := env.Comm.MeanOf(ctx, of, rows, x); err != nil {
		return x, stats, fmt.Errorf("mean of members: %w", rootCause(env, err))
	}
	stats, err = w.rebuildStats(ctx, x)
	return x, stats, err
}

// Rebuilt returns the batch-norm statistics for params, rebuilt as for a centre.
func (w *Worker) Rebuilt(ctx context.Context, params engine.Host) (stats engine.Host, err error) {
	w.install(w.epoch)
	if w.now == nil {
		return stats, errors.New("statistics: no plan is in force")
	}
	env := w.now.env
	env.Recycle()
	x := env.Scratch(1, w.cfg.Layout.Params)
	if err := w.cfg.Engine.Write(ctx, engine.All(x), engine.AppendRows(nil, params, 0, 1)); err != nil {
		return stats, rootCause(env, err)
	}
	st, err := w.rebuildStats(ctx, x)
	if err != nil {
		return stats, err
	}
	_, stats, err = w.download(ctx, x, st)
	return stats, err
}

// download returns copies of a model's parameters and statistics.
func (w *Worker) download(ctx context.Context, x, st engine.Mat) (params, stats engine.Host, err error) {
	if params, err = engine.Download(ctx, w.cfg.Engine, x); err != nil || st.Rows == 0 {
		return params, stats, err
	}
	stats, err = engine.Download(ctx, w.cfg.Engine, st)
	return params, stats, err
}

// Follow sets a function that the worker calls with a copy of the centre after every later round. An error of f ends
// the grant.
func (w *Worker) Follow(f func(round uint64, centre engine.Host) error) { w.follow = f }

// callFollow computes the centre and passes a copy to w.follow.
func (w *Worker) callFollow(ctx context.Context) error {
	s := w.now
	s.env.Recycle()
	x := s.env.Scratch(1, w.cfg.Layout.Params)
	if err := s.alg.Program.Centre(ctx, s.env, s.values(), x); err != nil {
		return fmt.Errorf("centre after round %d: %w", s.round, rootCause(s.env, err))
	}
	centre, err := engine.Download(ctx, w.cfg.Engine, x)
	if err != nil {
		return fmt.Errorf("centre after round %d: %w", s.round, err)
	}
	return w.follow(s.round, centre)
}
