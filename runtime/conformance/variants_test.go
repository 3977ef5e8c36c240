package conformance

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"brood/models/longtest"
	"brood/runtime/event"
)

// TestVariants: settings that change what an algorithm sends or stores pass the checks of the suite: the same hash for
// any placement, bytes as predicted, verify and resume. The default tests take one setting of each algorithm.
func TestVariants(t *testing.T) {
	met := map[string]int{}
	for _, v := range []struct {
		algorithm string
		set       [][2]string
	}{
		{"parle", [][2]string{{"variant", "paper"}, {"parts", "disjoint"}, {"clip", "0.5"}, {"thermal", "0.01"}, {"slice", "2"}}},
		{"parle", [][2]string{{"split", "0.5"}, {"clip", "0.5"}, {"thermal", "0.01"}, {"slice", "2"}, {"inner", "zeroed"}}},
		{"parle", [][2]string{{"variant", "code"}, {"parts", "disjoint"}, {"slice", "2"}, {"eta", "0.02"}, {"wire", "int8"}}},
		{"openai-es", [][2]string{{"noise", "integer"}, {"distribution", "chromosome"}}},
		{"openai-es", [][2]string{{"rank", "1"}, {"distribution", "chromosome"}}},
		{"dp-sgd", [][2]string{{"wire", "bf16"}}},
		{"dp-sgd", [][2]string{{"wire", "int8"}}},
		{"parle", [][2]string{{"wire", "int8"}, {"slice", "2"}}},
		{"elastic", [][2]string{{"wire", "bf16"}}},
		{"entropy-sgd", [][2]string{{"ell", "5"}, {"wire", "int8"}}},
		{"entropy-sgd", [][2]string{{"ell", "5"}, {"slice", "2"}, {"clip", "0.5"}}},
		{"entropy-sgd", [][2]string{{"ell", "5"}, {"slice", "2"}, {"pull", "outside"}, {"momentum_out", "0"}}},
		{"localsgd", [][2]string{{"h", "5"}, {"slice", "2"}, {"warmup", "4"}}},
		{"localsgd", [][2]string{{"h", "3"}, {"parts", "shards"}, {"shards", "1"}}},
		{"fedavg", [][2]string{{"participation", "0.4"}, {"mu", "0.1"}, {"h", "5"}, {"slice", "2"}, {"parts", "dirichlet"}}},
		{"fedavg", [][2]string{{"participation", "0.1"}, {"weigh", "equal"}, {"h", "2"}, {"momentum", "0.5"}, {"parts", "shards"}}},
		{"fedavg", [][2]string{{"participation", "0.6"}, {"optimiser", "adamw"}, {"eta", "0.01"}, {"mu", "1"}, {"h", "3"}}},
		{"scaffold", [][2]string{{"participation", "0.4"}, {"h", "5"}, {"slice", "2"}, {"parts", "dirichlet"}, {"eta_g", "0.7"}}},
		{"scaffold", [][2]string{{"participation", "0.1"}, {"h", "2"}, {"clip", "0.5"}, {"decay", "0.01"}, {"parts", "shards"}}},
		{"diloco", [][2]string{{"h", "5"}, {"slice", "2"}, {"decay", "0.01"}}},
		{"diloco", [][2]string{{"h", "5"}, {"slice", "2"}, {"share", "0.3"}}},
		{"streaming-diloco", [][2]string{{"h", "5"}, {"slice", "2"}, {"values", "e3m0"}, {"delay", "3"}, {"fragments", "3"}}},
		{"streaming-diloco", [][2]string{{"h", "5"}, {"slice", "2"}, {"values", "e3m0"}, {"delay", "3"}, {"fragments", "3"}, {"overlap", "on"}}},
		{"streaming-diloco", [][2]string{{"h", "6"}, {"delay", "2"}, {"fragments", "2"}, {"overlap", "on"}}},
		{"streaming-diloco", [][2]string{{"h", "4"}, {"optimiser", "muon"}, {"eta_in", "0.02"}, {"delay", "0"}, {"alpha", "0"}}},
		{"decoupled-diloco", [][2]string{{"h", "5"}, {"slice", "2"}, {"fragments", "3"}, {"down", "0.4"}, {"quorum", "5"}}},
		{"decoupled-diloco", [][2]string{{"h", "4"}, {"merge", "mean"}, {"down", "0.7"}, {"slowest", "0.1"}, {"optimiser", "muon"}, {"eta_in", "0.02"}}},
		{"noloco", [][2]string{{"h", "5"}, {"slice", "2"}, {"gamma", "0.4"}}},
		{"sparseloco", [][2]string{{"h", "5"}, {"slice", "2"}, {"keep", "300"}, {"beta", "0.5"}}},
		{"sparseloco", [][2]string{{"h", "3"}, {"values", "float32"}, {"chunk", "16"}, {"keep", "3"}, {"optimiser", "muon"}, {"eta_in", "0.02"}}},
		{"demo", [][2]string{{"chunk", "7"}, {"keep", "2"}, {"values", "2bit"}, {"step", "mean"}, {"eta", "0.05"}, {"decay", "0.01"}, {"clip", "0.5"}}},
		{"papa", [][2]string{{"h", "5"}, {"slice", "2"}, {"start", "own"}}},
		{"wash", [][2]string{{"h", "5"}, {"slice", "2"}, {"start", "own"}, {"share", "0.3"}}},
		{"wash", [][2]string{{"share", "0.3"}, {"depth", "even"}, {"optimiser", "adamw"}, {"eta", "0.01"}}},
		{"sparta", [][2]string{{"h", "5"}, {"slice", "2"}, {"start", "own"}, {"share", "0.3"}}},
		{"dp-sgd", [][2]string{{"optimiser", "adamw"}, {"eta", "0.01"}, {"decay", "0.1"}, {"wire", "int8"}}},
		{"localsgd", [][2]string{{"optimiser", "adam"}, {"eta", "0.01"}, {"decay", "0.01"}, {"h", "5"}, {"slice", "2"}, {"warmup", "4"}}},
		{"papa", [][2]string{{"optimiser", "adamw"}, {"eta", "0.01"}, {"h", "5"}, {"slice", "2"}, {"start", "own"}}},
		{"sgp", [][2]string{{"optimiser", "adam"}, {"eta", "0.01"}, {"beta1", "0.5"}, {"peers", "3"}}},
		{"d-psgd", [][2]string{{"graph", "one-peer"}, {"optimiser", "adamw"}, {"eta", "0.01"}, {"decay", "0.1"}}},
		{"d-psgd", [][2]string{{"graph", "torus"}, {"parts", "dirichlet"}}},
		{"d-psgd", [][2]string{{"graph", "exponential"}, {"clip", "0.5"}}},
		{"ad-psgd", [][2]string{{"optimiser", "adamw"}, {"eta", "0.01"}, {"decay", "0.1"}}},
		{"popsgd", [][2]string{{"optimiser", "adam"}, {"eta", "0.01"}, {"beta2", "0.9"}, {"mode", "non-blocking"}, {"steps", "geometric"}, {"h", "3"}}},
		{"easgd", [][2]string{{"tau", "1"}}},
		{"dp-sgd", [][2]string{{"optimiser", "muon"}, {"eta", "0.02"}, {"decay", "0.1"}}},
		{"dp-sgd", [][2]string{{"optimiser", "muon"}, {"lengths", "fixed"}, {"eta", "0.1"}}},
		{"dp-sgd", [][2]string{{"optimiser", "muon"}, {"lengths", "fixed"}, {"last", "adamw"}, {"eta", "0.1"}}},
		{"localsgd", [][2]string{{"optimiser", "muon"}, {"eta", "0.02"}, {"h", "5"}, {"slice", "2"}, {"warmup", "4"}}},
		{"diloco", [][2]string{{"optimiser", "muon"}, {"eta_in", "0.02"}, {"h", "5"}, {"slice", "2"}}},
		{"diloco", [][2]string{{"optimiser", "sgd"}, {"eta_in", "0.05"}, {"decay", "0.01"}, {"h", "3"}}},
		{"noloco", [][2]string{{"optimiser", "muon"}, {"eta_in", "0.02"}, {"h", "3"}}},
		{"elastic", [][2]string{{"optimiser", "muon"}, {"eta", "0.02"}}},
		{"easgd", [][2]string{{"optimiser", "adamw"}, {"eta", "0.01"}, {"decay", "0.1"}}},
		{"parle", [][2]string{{"optimiser", "muon"}, {"eta_in", "0.02"}, {"slice", "2"}, {"inner", "zeroed"}}},
		{"parle", [][2]string{{"optimiser", "adamw"}, {"eta", "0.01"}, {"variant", "paper"}, {"thermal", "0.01"}, {"slice", "2"}}},
		{"entropy-sgd", [][2]string{{"optimiser", "muon"}, {"eta_in", "0.02"}, {"ell", "5"}, {"slice", "2"}}},
		{"entropy-sgd", [][2]string{{"optimiser", "adam"}, {"eta_in", "0.01"}, {"ell", "5"}, {"pull", "outside"}}},
		{"pesgd", [][2]string{{"optimiser", "muon"}, {"eta", "0.02"}, {"decay", "0.01"}, {"vary", "3"}, {"period", "0.06"}}},
		{"pbt", [][2]string{{"optimiser", "adamw"}, {"eta", "0.01"}, {"decay", "0.01"}, {"period", "0.06"}}},
		{"pb2", [][2]string{{"optimiser", "adamw"}, {"eta", "0.01"}, {"decay", "0.01"}, {"period", "0.06"}, {"quantile", "0.5"}, {"window", "9"}}},
		{"pb2", [][2]string{{"parts", "disjoint"}, {"clip", "0.5"}, {"period", "0.5"}, {"vary", "5"}, {"window", "10"}, {"beta", "0"}}},
		{"sgp", [][2]string{{"peers", "3"}}},
		{"ad-psgd", [][2]string{{"gossip", "3"}}},
		{"bgd", [][2]string{{"groups", "5"}, {"slice", "1"}, {"clip", "0.5"}}},
		{"bgd", [][2]string{{"groups", "5"}, {"slice", "2"}, {"optimiser", "muon"}, {"eta", "0.02"}, {"decay", "0.1"}}},
		{"popsgd", [][2]string{{"mode", "non-blocking"}, {"steps", "geometric"}, {"h", "3"}}},
		{"popsgd", [][2]string{{"mode", "one-sided"}, {"start", "own"}}},
		{"popsgd", [][2]string{{"code", "lattice8"}, {"cell", "0.01"}, {"start", "own"}}},
		{"popsgd", [][2]string{{"code", "lattice8"}, {"cell", "0.00005"}, {"mode", "non-blocking"}, {"parts", "disjoint"}}},
		{"openai-es", [][2]string{{"distribution", "chromosome"}, {"samples", "member"}, {"optimiser", "sgd"}, {"divide", "P"}}},
		{"openai-es", [][2]string{{"distribution", "semi"}, {"groups", "3"}, {"shaping", "raw"}}},
		{"openai-es", [][2]string{{"distribution", "semi"}, {"groups", "4"}, {"shaping", "sign"}, {"decay", "0.01"}}},
		{"openai-es", [][2]string{{"distribution", "chromosome"}, {"shaping", "standard"}, {"optimiser", "sgd"}, {"rank", "2"}}},
		{"openai-es", [][2]string{{"antithetic", "off"}, {"shaping", "raw"}, {"distribution", "chromosome"}, {"rank", "1"}}},
		{"openai-es", [][2]string{{"antithetic", "off"}, {"distribution", "semi"}, {"groups", "5"}, {"samples", "member"}}},
		{"snes", [][2]string{{"distribution", "chromosome"}, {"samples", "member"}}},
		{"sep-cma", [][2]string{{"samples", "member"}, {"rate", "5"}}},
		{"cma-es", [][2]string{{"samples", "member"}, {"active", "off"}, {"restarts", "2"}, {"sigma", "0.1"}}},
		{"cr-fm-nes", [][2]string{{"samples", "member"}, {"rate", "5"}, {"sigma", "0.3"}}},
		{"lm-ma-es", [][2]string{{"samples", "member"}, {"rate", "5"}, {"vectors", "3"}}},
		{"pgpe", [][2]string{{"distribution", "chromosome"}, {"samples", "member"}, {"optimiser", "adam"}, {"eta", "0.01"}}},
		{"pgpe", [][2]string{{"shaping", "raw"}, {"optimiser", "sgd"}, {"eta", "1"}, {"eta_s", "5"}}},
		{"guided-es", [][2]string{{"distribution", "chromosome"}, {"samples", "member"}, {"subspace", "3"}, {"alpha", "0.2"}}},
		{"guided-es", [][2]string{{"surrogate", "gradient"}, {"optimiser", "sgd"}, {"eta", "0.3"}, {"subspace", "2"}}},
		{"guided-es", [][2]string{{"optimiser", "sgd"}, {"eta", "5"}, {"beta", "1"}, {"alpha", "0"}, {"subspace", "2"}, {"surrogate", "gradient"}}},
		{"ars", [][2]string{{"distribution", "chromosome"}, {"samples", "member"}, {"top", "0"}}},
		{"hybrid-es", [][2]string{{"r", "1"}, {"groups", "5"}, {"combine", "softmax"}}},
		{"hybrid-es", [][2]string{{"r", "2"}, {"groups", "3"}, {"optimiser", "muon"}, {"eta", "0.02"}, {"decay", "0.1"}}},
		{"hybrid-es", [][2]string{{"r", "3"}, {"groups", "11"}, {"shape", "laplace"}, {"components", "0.5"}}},
		{"hybrid-es", [][2]string{{"groups", "3"}, {"shape", "student"}, {"unit", "absolute"}, {"s", "0.1"}, {"clip", "0.5"}}},
		{"ga", [][2]string{{"crossover", "tensor"}, {"selection", "tournament"}, {"elite", "2"}}},
		{"ga", [][2]string{{"crossover", "mean"}, {"parents", "3"}, {"selection", "roulette"}, {"start", "same"}}},
		{"pesgd", [][2]string{{"crossover", "mean"}, {"parents", "3"}, {"vary", "3"}, {"decay", "0.01"}, {"clip", "0.5"}, {"split", "0.5"}}},
		{"pesgd", [][2]string{{"start", "own"}, {"crossover", "none"}, {"period", "0.06"}}},
		{"pesgd", [][2]string{{"crossover", "none"}, {"selection", "random"}, {"anneal", "1"}, {"backoff", "off"}, {"parts", "disjoint"}}},
		{"pesgd", [][2]string{{"crossover", "uniform"}, {"selection", "roulette"}, {"period", "0.03"}, {"elite", "3"}}},
		{"pbt", [][2]string{{"quantile", "0.5"}, {"decay", "0.01"}, {"period", "0.06"}, {"split", "0.5"}}},
		{"pbt", [][2]string{{"parts", "disjoint"}, {"clip", "0.5"}, {"period", "1"}, {"vary", "1"}}},
	} {
		if met[v.algorithm]++; met[v.algorithm] > 1 && !longtest.On(longtest.Conformance) {
			continue
		}
		t.Run(fmt.Sprintf("%s/%v", v.algorithm, v.set), func(t *testing.T) {
			r := quick(Rig{Algorithm: v.algorithm, Rounds: 12, Seed: 3})
			if v.algorithm == "hybrid-es" {
				r.Rounds = 4 // each round evaluates all samples, for every group
			}
			for _, s := range v.set {
				r = r.With(s[0], s[1])
			}
			t.Run("placement", func(t *testing.T) {
				one := r
				one.Members, one.Workers, one.Stats = 8, 1, true
				three := one
				three.Workers, three.JoinAfter = 3, 3
				placed(t, three, run(t, one).Hash(), true)
			})
			t.Run("restored", func(t *testing.T) { restored(t, r) })
		})
	}
}

// TestTurnedInACycle: knobs that define a cycle, or what is stored of it, are set while the cycle is in progress. Bytes
// are still as predicted, and the log verifies.
func TestTurnedInACycle(t *testing.T) {
	for _, c := range []struct {
		rig   Rig
		turns [][2]string
	}{
		{Rig{Algorithm: "hybrid-es"}.With("r", "7"), [][2]string{{"r", "2"}, {"groups", "3"}, {"r", "1"}, {"r", "4"}}},
		{Rig{Algorithm: "streaming-diloco"}.With("h", "9").With("delay", "8"), [][2]string{{"delay", "1"}, {"h", "4"}, {"overlap", "on"}, {"fragments", "2"}, {"values", "e3m0"}, {"delay", "3"}, {"overlap", "off"}}},
		{Rig{Algorithm: "decoupled-diloco"}.With("h", "9").With("slice", "2"), [][2]string{{"fragments", "2"}, {"h", "4"}, {"down", "0.6"}, {"quorum", "3"}, {"slowest", "0.1"}, {"merge", "mean"}}},
		{Rig{Algorithm: "fedavg"}.With("h", "9").With("slice", "2"), [][2]string{{"participation", "0.5"}, {"parts", "dirichlet"}, {"h", "4"}, {"mu", "0.5"}, {"concentration", "10"}, {"participation", "0.1"}, {"parts", "shards"}}},
		{Rig{Algorithm: "scaffold"}.With("h", "9").With("slice", "2"), [][2]string{{"participation", "0.5"}, {"h", "4"}, {"eta_g", "0.5"}, {"participation", "0.1"}, {"h", "1"}}},
		{Rig{Algorithm: "pesgd"}, [][2]string{{"period", "0.05"}, {"crossover", "none"}, {"parts", "disjoint"}, {"elite", "3"}}},
		{Rig{Algorithm: "lm-ma-es"}, [][2]string{{"vectors", "3"}, {"rate", "4"}, {"vectors", "20"}, {"sigma", "0.3"}}},
		{Rig{Algorithm: "guided-es", Members: 6}, [][2]string{{"subspace", "3"}, {"alpha", "1"}, {"surrogate", "gradient"}, {"subspace", "5"}, {"surrogate", "estimates"}, {"alpha", "0"}, {"subspace", "1"}}},
		{Rig{Algorithm: "pbt"}, [][2]string{{"period", "0.05"}, {"quantile", "0"}, {"split", "0.3"}, {"quantile", "0.5"}}},
		{Rig{Algorithm: "pb2"}, [][2]string{{"period", "0.05"}, {"vary", "1.5"}, {"window", "7"}, {"quantile", "0.5"}}},
	} {
		r := quick(c.rig)
		// the run is stopped long before, unless a command is rejected
		r.Members, r.Workers, r.Rounds, r.Seed = max(5, c.rig.Members), 3, 20_000, 7
		commits, applied, turned := 0, 0, 0
		r.OnRecord = func(rec event.Record) []event.Command {
			switch {
			case rec.Accepted != nil:
				applied, commits = applied+1, 0
			case rec.Commit != nil:
				commits++
			}
			if commits < 3 || applied < turned || turned > len(c.turns) { // the last command must be in effect
				return nil
			}
			if turned++; turned > len(c.turns) {
				return []event.Command{{Action: event.Stop}}
			}
			return []event.Command{{Set: []event.Setting{{Knob: c.turns[turned-1][0], Expr: c.turns[turned-1][1]}}}}
		}
		o, err := r.Run(context.Background())
		if err != nil || o.Exit.Phase != event.Stopped || applied != len(c.turns) {
			t.Errorf("%s: %+v, %v: %d of %d commands were applied", r.Algorithm, o.Exit, err, applied, len(c.turns))
		}
		for _, rc := range o.Replies {
			if !rc.Accepted {
				t.Errorf("%s: %s", r.Algorithm, rc.Reason)
			}
		}
		if sent, predicted := o.Bytes(); !maps.Equal(sent, predicted) {
			t.Errorf("%s: sent %v, predicted %v", r.Algorithm, sent, predicted)
		}
		if _, err := r.Verify(context.Background(), o); err != nil {
			t.Errorf("%s: verify: %v", r.Algorithm, err)
		}
	}
}

// TestDirectionsBegin: the directions of LM-MA-ES restart after a swap and when their number changes, and their rounds
// count from there: the first step of the mean has the length of its noise, and the next one has not.
func TestDirectionsBegin(t *testing.T) {
	set := func(knob, expr string) event.Setting { return event.Setting{Knob: knob, Expr: expr} }
	turns := []event.Command{{Algorithm: "lm-ma-es",
		Set: []event.Setting{set("sigma", "0.1"), set("rate", "3"), set("batch", "6")}},
		{Set: []event.Setting{set("vectors", "3")}}, {Set: []event.Setting{set("vectors", "20")}}, {Action: event.Stop}}
	r := quick(Rig{Algorithm: "sep-cma", Members: 6, Workers: 2, Rounds: 1 << 30, Seed: 7})
	commits, turned := 0, 0
	var begun []uint64
	r.OnRecord = func(rec event.Record) []event.Command {
		if rec.Plan != nil && turned > 0 {
			begun = append(begun, rec.Plan.At)
		}
		if rec.Commit == nil || turned > len(begun) { // the last command must be in effect
			return nil
		}
		if commits++; commits%4 > 0 || turned == len(turns) {
			return nil
		}
		turned++
		return turns[turned-1 : turned]
	}
	o, err := r.Run(context.Background())
	if err != nil || o.Exit.Phase != event.Stopped || len(begun) != 3 {
		t.Fatalf("%+v, %v: the directions restarted at rounds %d", o.Exit, err, begun)
	}
	rounds, stretch := o.Series("stretch")
	for _, at := range begun {
		if i := slices.Index(rounds, at+1); i < 0 || i+1 == len(rounds) || stretch[i] != 1 || stretch[i+1] == 1 {
			t.Errorf("the directions restarted after round %d; stretch is %v in rounds %d", at, stretch, rounds)
		}
	}
	if sent, predicted := o.Bytes(); !maps.Equal(sent, predicted) {
		t.Errorf("sent %v, predicted %v", sent, predicted)
	}
	if _, err := r.Verify(context.Background(), o); err != nil {
		t.Errorf("verify: %v", err)
	}
}

// TestPartsAreDealtAnew: while the population is resized, data by class are dealt to the members there are, on all
// workers alike, and the log verifies.
func TestPartsAreDealtAnew(t *testing.T) {
	for _, parts := range []string{"shards", "dirichlet"} {
		r := quick(Rig{Algorithm: "scaffold", Members: 6, Workers: 3, Rounds: 1000, Seed: 5}).With("parts", parts).
			With("participation", "0.5").With("h", "5").With("slice", "2")
		sizes := []int{4, 9, 3}
		asked, planned := r.Members, false
		r.OnRecord = func(rec event.Record) []event.Command {
			if rec.Plan != nil {
				planned = len(rec.Plan.New.Members) == asked
			}
			if rec.Commit == nil || !planned { // the last resize must be in effect
				return nil
			}
			if planned = false; len(sizes) == 0 {
				return []event.Command{{Action: event.Stop}}
			}
			asked, sizes = sizes[0], sizes[1:]
			return []event.Command{{Members: asked}}
		}
		o, err := r.Run(context.Background())
		if err != nil || o.Exit.Phase != event.Stopped || len(sizes) > 0 {
			t.Fatalf("%s: %+v, %v: sizes %d were not reached", parts, o.Exit, err, sizes)
		}
		if sent, predicted := o.Bytes(); !maps.Equal(sent, predicted) {
			t.Errorf("%s: sent %v, predicted %v", parts, sent, predicted)
		}
		if _, err := r.Verify(context.Background(), o); err != nil {
			t.Errorf("%s: verify: %v", parts, err)
		}
	}
}

// TestMassOutlivesMembers: members that leave pass on their push-sum weights (optim.Leaver), so that through resizes
// the weights add up to the number of members that ever entered.
func TestMassOutlivesMembers(t *testing.T) {
	r := quick(Rig{Algorithm: "sgp", Members: 6, Workers: 3, Rounds: 1000, Seed: 5})
	sizes, asked, planned := []int{4, 7, 3}, 6, false
	r.OnRecord = func(rec event.Record) []event.Command {
		if rec.Plan != nil {
			planned = len(rec.Plan.New.Members) == asked
		}
		if rec.Commit == nil || !planned || len(sizes) == 0 { // the last resize must be in effect
			return nil
		}
		asked, sizes, planned = sizes[0], sizes[1:], false
		return []event.Command{{Members: asked}}
	}
	o := run(t, r)
	cp := o.Checkpoint()
	rows, err := o.Store.Load(*cp, func(name string) bool { return strings.HasPrefix(name, "w/") })
	if err != nil {
		t.Fatal(err)
	}
	var sum float32
	for _, w := range rows {
		sum += w.F[0]
	}
	if len(rows) != 3 || math.Abs(float64(sum)-9) > 1e-5 { // six, and three that joined four
		t.Errorf("%d members weigh %v at the end, want 3 that weigh 9", len(rows), sum)
	}
	if _, err := r.Verify(context.Background(), o); err != nil {
		t.Errorf("verify: %v", err)
	}
}
