package protocol

import (
	"context"
	"math"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// Result is the outcome of one execution.
type Result struct {
	Member engine.Member
	Time   float64 // parallel time at convergence; NaN if the execution ended without convergence
	Right  float64 // 1 if the output is correct, else 0; NaN if the protocol expects no output
}

// Simulate runs executions of a protocol until all have ended, without recording a run. The results are bit-identical
// to the results of a run with this seed and these knobs. It returns the error of the algorithm's Check. After each
// round it calls progress, unless nil, with the parallel time of the executions and the number of them that ended in
// the round.
func Simulate(
	ctx context.Context,
	a *optim.Algorithm,
	k optim.Values,
	seed uint64,
	members []engine.Member,
	progress func(time float64, ended int64),
) ([]Result, error) {
	e := singleWorkerEnv(a, k, seed, members)
	if a.Check != nil {
		if err := a.Check(optim.Shape{Roster: e.Roster, K: k}); err != nil {
			return nil, err
		}
	}
	out := make([]Result, len(members))
	for i, m := range members {
		out[i] = Result{m, math.NaN(), math.NaN()}
	}
	for round, ended := uint64(0), int64(0); ended < int64(len(members)); round++ {
		rep, err := a.Program.Round(ctx, e, k, round)
		if err != nil {
			return nil, err
		}
		ended += rep.Pass.Done
		if progress != nil {
			progress(float64(round+1)*k.Get("slice"), rep.Pass.Done)
		}
		for _, p := range rep.Points {
			switch r := &out[e.Row(p.Member)]; p.Series {
			case seriesTime.Name:
				r.Time = p.Value
			case "right":
				r.Right = p.Value
			}
		}
	}
	return out, nil
}

// singleWorkerEnv returns the environment of a single worker that hosts all members, before their first round.
func singleWorkerEnv(a *optim.Algorithm, k optim.Values, seed uint64, members []engine.Member) *optim.Env {
	roster := collective.Place(members, []int{0})
	e := &optim.Env{
		Seed:    seed,
		Roster:  roster,
		Mine:    members,
		Records: map[string]engine.Host{},
		Comm:    collective.NewComm(0, 1, roster, []int{0}, nil, nil, 0),
	}
	for _, b := range a.Blocks(k, engine.Layout{}) {
		e.Records[b.Name] = engine.NewHost(len(members), b.Cols, b.Type)
	}
	return e
}
