package protocol

import (
	"context"
	"math"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// Result is how an execution ended.
type Result struct {
	Member engine.Member
	Time   float64 // parallel time at convergence; NaN for an execution that could change no more and had not converged
	Right  float64 // 1 or 0; NaN where nothing is asked for
}

// Simulate runs executions of a protocol to their ends, outside any recorded run, and with the same bits as in a run of
// this seed and these knobs. It refuses what the algorithm's Check refuses. After each round tell, unless it is nil,
// hears the parallel time that executions are at, and how many of them ended in it.
func Simulate(ctx context.Context, a *optim.Algorithm, k optim.Values, seed uint64, members []engine.Member, tell func(time float64, ended int64)) ([]Result, error) {
	e := alone(a, k, seed, members)
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
		if tell != nil {
			tell(float64(round+1)*k.Get("slice"), rep.Pass.Done)
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

// alone is the environment of one worker that hosts these members, before their first round.
func alone(a *optim.Algorithm, k optim.Values, seed uint64, members []engine.Member) *optim.Env {
	roster := collective.Place(members, []int{0})
	e := &optim.Env{Seed: seed, Roster: roster, Mine: members, Records: map[string]engine.Host{}, Comm: collective.NewComm(0, 1, roster, []int{0}, nil, nil, 0)}
	for _, b := range a.Blocks(k, engine.Layout{}) {
		e.Records[b.Name] = engine.NewHost(len(members), b.Cols, b.Type)
	}
	return e
}
