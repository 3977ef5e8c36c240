package optim

import "brood/models/engine"

// What an objective measures beside the fitness: of each candidate, and of the centre where it is probed.

// Prefixes of the series of metrics. What follows is the metric's name.
const (
	metricPrefix = "metric."
	centrePrefix = "centre.metric."
)

// MetricSeries are the series of metrics of these names.
func MetricSeries(names []string) (out []Series) {
	for _, n := range names {
		out = append(out,
			Series{Name: metricPrefix + n, Title: n, Doc: n + " of the candidates, as the objective measures it, mean over their seeds", Kind: PerMember},
			Series{Name: centrePrefix + n, Title: n + " of the centre", Doc: n + " of the centre, as the objective measures it, mean over the validation seeds"})
	}
	return out
}

// MetricBuffer is where the metrics of so many candidates go; nil where there are none.
func (e *Env) MetricBuffer(candidates int) []float64 {
	if len(e.Metrics) == 0 {
		return nil
	}
	return make([]float64, candidates*len(e.Metrics))
}

// MetricPoints are the metrics of the hosted members, a row for each, over so many samples.
func (e *Env) MetricPoints(v []float64, samples int) (out []Point) {
	for k, name := range e.Metrics {
		for i, m := range e.Mine {
			out = append(out, Point{Member: m, Series: metricPrefix + name, Value: v[i*len(e.Metrics)+k] / float64(samples)})
		}
	}
	return out
}

// CentreMetrics are the metrics of the centre.
func (e *Env) CentreMetrics(s Scores) (out []Point) {
	for k, name := range e.Metrics {
		out = append(out, Point{Member: engine.None, Series: centrePrefix + name, Value: s.Metrics[k] / float64(max(1, s.Samples))})
	}
	return out
}
