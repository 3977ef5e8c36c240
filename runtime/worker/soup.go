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

// Models that a population could hand over beside its centre. Every member of the roster must be hosted here.

// ErrNoneHeld says that no samples were held out, by which members could be compared.
var ErrNoneHeld = errors.New("no validation samples were held out")

// Ingredient is a member that a greedy soup was tried with, and what validation samples say: lower is better.
type Ingredient struct {
	Member optim.Member
	Alone  float64 // of the member
	With   float64 // of the mean of the members that were in by then, and this one
	In     bool
}

// Soup tries the members as ingredients of a greedy soup, the best first (Wortsman et al.: Model soups: averaging
// weights of multiple fine-tuned models improves accuracy without increasing inference time, 2022, recipe 1):
//
//	soup <- {};  for each member, by its score alone:  in <- score(mean(soup and it)) <= score(mean(soup))
//
// Of equal members the lower id comes first; a score that is no number comes last, and never goes in behind another.
// Batch-norm statistics are rebuilt for each model, as for a centre.
func (w *Worker) Soup(ctx context.Context, score func(optim.Scores) float64) ([]Ingredient, error) {
	if _, _, err := w.standing(ctx); err != nil {
		return nil, err
	}
	if len(w.cfg.Data.Validation()) == 0 {
		return nil, ErrNoneHeld
	}
	all := make([]Ingredient, len(w.now.env.Roster.Members))
	for i, m := range w.now.env.Roster.Members {
		alone, err := w.judge(ctx, []optim.Member{m}, score)
		if err != nil {
			return nil, err
		}
		all[i] = Ingredient{Member: m, Alone: alone, With: alone}
	}
	slices.SortStableFunc(all, func(a, b Ingredient) int {
		if a.Alone != a.Alone || b.Alone != b.Alone { // a number comes before none
			return -cmp.Compare(a.Alone, b.Alone)
		}
		return cmp.Compare(a.Alone, b.Alone)
	})
	all[0].In = true
	best := all[0].Alone
	for i := 1; i < len(all); i++ {
		var err error
		if all[i].With, err = w.judge(ctx, append(Chosen(all[:i]), all[i].Member), score); err != nil {
			return nil, err
		}
		if all[i].With <= best {
			all[i].In, best = true, all[i].With
		}
	}
	return all, nil
}

// Chosen are the members of a soup, ascending.
func Chosen(of []Ingredient) (in []optim.Member) {
	for _, x := range of {
		if x.In {
			in = append(in, x.Member)
		}
	}
	slices.Sort(in)
	return in
}

// judge is the score of the mean of some members on validation samples.
func (w *Worker) judge(ctx context.Context, of []optim.Member, score func(optim.Scores) float64) (float64, error) {
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

// Mean is the mean of some members, nil for all, as [Worker.Centre] gives the centre.
func (w *Worker) Mean(ctx context.Context, of []optim.Member) (params, stats engine.Host, err error) {
	if _, _, err := w.standing(ctx); err != nil {
		return params, stats, err
	}
	if of == nil {
		of = w.now.env.Roster.Members
	}
	x, st, err := w.mean(ctx, of)
	if err != nil {
		return params, stats, err
	}
	return w.taken(ctx, x, st)
}

// mean is the mean of some members in scratch, which it takes anew, and the statistics rebuilt for it.
func (w *Worker) mean(ctx context.Context, of []optim.Member) (x, stats engine.Mat, err error) {
	env := w.now.env
	of = slices.Sorted(slices.Values(of))
	env.Recycle()
	x = env.Scratch(1, w.cfg.Layout.Params)
	if err := env.MeanOf(ctx, env.Block(optim.BlockX), of, x); err != nil {
		return x, stats, fmt.Errorf("mean of members: %w", because(env, err))
	}
	stats, err = w.rebuildStats(ctx, x)
	return x, stats, err
}

// Rebuilt are the batch-norm statistics of parameters, rebuilt as for a centre.
func (w *Worker) Rebuilt(ctx context.Context, params engine.Host) (stats engine.Host, err error) {
	w.install(w.epoch)
	if w.now == nil {
		return stats, errors.New("statistics: no plan is in force")
	}
	env := w.now.env
	env.Recycle()
	x := env.Scratch(1, w.cfg.Layout.Params)
	if err := w.cfg.Engine.Write(ctx, engine.All(x), engine.AppendRows(nil, params, 0, 1)); err != nil {
		return stats, because(env, err)
	}
	st, err := w.rebuildStats(ctx, x)
	if err != nil {
		return stats, err
	}
	_, stats, err = w.taken(ctx, x, st)
	return stats, err
}

// taken is a model as copies.
func (w *Worker) taken(ctx context.Context, x, st engine.Mat) (params, stats engine.Host, err error) {
	if params, err = optim.Download(ctx, w.cfg.Engine, x); err != nil || st.Rows == 0 {
		return params, stats, err
	}
	stats, err = optim.Download(ctx, w.cfg.Engine, st)
	return params, stats, err
}

// Follow has f told the centre after every round that the worker does from now on, a copy.
func (w *Worker) Follow(f func(round uint64, centre engine.Host) error) { w.follow = f }

func (w *Worker) followed(ctx context.Context) error {
	s := w.now
	s.env.Recycle()
	x := s.env.Scratch(1, w.cfg.Layout.Params)
	if err := s.alg.Program.Centre(ctx, s.env, s.values(), x); err != nil {
		return fmt.Errorf("centre after round %d: %w", s.round, because(s.env, err))
	}
	centre, err := optim.Download(ctx, w.cfg.Engine, x)
	if err != nil {
		return fmt.Errorf("centre after round %d: %w", s.round, err)
	}
	return w.follow(s.round, centre)
}
