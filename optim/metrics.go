package optim

import "brood/models/engine"

// Prefixes of the series of metrics, values that an objective measures besides the fitness, of candidates and of the
// centre. The name of the metric follows.
const (
	metricPrefix = "metric."
	centrePrefix = "centre.metric."
)

// MetricSeries returns the series of the named metrics.
func MetricSeries(names []string) (out []Series) {
	for _, n := range names {
		out = append(out,
			Series{
				Name:  metricPrefix + n,
				Title: n,
				Doc:   n + " of the candidates, as the objective measures it, mean over their seeds",
				Kind:  PerMember,
			},
			Series{Name: centrePrefix + n, Title: n + " of the centre",
				Doc: n + " of the centre, as the objective measures it, mean over the validation seeds"})
	}
	return out
}

// MetricBuffer returns a buffer for the metrics of the given number of candidates, or nil without metrics.
func (e *Env) MetricBuffer(candidates int) []float64 {
	if len(e.Metrics) == 0 {
		return nil
	}
	return make([]float64, candidates*len(e.Metrics))
}

// MetricPoints returns the metrics of the members hosted here. v has a row per member, summed over the given samples.
func (e *Env) MetricPoints(v []float64, samples int) (out []Point) {
	for k, name := range e.Metrics {
		for i, m := range e.Mine {
			out = append(out, Point{Member: m, Series: metricPrefix + name, Value: v[i*len(e.Metrics)+k] / float64(samples)})
		}
	}
	return out
}

// CentreMetrics returns the metrics of the centre.
func (e *Env) CentreMetrics(s Scores) (out []Point) {
	for k, name := range e.Metrics {
		out = append(out, Point{Member: engine.None, Series: centrePrefix + name,
			Value: s.Metrics[k] / float64(max(1, s.Samples))})
	}
	return out
}
