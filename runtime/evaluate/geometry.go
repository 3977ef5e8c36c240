package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/geometry"
	"brood/runtime/host"
	"brood/runtime/worker"
)

const (
	linePoints      = 21  // default number of points on a line
	geometryMembers = 128 // maximum number of members that are compared pairwise
)

// MeasureGeometry recomputes a round of the session in dir, with the arguments of [Export], and measures the distances
// within its population and the losses on the line between two members. Losses use the samples of probes: of the
// validation split, or of the training split if that is empty. If the members share one model, it compares the
// estimates of its gradient instead. The session may be running, and does not change. Of more than 128 members, 128
// evenly spaced ones are compared.
func MeasureGeometry(
	ctx context.Context, own *host.Own, dir string, want geometry.Wanted, progress func(event.Commit),
) (*geometry.Geometry, error) {
	at, err := host.Checkpointed(dir, want.At)
	if err != nil {
		return nil, err
	}
	p, err := own.Past(dir, at)
	if err != nil {
		return nil, err
	}
	if p.Job.Modelless() {
		return nil, fmt.Errorf("%s trained no model: its members have no parameters to compare", p.Name())
	}
	all := p.Members()
	if want.Pair {
		for _, m := range []engine.Member{want.From, want.To} {
			if !slices.Contains(all, m) {
				return nil, fmt.Errorf("there is no member %d in round %d of %s: choose among %d to %d",
					m, at, p.Name(), all[0], all[len(all)-1])
			}
		}
		if want.From == want.To {
			return nil, fmt.Errorf("member %d is one point: name two members", want.From)
		}
	}
	w, err := p.Recompute(ctx, want.Threads, progress)
	if err != nil {
		return nil, err
	}
	defer w.Free()
	now, err := w.State(ctx)
	if err != nil {
		return nil, err
	}
	g, err := w.Geometry(ctx, compared(all, want))
	switch {
	case errors.Is(err, worker.ErrNoReplicas) && !want.Pair:
		return slopes(ctx, p, w, now)
	case errors.Is(err, worker.ErrNoReplicas):
		return nil, noReplicas(p, now)
	case err != nil:
		return nil, err
	}
	g.Session, g.Algorithm, g.Round, g.Population = p.Name(), now.Algorithm, now.Round, len(all)
	g.Measured, g.Graded = p.Job.OwnModel().Maximises(), p.Job.Config.Graded()
	if len(g.Members) < 2 {
		return g, nil
	}
	if g.From, g.To = want.From, want.To; !want.Pair {
		g.From, g.To = g.Furthest()
	}
	g.Line, err = w.Line(ctx, g.From, g.To, cmp.Or(want.Points, linePoints))
	return g, err
}

// noReplicas returns the error for a session whose members share one model.
func noReplicas(p *host.Past, now event.Checkpoint) error {
	return fmt.Errorf("%s has one model in round %d: %s gives its members no parameters of their own",
		p.Name(), now.Round, now.Algorithm)
}

// generations is the number of generations whose estimates are compared with the gradient.
const generations = 8

// slopes compares gradient estimates with the gradient, for an algorithm whose members are candidates around one model.
// It returns an error if the run maximises an objective, which has no gradient.
func slopes(
	ctx context.Context, p *host.Past, w *worker.Worker, now event.Checkpoint,
) (*geometry.Geometry, error) {
	if p.Job.OwnModel().Maximises() {
		return nil, fmt.Errorf("%s has one model in round %d, and its objective has no gradient to compare an estimate with",
			p.Name(), now.Round)
	}
	all, samples, err := w.Slope(ctx, generations)
	switch {
	case errors.Is(err, worker.ErrNoReplicas):
		return nil, noReplicas(p, now)
	case err != nil:
		return nil, err
	}
	return &geometry.Geometry{
		Session:    p.Name(),
		Algorithm:  now.Algorithm,
		Round:      now.Round,
		Population: len(now.Roster.Members),
		Slopes:     all,
		Params:     p.Job.Net.Layout.Params,
		Samples:    samples,
	}, nil
}

// compared returns the members to compare: all, or geometryMembers evenly spaced ones plus the requested pair.
func compared(all []engine.Member, want geometry.Wanted) (some []engine.Member) {
	if len(all) <= geometryMembers {
		return all
	}
	for i := range geometryMembers {
		some = append(some, all[i*len(all)/geometryMembers])
	}
	if want.Pair {
		some = append(some, want.From, want.To)
		slices.Sort(some)
		some = slices.Compact(some)
	}
	return some
}
