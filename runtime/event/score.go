package event

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

// Targets is what a regression predicts, as its scores need it.
type Targets struct {
	Label string `cbor:"0,keyasint,omitempty"` // the column, where it has a name
	// per output, of the training samples
	Mean      []float32 `cbor:"1,keyasint"`
	Deviation []float32 `cbor:"2,keyasint"`
	// of the test set's standardised targets about their own mean, mean over the outputs
	Variance float64 `cbor:"3,keyasint"`
}

// unit is what one deviation is in the unit of the targets: 1 where several outputs have several units.
func (t *Targets) unit() float64 {
	if len(t.Deviation) == 1 {
		return float64(t.Deviation[0])
	}
	return 1
}

// explained is R2; no number where the targets of the test set are all alike.
func (t *Targets) explained(e *Evaluation) float64 {
	if t.Variance == 0 {
		return math.NaN()
	}
	return 1 - e.Squares/t.Variance
}

// Score is what the centre of a run is tested by: one place says it for screens, summaries, tables and exports.
type Score struct {
	Series  string // of views and exports
	Key     string // in JSON, and of a metric
	Title   string
	Percent bool
	More    bool // is better
	of      func(e *Evaluation) float64
}

// Of is the score of an evaluation.
func (s Score) Of(e *Evaluation) float64 { return s.of(e) }

// Better says whether score x is better than y.
func (s Score) Better(x, y float64) bool {
	if s.More {
		return x > y
	}
	return x < y
}

// Unit is what stands beside a number, "" for none.
func (s Score) Unit() string {
	if s.Percent {
		return "%"
	}
	return ""
}

// Keys of scores that others know by name.
const (
	KeyTestError, KeyTestRMSE, KeyTestR2 = "test_error", "test_rmse", "test_r2"
	KeyTestBits, KeyTestHamming          = "test_bits", "test_hamming"
	KeyTestFitness, KeyTestLoss          = "test_fitness", "test_loss"
)

// Scores are what the centre is tested by, what a line has room for first:
//
//	classes         the share of wrong predictions
//	several classes the share of samples of which any label is wrong (the subset error, 1 - accuracy), and that of labels
//	                that are wrong (the Hamming loss)
//	a text          bits a byte = loss / ln 2; and the share of wrong predictions
//	a regression    RMSE = sqrt(mean (result - target)^2), in the target's unit, with several outputs in deviations; and
//	                R2 = 1 - mean (result - target)^2 / variance of the targets
//	an objective    its fitness
//	distance        the loss: nothing is predicted
func (c *Config) Scores() []Score {
	switch {
	case c.Maximises():
		return []Score{{SeriesTestFitness, KeyTestFitness, "test fitness", false, true, func(e *Evaluation) float64 { return 0 - e.TestLoss }}}
	case c != nil && c.Targets != nil:
		t := c.Targets
		return []Score{
			{SeriesTestRMSE, KeyTestRMSE, "test RMSE", false, false, func(e *Evaluation) float64 { return t.unit() * math.Sqrt(e.Squares) }},
			{SeriesTestR2, KeyTestR2, "test R2", false, true, t.explained},
		}
	case c.distance():
		return []Score{{SeriesTestLoss, KeyTestLoss, "test loss", false, false, func(e *Evaluation) float64 { return e.TestLoss }}}
	}
	wrong := Score{SeriesTestError, KeyTestError, "test error", true, false, func(e *Evaluation) float64 { return e.TestError }}
	if c != nil && c.Text {
		return []Score{{SeriesTestBits, KeyTestBits, "test bits", false, false, func(e *Evaluation) float64 { return e.TestLoss / math.Ln2 }}, wrong}
	}
	if c.multiLabel() {
		return []Score{wrong, {SeriesTestHamming, KeyTestHamming, "test Hamming", true, false, func(e *Evaluation) float64 { return 100 * e.Squares }}}
	}
	return []Score{wrong}
}

// Score is the first of [Config.Scores].
func (c *Config) Score() Score { return c.Scores()[0] }

// Graded says that predictions are right or wrong, so that there is a test error.
func (c *Config) Graded() bool {
	return slices.ContainsFunc(c.Scores(), func(s Score) bool { return s.Key == KeyTestError })
}

// Unit is that of a figure for which nats are declared: only the loss of a model of classes is in nats.
func (c *Config) Unit(declared string) string {
	if strings.TrimPrefix(declared, "-") == "nats" && !c.Graded() {
		return ""
	}
	return declared
}

// Maximises says that a fitness is all there is: the run is of an objective.
func (c *Config) Maximises() bool { return c != nil && c.Objective != "" }

// ModelName is what the model is called: of an objective whose parameters nobody named, the program.
func (c *Config) ModelName() string {
	if c.Maximises() && c.Model == "objective" {
		return c.Objective
	}
	return c.Model
}

// multiLabel says that a sample may be in several classes at once.
func (c *Config) multiLabel() bool { return c != nil && c.Loss == "bce" }

// distance says that nothing is predicted, so that there is a loss alone.
func (c *Config) distance() bool {
	return c != nil && (c.Loss == "distance" || c.Loss == "" && !c.Own && saysDistance.MatchString(c.ModelSpec))
}

// saysDistance finds the key of a layer list in logs that do not name the loss.
var saysDistance = regexp.MustCompile(`(?m)^\s*loss\s*=\s*["']distance["']`)
