package optim

import (
	"cmp"
	"math"
	"slices"

	"brood/models/engine"
)

// SeriesGradient is added by the runtime to every algorithm whose members compute gradients of their own mini-batches,
// unless the algorithm declares a series of that name.
var SeriesGradient = Series{Name: "gradient.norm", Title: "gradient norm", Kind: PerMember,
	Doc: "Euclidean norm of the member's last gradient in a round that a probe follows, before it is clipped and weight " +
		"decay is added"}

// look is a distance that a task computes in a round before a probe.
type look struct {
	member engine.Member
	series string
	rms    *float64
	scale  float64
}

// Probe announces whether a probe follows the next round. Measurements that cost a pass over the parameters are made
// only in such rounds. It discards earlier measurements.
func (e *Env) Probe(follows bool) { e.probed, e.looks = follows, nil }

// Looks returns the last measurement of each member hosted here in a round before a probe, sorted by series and member.
// The engine's Wait must have returned.
func (e *Env) Looks() []Point {
	last := map[look]float64{}
	for _, l := range e.looks {
		last[look{member: l.member, series: l.series}] = *l.rms * l.scale
	}
	out := make([]Point, 0, len(last))
	for l, x := range last {
		out = append(out, Point{Member: l.member, Series: l.series, Value: x})
	}
	slices.SortFunc(out, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Series, b.Series), cmp.Compare(a.Member, b.Member))
	})
	return out
}

// DistanceTasks returns the tasks that measure, for a series, the RMS distance of the first len(rows) rows of x from
// one row (or from zero if from is the zero Mat), times scale. rows are the rows of Mine they belong to. It returns nil
// unless a probe follows the round.
func (e *Env) DistanceTasks(series string, rows []engine.Row, x, from engine.Mat, scale float64) []engine.Task {
	if !e.probed || len(rows) == 0 {
		return nil
	}
	rms := make([]float64, len(rows))
	for i, r := range rows {
		e.looks = append(e.looks, look{e.Mine[r], series, &rms[i], scale})
	}
	return []engine.Task{engine.Distance{X: x.Sub(0, len(rows)), Centre: from, RMS: rms}}
}

// norms returns the tasks that measure the gradient norms of a step.
func (e *Env) norms(s Step) []engine.Task {
	return e.DistanceTasks(SeriesGradient.Name, s.Rows, s.G, engine.Mat{}, math.Sqrt(float64(s.G.Cols)))
}
