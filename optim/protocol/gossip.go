package protocol

import (
	"context"
	"math"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
)

// GossipMean averages real numbers. Agents have distinct states, so that it is simulated only agent by agent.
var GossipMean = &optim.Algorithm{
	Name:  "gossip-mean",
	Title: "Mean by gossip",
	Paper: "Boyd, Ghosh, Prabhakar, Shah: Randomized gossip algorithms (2006)",
	Doc: `Every agent starts with a number drawn from N(0,1). Two agents that meet both take their mean, so that all
numbers converge to the mean of all.

    x_i, x_j -> (x_i + x_j)/2

A meeting multiplies the expected sum of squared distances to the mean by 1 - 1/(n-1). An execution has converged when
the root mean square of these distances is at most tol. Theory: about ln(1/tol) * 2(n-1)/n, slightly more for small n. A
member is one execution.
Series: loss is that root mean square.
Bytes: 16 per member to every other worker in each round.`,
	Knobs: []optim.Knob{
		{
			Name:    "n",
			Title:   "agents",
			Unit:    "agents",
			Doc:     "agents of an execution; a change restarts all executions",
			Min:     2,
			Max:     maxAgents,
			Default: 1000,
			Integer: true,
			Scale:   optim.Log,
		},
		{
			Name:    "tol",
			Title:   "tolerance",
			Doc:     "an execution has converged at this root-mean-square distance to the mean",
			Min:     1e-5,
			Max:     1,
			Default: 0.001,
			Scale:   optim.Log,
		},
		knobSlice,
	},
	Series: []optim.Series{seriesLoss, seriesTime},
	Blocks: func(k optim.Values, _ engine.Layout) []optim.Block {
		return []optim.Block{
			{Name: gossipBlock, Cols: k.I("n"), Record: true},
			optim.Counter(optim.BlockClock, false),
			optim.Counter(optim.BlockEnd, false),
		}
	},
	Bytes:   gatherBytes,
	Program: gossip{},
}

const gossipBlock = optim.BlockAgents + ".gossip-mean"

type gossip struct{}

// values implements simulation for GossipMean.
type values struct {
	e     *optim.Env
	round uint64
	x     engine.Host
	tol   float64
}

func (gossip) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	s := &values{e, round, e.Record(gossipBlock), k.Get("tol")}
	return advance(ctx, e, k, []string{seriesLoss.Name}, s, func(engine.Row) (float64, bool) { return 0, false })
}

func (gossip) Centre(context.Context, *optim.Env, optim.Values, engine.Mat) error { return nil }

// begin draws the numbers of row r if all of them are zero.
func (s *values) begin(r engine.Row, m engine.Member) (bool, error) {
	x := s.x.Row(r)
	for _, v := range x {
		if v != 0 {
			return false, nil
		}
	}
	key := noise.Key{Seed: s.e.Seed, Purpose: noise.Init, Member: uint32(m)}
	key.Each(0, len(x), len(x), func(at int, eps []float32) { copy(x[at:], eps) })
	return true, nil
}

func (s *values) run(ctx context.Context, r engine.Row, m engine.Member, left uint64) (met, end uint64, err error) {
	x, random := s.x.Row(r), newSource(s.e.Rand(noise.Pair, s.round, m))
	n := uint64(len(x))
	gamma := disagreement(x) // sum of squared distances to the mean
	goal := float64(s.tol*s.tol) * float64(n)
	for met < left {
		if gamma <= goal {
			return met, 1, nil
		}
		if met%cancelCheckInterval == 0 {
			if err := ctx.Err(); err != nil {
				return met, 0, err
			}
		}
		met++
		i, j := random.distinctPair(n)
		d := float64(x[i]) - float64(x[j])
		gamma -= float64(0.5 * d * d)
		x[i] = (x[i] + x[j]) / 2
		x[j] = x[i]
	}
	if gamma <= goal {
		end = 1
	}
	return met, end, nil
}

func (s *values) measure(r engine.Row) []float64 {
	x := s.x.Row(r)
	return []float64{math.Sqrt(disagreement(x) / float64(len(x)))}
}

// disagreement returns the sum of squared distances of x to its mean.
func disagreement(x []float32) (gamma float64) {
	mean := 0.0
	for _, v := range x {
		mean += float64(v)
	}
	mean /= float64(len(x))
	for _, v := range x {
		d := float64(v) - mean
		gamma += float64(d * d)
	}
	return gamma
}
