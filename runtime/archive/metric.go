package archive

import (
	"math"
	"strings"

	"brood/runtime/event"
)

// Metric returns a figure of the run. Call it after [Tally.Finish]. ok is false if the run does not have the figure.
func (t *Tally) Metric(name string) (x float64, ok bool) {
	sent := 0.0
	for _, n := range t.Sum.BytesSent {
		sent += float64(n)
	}
	samples := since(t.Sum.Samples, t.before.Samples) // for which the bytes were sent
	evaluations := since(t.Sum.Evaluations, t.before.Evaluations)
	switch {
	case name == event.KeyTestLoss && t.Tested() != nil: // of any run, whatever its score is
		return t.Tested().TestLoss, true
	case (strings.HasPrefix(name, "test_") || strings.HasPrefix(name, "validation_")) && t.Tested() != nil:
		for _, s := range append(t.Config.Scores(), t.Config.ValidationScores()...) {
			if s.Key == name {
				x = s.Of(t.Tested())
				return x, x == x
			}
		}
		return 0, false
	case (name == "memory" || name == "diversity") && t.means[name] != nil:
		return t.means[name].sum / t.means[name].count, true
	case name == "seconds" && t.Sum.Seconds > 0:
		return t.Sum.Seconds, true
	case name == "mean_fitness" && t.Sum.MeanFitness != nil:
		return *t.Sum.MeanFitness, true
	case name == "train_loss" && t.Sum.TrainLoss != nil:
		return *t.Sum.TrainLoss, true
	case name == "samples" && t.Sum.Samples > 0:
		return float64(t.Sum.Samples), true
	case name == "bytes" && t.Sum.Rounds > 0:
		return sent, true
	case name == "bytes_per_sample" && samples > 0:
		return sent / samples, true
	case name == "bytes_per_eval" && evaluations > 0:
		return sent / evaluations, true
	case name == "samples_per_s":
		return t.Sum.SamplesPerSecond, true
	case (name == "epochs" || name == "node_samples") && t.Goal.Limit.Target != "" && t.Goal.Met == "":
		return math.Inf(1), true // the target may never be met
	case name == "epochs" && t.Sum.Epochs > 0:
		return t.Sum.Epochs, true
	case name == "node_samples" && t.Goal.Met != "" && t.Sum.Members > 0:
		return float64(t.Sum.Samples) / float64(t.Sum.Members), true
	case name == "centre_loss" && t.centre != nil:
		return *t.centre, true
	case name == "train_error" && t.trainError != nil:
		return *t.trainError, true
	case name == "spread" && len(t.spread) > 0:
		sum := 0.0
		for _, x := range t.spread {
			sum += x
		}
		return sum / float64(len(t.spread)), true
	case name == "centre_advance" && t.centre != nil && len(t.fitness) > 0:
		mean := 0.0
		for _, f := range t.fitness {
			mean -= f / float64(len(t.fitness))
		}
		return mean - *t.centre, true
	}
	return 0, false
}
