package coordinator

import "brood/runtime/event"

// Goal is computed from the records of a log: what the run is to reach, and whether it has reached it.
type Goal struct {
	Limit    event.Limit    // in effect
	Losses   Losses         // on validation samples
	Progress event.Progress // of the last commit that no plan undid; after a rollback, only the round is known
	scores   []event.Score
	Met      string // sentence about how the last commit met the limit's target; "" if it did not
}

// Take applies the next record.
func (g *Goal) Take(r event.Record) {
	g.Losses.Take(r)
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
		for metric, value := range testMetrics(g.scores, r.Evaluation) {
			g.measured(metric, value)
		}
	case r.Points != nil:
		if metric, value, ok := pointsMetric(r.Points); ok {
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

// Reached reports whether the run has nothing left to do: the limit of rounds or epochs is reached, the target is met,
// or its patience is over. A limit of time counts per process; the log does not record it, except by the end of the
// run.
func (g Goal) Reached() bool {
	return g.Limit.Reached(g.Progress) || g.Met != "" || g.Losses.Stalled(g.Limit) != ""
}
