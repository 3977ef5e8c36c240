package event

import "regexp"

// Score is what the centre of a run is tested by: the one place that says what is shown, told and compared.
type Score uint8

const (
	ErrorScore   Score = iota // the share of wrong predictions, in percent
	FitnessScore              // minus the loss, which somebody else measured: an objective
	LossScore                 // nothing is right or wrong, and the loss says it all
)

// Score is that of the run; of an unknown one the first.
func (c *Config) Score() Score {
	switch {
	case c == nil:
		return ErrorScore
	case c.Objective != "":
		return FitnessScore
	case c.Loss == "distance" || c.Loss == "" && !c.Own && saysDistance.MatchString(c.ModelSpec):
		return LossScore
	}
	return ErrorScore
}

// saysDistance finds the key of a layer list in logs that do not name the loss.
var saysDistance = regexp.MustCompile(`(?m)^\s*loss\s*=\s*["']distance["']`)

// Name is what people are told that it is.
func (s Score) Name() string { return [...]string{"test error", "test fitness", "test loss"}[s] }

// Of is the score of an evaluation.
func (s Score) Of(e *Evaluation) float64 {
	switch s {
	case FitnessScore:
		return -e.TestLoss
	case LossScore:
		return e.TestLoss
	}
	return e.TestError
}

// Better says whether score x is better than y.
func (s Score) Better(x, y float64) bool {
	if s == FitnessScore {
		return x > y
	}
	return x < y
}
