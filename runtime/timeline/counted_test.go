package timeline

import (
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
	"brood/optim/coupled"
	"brood/optim/evolution"
	"brood/optim/population"
	"brood/runtime/event"
)

// TestCounted: units that depend on the start of a run are converted to rounds and steps.
func TestCounted(t *testing.T) {
	c := optim.Counts{Replicas: 4, Cycle: 3, Tensors: 2, Batches: 430}
	for text, want := range map[string]string{
		"0.1":                                  "0.1",
		"linear:1..3@12c":                      "linear:1..3@36",
		"linear:1..3@+12c":                     "linear:1..3@+36",
		"warmup:1@4c..0.1@(3*4)c":              "warmup:1@12..0.1@36",
		"step:1,250r=0.5,500r=0.2":             "step:1,1000s=0.5,2000s=0.2",
		"piecewise:0c=1,2c=3":                  "piecewise:0=1,6=3",
		"exp:100*0.5/cycle":                    "exp:100*0.5/3rounds",
		"exp:100*0.5/cycle..1":                 "exp:100*0.5/3rounds..1",
		"exp:100*0.5/tensor..1":                "exp:100*0.25/3rounds..1",
		"exp:100*0.0625/replica":               "exp:100*0.5/step",
		"exp:100*(1-1/(2B))/cycle..1":          "exp:100*0.9988372093023256/3rounds..1",
		"exp:(10+2*3)*0.5/round":               "exp:16*0.5/round",
		"linear:(2B)..(B/43)@5":                "linear:860..10@5",
		"step:(1e-3),7=(-(1-3))":               "step:0.001,7=2",
		"( 2 - 3 * ( 4 - 6 ) / 2 ) ":           "5 ",
		"exp:100*0.5/epoch":                    "exp:100*0.5/epoch",
		"linear:1..3@2e":                       "linear:1..3@2e",
		"linear:1..3@12x":                      "linear:1..3@12x", // Parse says what is wrong
		"exp:100*0.5/year":                     "exp:100*0.5/year",
		"linear:1..3@+250r":                    "linear:1..3@+250r",
		"exp:1*(1-1/(2B))/cycle..(1/(2B)*1e0)": "exp:1*0.9988372093023256/3rounds..0.0011627906976744186",
	} {
		if got, err := Counted(eta, text, c); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	c.Cycle = 1
	for text, want := range map[string]string{"exp:100*0.5/cycle": "exp:100*0.5/round",
		"exp:100*0.5/tensor": "exp:100*0.25/round"} {
		if got, err := Counted(eta, text, c); got != want {
			t.Errorf("a cycle of one round: %s, %v", got, err)
		}
	}
	c.Batches = 0
	for text, says := range map[string]string{"exp:1*(1-1/B)/cycle": "which this run does not have", "(1-": "in brackets",
		"(1/0)": "in brackets",
		"((((":  "in brackets", "(2 3)": "in brackets", "()": "in brackets", "(b)": "in brackets"} {
		if got, err := Counted(eta, text, c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

// TestCountedParses: counted schedules are checked before their run is known, and shown as typed.
func TestCountedParses(t *testing.T) {
	for _, text := range []string{"exp:1*(1-1/(2B))/cycle..0.1", "linear:1..3@12c", "step:1,250r=0.5",
		"exp:1*0.5/replica"} {
		if s, err := Parse(eta, text); err != nil || s.String() != text {
			t.Errorf("%s: %q, %v", text, s, err)
		}
	}
	for text, says := range map[string]string{"linear:1..(2B)@3": "out of bounds", "exp:1*0.5/1rounds": "exp:START",
		"exp:1*0.5/0.5rounds": "exp:START", "linear:1..2@+3r": "FROM..TO"} {
		if _, err := Parse(eta, text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestFactorOfRounds: a factor every third round, floor((round - first)/3) times.
func TestFactorOfRounds(t *testing.T) {
	s, err := Parse(eta, "exp:8*0.5/3rounds..1")
	if err != nil {
		t.Fatal(err)
	}
	for round, want := range map[uint64]float64{5: 8, 7: 8, 8: 4, 10: 4, 11: 2, 14: 1, 17: 1} {
		if got := s.At(Position{Round: round}, Position{Round: 5}); got != want {
			t.Errorf("round %d: %g, want %g", round, got, want)
		}
	}
}

// TestCount: schedules count in cycles, replicas and mini-batches by the values of the knobs set with them.
func TestCount(t *testing.T) {
	shape := optim.Shape{Roster: collective.Place(collective.IDs(4), []int{0}),
		Layout: engine.Layout{Params: 10, Tensors: make([]engine.Tensor, 2)},
		Data:   optim.DataSize{Train: 1000, Validation: 10}}
	set := func(alg string, pairs ...string) (out []event.Edit) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, event.Edit{Algorithm: alg, Knob: pairs[i], Expr: pairs[i+1]})
		}
		return out
	}
	for _, c := range []struct {
		alg    *optim.Algorithm
		before []event.Edit
		set    []event.Edit
		want   string
	}{
		{coupled.Parle, nil, set("parle", "gamma", "exp:100*(1-1/(2B))/cycle"), "exp:100*0.9375/round"}, // 1000 / 128
		{coupled.Parle, nil, set("parle", "gamma", "exp:100*(1-1/(2B))/cycle", "ell", "65", "batch", "500", "split", "0.5"), "exp:100*0.5/3rounds"},
		{coupled.Parle, set("parle", "slice", "10", "batch", "250"), set("parle", "gamma", "exp:100*(1-1/(2B))/cycle"), "exp:100*0.875/3rounds"},
		// a weight and a bias
		{coupled.Parle, nil, set("parle", "gamma", "exp:100*(1-1/(2B))/tensor"), "exp:100*0.87890625/round"},
		{coupled.Parle, nil, set("parle", "gamma", "step:3,250r=1"), "step:3,1000s=1"},
		{coupled.EntropySGD, nil, set("entropy-sgd", "gamma", "step:3,250r=1"), "step:3,250s=1"}, // one model
		{coupled.EntropySGD, nil, set("entropy-sgd", "gamma", "step:(4B),25c=1"), "step:8,25=1"}, // 4 x 128 a step
		{population.PESGD, nil, set("pesgd", "eta", "step:3,2c=1", "batch", "10", "slice", "25"), "step:3,8=1"},
		{evolution.HybridES, nil, set("hybrid-es", "eta", "step:3,2c=1", "r", "3"), "step:3,6=1"},
	} {
		if err := Count(c.alg, c.before, c.set, shape, Position{}); err != nil || c.set[0].Expr != c.want {
			t.Errorf("%s: %s, %v; want %s", c.alg.Name, c.set[0].Expr, err, c.want)
		}
	}
}
