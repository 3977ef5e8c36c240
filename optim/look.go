package optim

import (
	"cmp"
	"math"
	"slices"

	"brood/models/engine"
)

// SeriesGradient is measured of every algorithm that takes gradients of its members' own mini-batches, by the runtime,
// unless the algorithm declares a series of that name.
var SeriesGradient = Series{Name: "gradient.norm", Title: "gradient norm", Kind: PerMember,
	Doc: "Euclidean norm of the member's last gradient in a round that a probe follows, before it is clipped and weight decay is added"}

// look is a distance that tasks write out in a round that a probe follows.
type look struct {
	member engine.Member
	series string
	rms    *float64
	scale  float64
}

// Probe says beforehand whether a probe follows the next round: what costs a pass over the parameters is measured in
// such rounds alone.
func (e *Env) Probe(follows bool) { e.probed, e.looks = follows, nil }

// Looks is what was measured in a round that a probe follows, by series and member: of each member hosted here its last
// value. The engine has been waited for.
func (e *Env) Looks() []Point {
	last := map[look]float64{}
	for _, l := range e.looks {
		last[look{member: l.member, series: l.series}] = *l.rms * l.scale
	}
	out := make([]Point, 0, len(last))
	for l, x := range last {
		out = append(out, Point{Member: l.member, Series: l.series, Value: x})
	}
	slices.SortFunc(out, func(a, b Point) int { return cmp.Or(cmp.Compare(a.Series, b.Series), cmp.Compare(a.Member, b.Member)) })
	return out
}

// far lists what measures how far the first rows of x, which belong to these rows of Mine, are from one row, or from
// zero where that is the zero Mat, times scale. It lists nothing where no probe follows.
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

// norms lists what measures the gradients of a step.
func (e *Env) norms(s Step) []engine.Task {
	return e.DistanceTasks(SeriesGradient.Name, s.Rows, s.G, engine.Mat{}, math.Sqrt(float64(s.G.Cols)))
}
