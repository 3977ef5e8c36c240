package alert

import (
	"cmp"
	"slices"

	"brood/optim/population"
	"brood/runtime/event"
)

// Extremes finds the points of a log with which a [Monitor] compares later ones: the least loss of the centre, and the
// greatest spread and diversity. They stand in for removed records. The zero value is ready to use.
type Extremes struct{ found map[string]event.Record } // by series

// Take takes the next record of the log.
func (x *Extremes) Take(r event.Record) {
	switch {
	case r.Plan != nil && restarts(r.Plan):
		clear(x.found)
	case r.Points != nil:
		value, ok := extreme(r.Points)
		if !ok {
			return
		}
		if best, known := x.found[r.Points.Series]; known {
			if most, _ := extreme(best.Points); value <= most {
				return
			}
		}
		if x.found == nil {
			x.found = map[string]event.Record{}
		}
		x.found[r.Points.Series] = r
	}
}

// extreme returns a figure that is greatest for the points to keep; ok is false for other series.
func extreme(p *event.Points) (value float64, ok bool) {
	switch p.Series {
	case event.SeriesCentre:
		x := p.Values[len(p.Values)-1]
		return -x, x > 0 && x-x == 0
	case event.SeriesSpread, population.SeriesDiversity.Name:
		return meanOf(p)
	}
	return 0, false
}

// Records returns the points in the order of their rounds.
func (x *Extremes) Records() (out []event.Record) {
	for _, series := range []string{event.SeriesCentre, event.SeriesSpread, population.SeriesDiversity.Name} {
		if r, ok := x.found[series]; ok {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b event.Record) int { return cmp.Compare(a.Points.Round, b.Points.Round) })
	return out
}
