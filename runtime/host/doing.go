package host

import (
	"slices"
	"time"

	"brood/runtime/view"
	"brood/runtime/worker"
)

// stages in the order in which a run goes through them; package view has the same names.
var stages = []worker.Stage{worker.StageMemory, worker.StageMembers, worker.StageRound}

// doing sums up what the workers of this process do, nil where they do nothing: the stage of the last one, in which
// workers that are further have done all of their part.
func (s *measuring) doing(now time.Time) *view.Doing {
	s.mu.Lock()
	workers := slices.Clone(s.all)
	s.mu.Unlock()
	var all []worker.Doing
	stage := len(stages)
	for _, w := range workers {
		if d := w.Doing(); d.Stage != "" {
			all, stage = append(all, d), min(stage, slices.Index(stages, d.Stage))
		}
	}
	if len(all) == 0 {
		return nil
	}
	out := &view.Doing{Stage: view.Stage(stages[stage])}
	for _, d := range all {
		out.Members += d.Members
		if d.Stage != stages[stage] { // it is further, and its parts are of another kind
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
