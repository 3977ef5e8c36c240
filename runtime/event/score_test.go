package event

import (
	"maps"
	"math"
	"testing"
)

// TestScore: the test measure of a run follows from its configuration, for logs without the name of the loss too.
func TestScore(t *testing.T) {
	e := &Evaluation{TestError: 3, TestLoss: 0.5}
	for _, c := range []struct {
		config *Config
		name   string
		of     float64
	}{
		{nil, "test error", 3},
		{&Config{ModelSpec: "classes = 10"}, "test error", 3},
		{&Config{Loss: "cross-entropy", ModelSpec: `loss = "distance"`}, "test error", 3}, // the field counts
		{&Config{Loss: "distance"}, "test loss", 0.5},
		{&Config{Objective: "./f"}, "test fitness", -0.5},
		{&Config{Text: true}, "test bits", 0.5 / math.Ln2},
	} {
		if s := c.config.Score(); s.Title != c.name || s.Of(e) != c.of {
			t.Errorf("%+v: %s %v, want %s %v", c.config, s.Title, s.Of(e), c.name, c.of)
		}
	}
	if c := (&Config{Text: true}); !c.Graded() || c.Scores()[1].Of(e) != 3 {
		t.Error("a text has no test error")
	}
	for _, c := range []struct {
		config *Config
		least  bool // is the best
	}{{nil, true}, {&Config{Loss: "distance"}, true}, {&Config{Targets: &Targets{}}, true},
		{&Config{Objective: "./f"}, false}} {
		if s := c.config.Score(); s.Better(1, 2) != c.least || s.Better(2, 1) == c.least || s.Better(1, 1) ||
			s.Better(math.NaN(), 1) {
			t.Errorf("%s: the order is turned round", s.Title)
		}
	}
}

// TestValidationScores: the scores on the validation samples are those on the test set except R2, and the loss once.
func TestValidationScores(t *testing.T) {
	e := &Evaluation{TestError: 3, TestLoss: 0.5, Squares: 9, Validation: &Scores{Error: 4, Loss: 0.25, Squares: 16}}
	for _, c := range []struct {
		c    Config
		want map[string]float64
	}{
		{Config{Valid: 5}, map[string]float64{"validation_error": 4, "validation_loss": 0.25}},
		{Config{Valid: 5, Targets: &Targets{Deviation: []float32{2}, Variance: 1}},
			map[string]float64{"validation_rmse": 8, "validation_loss": 0.25}},
		{Config{Valid: 5, Loss: "distance"}, map[string]float64{"validation_loss": 0.25}},
		{Config{}, map[string]float64{}},
		{Config{Valid: 5, Objective: "fit"}, map[string]float64{}},
	} {
		got := map[string]float64{}
		for _, s := range c.c.ValidationScores() {
			got[s.Key] = s.Of(e)
			if x := s.Of(&Evaluation{}); x == x {
				t.Errorf("%s of an evaluation without validation samples is %g", s.Key, x)
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.c, got, c.want)
		}
	}
}
