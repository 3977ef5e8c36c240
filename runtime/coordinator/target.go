package coordinator

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"brood/models/usererr"
	"brood/runtime/event"
)

// Metric is a metric that a target can name.
type Metric string

const (
	Loss        Metric = "loss"         // of the centre, on the probe samples; lower is better
	TestLoss    Metric = "test_loss"    // of the centre, on the test set
	TestError   Metric = "test_error"   // of the centre, on the test set, in percent
	TestBits    Metric = "test_bits"    // of the centre, on the test bytes of a text, in bits per byte
	TestHamming Metric = "test_hamming" // of the centre, on the test set, percent of wrong labels of several classes
	TestRMSE    Metric = "test_rmse"    // of the centre of a regression, on the test set, in the unit of its targets
	TestR2      Metric = "test_r2"      // of the centre of a regression, on the test set; higher is better
	Fitness     Metric = "fitness"      // best of the population, on validation samples; higher is better
	TestFitness Metric = "test_fitness" // of the centre of an objective, on the test seeds; higher is better
)

// Metrics lists all values.
var Metrics = []Metric{Loss, TestLoss, TestError, TestBits, TestHamming, TestRMSE, TestR2, Fitness, TestFitness}

// Target parses the target of a limit, such as test_error=2.8. Whether the value is possible for a loss or a fitness
// depends on what the run measures: see [Within].
func Target(text string) (metric Metric, value float64, err error) {
	name, num, ok := strings.Cut(text, "=")
	metric = Metric(name)
	value, perr := strconv.ParseFloat(num, 64)
	if !ok || perr != nil || !slices.Contains(Metrics, metric) {
		return "", 0, usererr.Errorf("target %q: write loss=0.1, test_loss=0.1, test_error=2.8 (percent), test_bits=2, "+
			"test_hamming=1, test_rmse=5, test_r2=0.9, fitness=-0.1 (minus a loss) or test_fitness=475 (of an objective)", text)
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return "", 0, usererr.Errorf("target %q would never be met: give a finite number", text)
	}
	if metric == TestR2 && !(value <= 1) {
		return "", 0, usererr.Errorf("target %q would never be met: R2 is at most 1", text)
	}
	if !slices.Contains([]Metric{Fitness, TestFitness, TestR2, Loss, TestLoss}, metric) && !(value >= 0) {
		return "", 0, neverMet(text)
	}
	return metric, value, nil
}

// neverMet returns the error for a target below the minimum of a loss, an error or a distance.
func neverMet(text string) error {
	return usererr.Errorf("target %q would never be met: give a number from 0 on", text)
}

// Within rejects a target that the run cannot meet. A loss is never below 0, and a fitness, which is minus a loss,
// never above 0. With maximises, the fitness is an objective that may have any value, and any target is accepted.
func Within(text string, maximises bool) error {
	metric, value, err := Target(text)
	switch {
	case err != nil || maximises:
		return err
	case metric == Fitness && value > 0:
		return usererr.Errorf("target %q would never be met: fitness is minus a loss, so give a number up to 0", text)
	case (metric == Loss || metric == TestLoss) && value < 0:
		return neverMet(text)
	}
	return nil
}

// pointsMetric returns the metric that points measure, with its value; ok is false if there is none.
func pointsMetric(p *event.Points) (metric Metric, value float64, ok bool) {
	switch {
	case len(p.Values) == 0:
	case p.Series == event.SeriesCentre:
		return Loss, p.Values[0], true
	case p.Series == event.SeriesJudged:
		best := math.Inf(-1)
		for _, x := range p.Values {
			if x > best { // false for NaN, which marks a missing value
				best = x
			}
		}
		return Fitness, best, true
	}
	return "", 0, false
}

// testMetrics returns the metrics of an evaluation.
func testMetrics(scores []event.Score, e *event.Evaluation) map[Metric]float64 {
	out := map[Metric]float64{TestLoss: e.TestLoss}
	for _, s := range scores {
		out[Metric(s.Key)] = s.Of(e)
	}
	return out
}

// checkTarget ends the run if a metric meets the target.
func (c *Coordinator) checkTarget(metric Metric, value float64) []Effect {
	met := Met(c.cfg.Limit, metric, value)
	if met == "" || !c.mayFinish() {
		return nil
	}
	c.ending = nil
	return c.end(event.Finished, met)
}

// Met returns a sentence if a measured value meets the target of a limit; otherwise "".
func Met(l event.Limit, metric Metric, value float64) string {
	want, at, err := Target(l.Target)
	reached := value <= at
	if metric == Fitness || metric == TestFitness || metric == TestR2 {
		reached = value >= at
	}
	if err != nil || want != metric || !reached {
		return ""
	}
	return fmt.Sprintf("%s = %.4g reached the target %g", metric, value, at)
}
