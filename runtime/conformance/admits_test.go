package conformance

import (
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/coordinator"
)

// TestCheckShape: shapes that an algorithm cannot run are rejected with one sentence, and the nearest valid shapes are
// accepted. Every algorithm with its own conditions has an entry.
func TestCheckShape(t *testing.T) {
	const (
		pairs    = "antithetic pairs need an even population: give members a multiple of 2"
		ways     = "antithetic pairs need an even population: give members a multiple of 2"
		ranks    = "ranks need candidates to compare: give members at least 2"
		compared = "shaping sign and standard compare the two of a pair: set shaping to ranks or raw, or antithetic to on"
		exact    = "integer noise needs integer weights: set shaping to ranks or sign and distribution to seed or " +
			"chromosome, or noise to gaussian"
		split = "fitness needs a validation split: there is none: give --validation above 0"
		slope = "surrogate gradient needs a model with gradients, and an objective or an integer model has none: " +
			"set surrogate to estimates"
		whole = "needs gradients, and a model of whole numbers has none: choose egg, or another evolution strategy, " +
			"or a model of floats"
	)
	type set = map[string]string
	floats, bytes, measured := engine.Layout{Params: 10}, engine.Layout{Params: 10, Whole: true},
		engine.Layout{Params: 10, Measured: true}
	brings := engine.Layout{Params: 10, State: 5}
	one, none := engine.Layout{Params: 1}, optim.DataSize{Train: 100}
	judged := optim.DataSize{Train: 100, Validation: 10}
	classed := optim.DataSize{Train: 100, Classes: 10}
	refused := map[string]bool{}
	for _, c := range []struct {
		algorithm string
		set       set
		members   int
		layout    engine.Layout
		data      optim.DataSize
		want      string // the error; "" for none
	}{
		{"dp-sgd", nil, 4, bytes, none, "dp-sgd " + whole},
		{"dp-sgd", nil, 1, floats, none, ""},
		{"popsgd", nil, 1, floats, none, "popsgd pairs members: give members at least 2"},
		{"popsgd", nil, 2, floats, none, ""},

		{"noloco", set{"momentum": "0.5", "gamma": "1.8"}, 4, floats, none, "4 replicas move apart with gamma 1.8 and momentum 0.5: give gamma below 1.8"},
		{"noloco", set{"momentum": "0.5", "gamma": "1.79"}, 4, floats, none, ""},

		{"diloco", set{"optimiser": "program"}, 2, floats, none, "optimiser = program: no program brings an optimiser to this run: choose another, or give brood.serve one (docs/programs.md)"},
		{"diloco", set{"optimiser": "program"}, 2, brings, none, ""},
		{"localsgd", set{"optimiser": "program", "warmup": "1"}, 2, brings, none, "the optimiser of a program takes no data-parallel steps: set warmup to 0, or choose another"},
		{"localsgd", set{"parts": "dirichlet"}, 4, floats, none, "parts = dirichlet divides the samples by class, and these data have no classes: set parts to disjoint"},
		{"localsgd", set{"parts": "shards"}, 51, floats, classed, "parts = shards: 51 members need 102 training samples, and there are 100: give fewer members, or set parts to windows"},
		{"localsgd", set{"parts": "shards"}, 50, floats, classed, ""},
		{"localsgd", set{"parts": "dirichlet"}, 101, floats, classed, "parts = dirichlet: 101 members need 101 training samples, and there are 100: give fewer members, or set parts to windows"},
		{"localsgd", set{"parts": "dirichlet"}, 100, floats, classed, ""},
		{"fedavg", set{"optimiser": "program", "mu": "0.1"}, 2, brings, none, "the optimiser of a program adds no proximal term: set mu to 0, or choose another"},
		{"fedavg", set{"optimiser": "program"}, 2, brings, none, ""},
		{"parle", set{"optimiser": "program", "thermal": "0.1"}, 2, brings, none, "the optimiser of a program adds no thermal noise: set thermal to 0, or choose another"},
		{"parle", set{"optimiser": "program"}, 2, brings, none, ""},

		{"egg", nil, 4, floats, none, `egg trains a model of whole numbers: choose one with arithmetic = "int8", such as mlp-int8, or another algorithm`},
		{"egg", nil, 3, bytes, none, pairs},
		{"egg", nil, 264210, bytes, none, "sums of signs are exact for at most 264208 members: take fewer"},
		{"egg", nil, 264208, bytes, none, ""},

		{"openai-es", nil, 3, floats, none, pairs},
		{"openai-es", nil, 4, bytes, none, ""},
		{"openai-es", set{"antithetic": "off"}, 3, floats, none, ""},
		{"openai-es", set{"antithetic": "off", "shaping": "sign"}, 4, floats, none, compared},
		{"openai-es", set{"antithetic": "off", "shaping": "standard"}, 4, floats, none, compared},
		{"openai-es", set{"antithetic": "off", "noise": "integer"}, 4, floats, none, "integer noise needs antithetic pairs: set antithetic to on, or noise to gaussian"},
		{"openai-es", set{"noise": "integer", "rank": "1"}, 4, floats, none, "integer noise has full rank: set rank to 0, or noise to gaussian"},
		{"openai-es", set{"noise": "integer", "shaping": "raw"}, 4, floats, none, exact},
		{"openai-es", set{"noise": "integer", "distribution": "semi"}, 4, floats, none, exact},
		{"openai-es", set{"noise": "integer"}, 8194, floats, none, "the update of integer noise is exact for at most 8192 members: take fewer, or noise = gaussian"},
		{"openai-es", set{"noise": "integer"}, 8192, floats, none, ""},
		{"openai-es", set{"distribution": "semi", "groups": "5", "antithetic": "off"}, 4, floats, none, "5 groups need a candidate each, and there are 4 members: lower groups or give more members"},
		{"openai-es", set{"distribution": "semi", "groups": "3"}, 4, floats, none, "3 groups need a pair each, and 4 members are 2 pairs: lower groups or give more members"},
		{"openai-es", set{"distribution": "semi", "groups": "2"}, 4, floats, none, ""},
		{"openai-es", set{"shaping": "standard"}, 2, floats, none, "one pair has no deviation: shaping standard takes 4 members or more here, or set shaping to ranks, raw or sign"},
		{"openai-es", set{"shaping": "standard"}, 4, floats, none, ""},

		{"guided-es", nil, 3, floats, none, ways},
		{"guided-es", nil, 4, measured, none, ""},
		{"guided-es", set{"surrogate": "gradient"}, 4, measured, none, slope},
		{"guided-es", set{"surrogate": "gradient"}, 4, bytes, none, slope},
		{"guided-es", set{"surrogate": "gradient", "samples": "member"}, 4, floats, none, "the gradient is of the mini-batch that all candidates see: set samples to shared, or surrogate to estimates"},
		{"guided-es", set{"surrogate": "gradient"}, 4, floats, none, ""},
		{"guided-es", set{"samples": "member"}, 4, floats, none, ""},

		{"ars", nil, 3, floats, none, ways},
		{"ars", nil, 4, floats, none, ""},
		{"pgpe", nil, 3, floats, none, ways},
		{"pgpe", nil, 4, floats, none, ""},
		{"snes", nil, 1, floats, none, ranks},
		{"snes", nil, 2, floats, none, ""},
		{"sep-cma", nil, 1, floats, none, ranks},
		{"sep-cma", nil, 2, floats, none, ""},
		{"cma-es", nil, 1, floats, none, ranks},
		{"cma-es", nil, 2, floats, none, ""},
		{"lm-ma-es", nil, 1, floats, none, ranks},
		{"lm-ma-es", nil, 4, one, none, "one parameter has one direction: take another algorithm, snes for instance"},
		{"lm-ma-es", nil, 2, floats, none, ""},
		{"cr-fm-nes", nil, 3, floats, none, ways},
		{"cr-fm-nes", nil, 4, one, none, "one parameter has no principal direction: take another algorithm, snes for instance"},
		{"cr-fm-nes", nil, 4, floats, none, ""},

		{"ga", set{"elite": "5"}, 4, floats, none, "elite = 5 is more than the population of 4: lower elite or give more members"},
		{"ga", set{"elite": "4"}, 4, floats, none, ""},
		{"pesgd", set{"elite": "2"}, 4, floats, none, split},
		{"pesgd", set{"elite": "5"}, 4, floats, judged, "elite = 5 is more than the population of 4: lower elite or give more members"},
		{"pesgd", set{"elite": "4"}, 4, floats, judged, ""},
		{"pbt", nil, 4, floats, none, split},
		{"pbt", nil, 4, floats, judged, ""},
		{"pb2", nil, 4, floats, none, split},
		{"pb2", nil, 257, floats, judged, "every worker factorises a covariance of all members, which grows with the cube of their number: give members at most 256, or take pbt"},
		{"pb2", nil, 256, floats, judged, ""},

		{"bgd", set{"groups": "51"}, 4, floats, none, "51 shards of 100 training samples leave some with fewer than two: give groups at most 50"},
		{"bgd", set{"groups": "50"}, 4, floats, none, ""},
		{"sgp", set{"peers": "3"}, 4, floats, none, "4 members have out-peers at 2 distances: give peers at most 2, or more members"},
		{"sgp", set{"peers": "2"}, 4, floats, none, ""},
		{"streaming-diloco", set{"fragments": "4", "h": "3", "delay": "0"}, 4, floats, none, "4 fragments need a cycle of as many steps, but h is 3: lower fragments or raise h"},
		{"streaming-diloco", set{"fragments": "2", "h": "3", "delay": "3"}, 4, floats, none, "each fragment is sent every 3 steps, so a delay of 3 is too long: lower delay or raise h"},
		{"streaming-diloco", set{"fragments": "2", "h": "3", "delay": "2"}, 4, one, none, "1 parameters are too few for 2 fragments: lower fragments"},
		{"streaming-diloco", set{"fragments": "2", "h": "3", "delay": "2"}, 4, floats, none, ""},
		{"decoupled-diloco", set{"quorum": "5"}, 4, floats, none, "a quorum of 5 of 4 members is never reached: lower quorum or give more members"},
		{"decoupled-diloco", set{"h": "3"}, 4, floats, none, "4 fragments need a cycle of as many steps, but h is 3: lower fragments or raise h"},
		{"decoupled-diloco", set{"quorum": "4"}, 4, floats, none, ""},
	} {
		a, err := catalog.Lookup(c.algorithm)
		if err != nil {
			t.Fatal(err)
		}
		s := optim.Shape{
			Roster: collective.Place(collective.IDs(c.members), []int{0}),
			Layout: c.layout,
			Data:   c.data,
			K:      a.Defaults(),
		}
		for name, text := range c.set {
			s.K = turned(t, a, s.K, name, text)
		}
		got := ""
		if err := coordinator.CheckShape(a, s); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %v, %d members: %q, want %q", c.algorithm, c.set, c.members, got, c.want)
		}
		refused[c.algorithm] = refused[c.algorithm] || got != ""
	}
	for _, a := range catalog.All() {
		if a.Check != nil && a.Needs.Model() && !refused[a.Name] {
			t.Errorf("no entry rejects a shape of %s", a.Name)
		}
	}
}

// turned returns k with a knob set from text.
func turned(t *testing.T, a *optim.Algorithm, k optim.Values, name, text string) optim.Values {
	t.Helper()
	knob, ok := a.Knob(name)
	if !ok {
		t.Fatalf("%s has no knob %s", a.Name, name)
	}
	x, err := knob.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return k.With(name, x)
}
