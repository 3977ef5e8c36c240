package event

import (
	"math"
	"slices"
	"strings"
)

// Targets describes the targets of a regression, as far as its scores need it.
type Targets struct {
	Label string `cbor:"0,keyasint,omitempty"` // name of the column; "" if it has none
	// mean and standard deviation of each output over the training samples
	Mean      []float32 `cbor:"1,keyasint"`
	Deviation []float32 `cbor:"2,keyasint"`
	// variance of the standardised targets of the test samples about their mean, averaged over the outputs
	Variance float64 `cbor:"3,keyasint"`
}

// unit returns the standard deviation in the unit of the target; 1 for several outputs, whose units differ.
func (t *Targets) unit() float64 {
	if len(t.Deviation) == 1 {
		return float64(t.Deviation[0])
	}
	return 1
}

// explained returns R2, the explained share of the variance; NaN if all targets of the test samples are equal.
func (t *Targets) explained(e *Evaluation) float64 {
	if t.Variance == 0 {
		return math.NaN()
	}
	return 1 - e.Squares/t.Variance
}

// Score is a test metric of the centre. Screens, summaries, tables and exports all use this definition.
type Score struct {
	Series  string // name in views and exports
	Key     string // name in JSON and of a target
	Title   string
	Percent bool
	More    bool // higher is better
	of      func(e *Evaluation) float64
}

// TestScores are the metrics of the test set, the most important one first. They are without a run: [Config.Scores]
// returns those of a run, with values.
var TestScores = []Score{
	{Series: SeriesTestBits, Key: KeyTestBits, Title: "test bits"},
	{Series: SeriesTestError, Key: KeyTestError, Title: "test error", Percent: true},
	{Series: SeriesTestHamming, Key: KeyTestHamming, Title: "test Hamming", Percent: true},
	{Series: SeriesTestRMSE, Key: KeyTestRMSE, Title: "test RMSE"},
	{Series: SeriesTestR2, Key: KeyTestR2, Title: "test R2", More: true},
	{Series: SeriesTestFitness, Key: KeyTestFitness, Title: "test fitness", More: true},
	{Series: SeriesTestLoss, Key: KeyTestLoss, Title: "test loss"},
}

// testScore returns the score of TestScores with a key, whose values of returns.
func testScore(key string, of func(e *Evaluation) float64) Score {
	s := TestScores[slices.IndexFunc(TestScores, func(s Score) bool { return s.Key == key })]
	s.of = of
	return s
}

// Heading returns the title with the unit, for columns and charts.
func (s Score) Heading() string {
	switch {
	case s.Key == KeyTestBits || s.Key == KeyValidationBits:
		return s.Title + " a byte"
	case s.Percent:
		return s.Title + " %"
	}
	return s.Title
}

// OnValidation returns the score on the validation samples in place of the test set, without values.
func (s Score) OnValidation() Score {
	s.Key, s.Series, s.Title = validationName(s.Key), validationName(s.Series), validationName(s.Title)
	s.of = nil
	return s
}

// Of returns the score of an evaluation.
func (s Score) Of(e *Evaluation) float64 { return s.of(e) }

// Better reports whether score x is better than y.
func (s Score) Better(x, y float64) bool {
	if s.More {
		return x > y
	}
	return x < y
}

// Unit returns the unit to print after a value; "" if there is none.
func (s Score) Unit() string {
	if s.Percent {
		return "%"
	}
	return ""
}

// Keys of scores.
const (
	KeyTestError, KeyTestRMSE, KeyTestR2 = "test_error", "test_rmse", "test_r2"
	KeyTestBits, KeyTestHamming          = "test_bits", "test_hamming"
	KeyTestFitness, KeyTestLoss          = "test_fitness", "test_loss"

	KeyValidationError, KeyValidationRMSE   = "validation_error", "validation_rmse"
	KeyValidationBits, KeyValidationHamming = "validation_bits", "validation_hamming"
	KeyValidationLoss, validationPrefix     = "validation_loss", "validation"
)

// Scores returns the scores by which the centre is tested, the most important one first:
//
//	classification  the error: the share of wrong predictions
//	multi-label     the subset error (1 - accuracy): the share of samples with at least one wrong label; and the Hamming
//	                loss: the share of wrong labels
//	text            bits per byte = loss / ln 2; and the error
//	regression      RMSE = sqrt(mean (result - target)^2), in the unit of the target, or for several outputs in standard
//	                deviations; and R2 = 1 - mean (result - target)^2 / variance of the targets
//	objective       the fitness
//	distance        the loss, since nothing is predicted
//
// c may be nil.
func (c *Config) Scores() []Score {
	switch {
	case c.Maximises():
		fitness := testScore(KeyTestFitness, func(e *Evaluation) float64 { return 0 - e.TestLoss })
		fitness.Title = "test " + c.Fitness()
		return []Score{fitness}
	case c != nil && c.Targets != nil:
		t := c.Targets
		return []Score{
			testScore(KeyTestRMSE, func(e *Evaluation) float64 { return t.unit() * math.Sqrt(e.Squares) }),
			testScore(KeyTestR2, t.explained),
		}
	case c.distance():
		return []Score{testScore(KeyTestLoss, func(e *Evaluation) float64 { return e.TestLoss })}
	}
	wrong := testScore(KeyTestError, func(e *Evaluation) float64 { return e.TestError })
	if c != nil && c.Text {
		return []Score{testScore(KeyTestBits, func(e *Evaluation) float64 { return e.TestLoss / math.Ln2 }), wrong}
	}
	if c.multiLabel() {
		return []Score{wrong, testScore(KeyTestHamming, func(e *Evaluation) float64 { return 100 * e.Squares })}
	}
	return []Score{wrong}
}

// ValidationScores returns the scores on the validation samples: those of [Config.Scores] except R2, whose variance is
// that of the test samples, and the loss. It returns nil if the run has no validation samples or maximises an
// objective.
func (c *Config) ValidationScores() (out []Score) {
	if c == nil || c.Valid == 0 || c.Maximises() {
		return nil
	}
	loss := testScore(KeyTestLoss, func(e *Evaluation) float64 { return e.TestLoss })
	for _, s := range append(c.Scores(), loss) {
		if s.Key == KeyTestR2 || slices.ContainsFunc(out, func(o Score) bool { return o.Title == validationName(s.Title) }) {
			continue
		}
		of := s.of
		s = s.OnValidation()
		s.of = func(e *Evaluation) float64 {
			if e.Validation == nil {
				return math.NaN()
			}
			h := e.Validation
			return of(&Evaluation{TestError: h.Error, TestLoss: h.Loss, Samples: h.Samples, Squares: h.Squares})
		}
		out = append(out, s)
	}
	return out
}

// validationName returns the name of a score on the validation samples for that of the test score.
func validationName(test string) string { return validationPrefix + strings.TrimPrefix(test, "test") }

// Score returns the first of [Config.Scores].
func (c *Config) Score() Score { return c.Scores()[0] }

// Graded reports whether predictions are right or wrong, so that there is a test error.
func (c *Config) Graded() bool {
	return slices.ContainsFunc(c.Scores(), func(s Score) bool { return s.Key == KeyTestError })
}

// Unit returns the unit of a quantity whose declared unit is declared. It returns "" instead of nats for models without
// a test error, since only the loss of a classifier is in nats.
func (c *Config) Unit(declared string) string {
	if strings.TrimPrefix(declared, "-") == "nats" && !c.Graded() {
		return ""
	}
	return declared
}

// Maximises reports whether the run maximises an objective. c may be nil.
func (c *Config) Maximises() bool { return c != nil && c.Objective != "" }

// Environment returns the name of the environment that the run trains in; "" if there is none. c may be nil.
func (c *Config) Environment() string {
	if c == nil {
		return ""
	}
	return c.More["env"]
}

// BuiltIn returns the name of the objective, if it is part of brood; "" otherwise. c may be nil.
func (c *Config) BuiltIn() string {
	if c.Environment() == "" && (c == nil || c.More["bbob"] == "") {
		return ""
	}
	return c.Objective
}

// Fitness returns the name of the value that the run maximises.
func (c *Config) Fitness() string {
	if c.Environment() != "" {
		return "return"
	}
	return "fitness"
}

// ModelName returns the name of the model; for an objective whose parameters have no name, the name of its program.
func (c *Config) ModelName() string {
	if c.Maximises() && c.Model == "objective" {
		return c.Objective
	}
	return c.Model
}

// multiLabel reports whether a sample may have several classes.
func (c *Config) multiLabel() bool { return c != nil && c.Loss == "bce" }

// distance reports whether the model predicts nothing and has only a loss.
func (c *Config) distance() bool {
	return c != nil && c.Loss == "distance"
}
