package event

import (
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
		{&Config{ModelSpec: "name = \"a\"\n loss=\t'distance'\n"}, "test loss", 0.5},
		{&Config{ModelSpec: "doc = \"the loss = distance\""}, "test error", 3},
		{&Config{ModelSpec: `loss = "distance"`, Own: true}, "test error", 3}, // of a graph it is no layer list
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
	}{{nil, true}, {&Config{Loss: "distance"}, true}, {&Config{Targets: &Targets{}}, true}, {&Config{Objective: "./f"}, false}} {
		if s := c.config.Score(); s.Better(1, 2) != c.least || s.Better(2, 1) == c.least || s.Better(1, 1) || s.Better(math.NaN(), 1) {
			t.Errorf("%s: the order is turned round", s.Title)
		}
	}
}
