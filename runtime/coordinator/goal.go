package coordinator

import "brood/runtime/event"

// Goal folds the records of a log into what its run is to reach, and whether it did.
type Goal struct {
	Limit    event.Limit    // in force
	Progress event.Progress // of the last commit that no plan undid; after one that did, of its round alone
	scores   []event.Score
	Met      string // how the last commit met the target of the limit, a sentence; "" where it did not
}

// Take looks at the next record.
func (g *Goal) Take(r event.Record) {
	switch {
	case r.Config != nil:
		g.Limit, g.scores = r.Config.Limit, r.Config.Scores()
	case r.Plan != nil:
		if r.Plan.At < g.Progress.Rounds {
			g.Progress, g.Met = event.Progress{Rounds: r.Plan.At}, ""
		}
	case r.Commit != nil:
		g.Progress, g.Met = r.Commit.Progress, ""
	case r.Evaluation != nil:
		for metric, value := range tested(g.scores, r.Evaluation) {
			g.measured(metric, value)
		}
	case r.Points != nil:
		if metric, value, ok := aimed(r.Points); ok {
			g.measured(metric, value)
		}
	case r.State != nil && r.State.Limit != nil && *r.State.Limit != g.Limit:
		g.Limit, g.Met = *r.State.Limit, ""
	}
}

func (g *Goal) measured(metric Metric, value float64) {
	if g.Met == "" {
		g.Met = Met(g.Limit, metric, value)
	}
}

// Reached says that nothing is left to do: the limit of rounds or epochs is reached, or the target is met. A limit of
// time is of a process, and no log tells of it but by the end of the run.
func (g Goal) Reached() bool { return g.Limit.Reached(g.Progress) || g.Met != "" }
