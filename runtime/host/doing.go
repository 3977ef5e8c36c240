package host

import (
	"slices"
	"time"

	"brood/runtime/view"
	"brood/runtime/worker"
)

// stages lists the stages of a worker in their order. Package view uses the same names.
var stages = []worker.Stage{worker.StageMemory, worker.StageMembers, worker.StageRound}

// doing summarises the current activity of the workers of this process and of others; nil if all are idle. An unknown
// stage, which a later version may report, counts as idle. The stage is the earliest one among the workers. Workers in
// a later stage count as done in this one. Done and Of are sums, Round is the smallest round and For the longest time
// since a worker entered the stage.
func (s *measurements) doing(now time.Time, others []worker.Doing) *view.Doing {
	s.mu.Lock()
	workers := slices.Clone(s.all)
	s.mu.Unlock()
	for _, w := range workers {
		others = append(others, w.Doing())
	}
	var all []worker.Doing
	stage := len(stages)
	for _, d := range others {
		if i := slices.Index(stages, d.Stage); i >= 0 {
			all, stage = append(all, d), min(stage, i)
		}
	}
	if len(all) == 0 {
		return nil
	}
	out := &view.Doing{Stage: view.Stage(stages[stage])}
	for _, d := range all {
		out.Members += d.Members
		if d.Stage != stages[stage] { // a later stage, which counts in other units
			if stages[stage] == worker.StageMembers {
				out.Done, out.Of = out.Done+d.Members, out.Of+d.Members
			}
			continue
		}
		out.Done, out.Of = out.Done+d.Done, out.Of+d.Of
		if out.Round == 0 || d.Round < out.Round {
			out.Round = d.Round
		}
		out.For = max(out.For, now.Sub(time.Unix(0, d.Since)))
	}
	return out
}
