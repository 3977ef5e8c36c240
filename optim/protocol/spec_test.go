package protocol

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

const good = `name = "mine"
states = ["A", "B", "U"]
rules = ["A,B->U,U", "A,U->A,A", "B,U->B,B"]
otherwise = "stay"
output = { A = "yes", B = "no" }
start = { A = 0.6, B = 3, U = "rest" }
converged = "consensus"
expect = "yes"
`

// TestSpecRefuses: every mistake gives an error of one sentence that names it.
func TestSpecRefuses(t *testing.T) {
	if _, err := compileText(good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, wantErr string }{
		{`"A,U->A,A"`, `"A,X->A,A"`, `names state "X", which is none of A, B, U`},
		{`"A,U->A,A"`, `"A,U->A"`, `write it as "A,B->C,D"`},
		{`"A,U->A,A"`, `"A,U=A,A"`, `write it as "A,B->C,D"`},
		{`"A,U->A,A"`, `"A,B->A,A"`, "A,B has a rule already"},
		{`otherwise = "stay"`, ``, "A,A has no rule"},
		{`otherwise = "stay"`, `otherwise = "swap"`, `write "stay"`},
		{`"B,U->B,B"`, `"B,U->B,B", "A,A->A,U"`, "undoes what converged asks for"},
		{`["A", "B", "U"]`, `["A", "B", "A"]`, "state A is listed twice"},
		{`["A", "B", "U"]`, `["A", "B", "U,V"]`, "a name is 1 to 16 bytes"},
		{`["A", "B", "U"]`, `["A"]`, "1 states: give 2 to 256"},
		{`name = "mine"`, ``, "needs a name"},
		{`output = { A = "yes", B = "no" }`, ``, "needs outputs"},
		{`A = "yes"`, `X = "yes"`, `output names state "X"`},
		{`start = { A = 0.6`, `start = { X = 0.6`, `start names state "X"`},
		{`A = 0.6`, `A = 1.6`, "a share must be in 0 to 1"},
		{`B = 3`, `B = -3`, "give 0 or more"},
		{`B = 3`, `B = 0.7`, "more than 1048576 agents"},
		{`B = 3`, `B = "rest"`, `exactly one state takes "rest"`},
		{`U = "rest"`, `U = 5`, `one state must take "rest"`},
		{`U = "rest"`, `U = true`, "give a share such as 0.5"},
		{`"consensus"`, `"U<=x"`, "or a limit such as"},
		{`"consensus"`, `"X<=1"`, `converged names state "X"`},
		{`"consensus"
expect = "yes"`, `"U<=1"`, "undoes what converged asks for"},
		{`expect = "yes"`, `expect = "maybe"`, `expect = "maybe" is no output`},
		{`expect`, `expects`, "unknown key expects"},
		{`states = [`, `states = {`, "protocol: line 2, states = "},
	} {
		if !strings.Contains(good, c.old) {
			t.Fatalf("no %s in the good table", c.old)
		}
		_, err := compileText(strings.Replace(good, c.old, c.new, 1))
		if err == nil || !strings.Contains(err.Error(), c.wantErr) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s for %s: %v, want %q", c.new, c.old, err, c.wantErr)
		}
	}
}

func compileText(text string) (*Table, error) {
	s, err := ParseSpec([]byte(text))
	if err != nil {
		return nil, err
	}
	return s.Compile()
}

// FuzzSpec: no text panics, and a compiled table has a rule for every pair and starts with n agents.
func FuzzSpec(f *testing.F) {
	f.Add(good)
	text, err := Parity.Text()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSpec([]byte(text))
		if err != nil {
			return
		}
		table, err := s.Compile()
		if err != nil {
			return
		}
		if len(table.next) != len(table.States)*len(table.States) {
			t.Fatalf("%d rules for %d states", len(table.next), len(table.States))
		}
		if count, err := s.begin(1 << 20); err == nil {
			var n uint64
			for _, c := range count {
				n += c
			}
			if n != 1<<20 {
				t.Fatalf("%d agents begin", n)
			}
		}
	})
}

// TestSpecRoundTrip: the text in a log compiles to the same table, and a rule table equals the built-in protocol that
// it describes.
func TestSpecRoundTrip(t *testing.T) {
	s, err := ParseSpec([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Text()
	if err != nil {
		t.Fatal(err)
	}
	again, err := compileText(string(text))
	if err != nil {
		t.Fatal(err)
	}
	want := ApproximateMajority.Program.(finite).table(ApproximateMajority.Defaults())
	if !slices.Equal(again.next, want.next) || !reflect.DeepEqual(again.effective, want.effective) ||
		!slices.Equal(again.output, want.output) {
		t.Error("two-way approximate majority as a rule table is another table")
	}
}

// TestMirror: a rule applies to both orders of a pair, unless the other order has a rule.
func TestMirror(t *testing.T) {
	table, err := compileText(`name = "m"
states = ["A", "B"]
rules = ["A,B->A,A", "A,A->A,A", "B,B->B,B"]
start = { A = 1, B = "rest" }
converged = "silent"`)
	if err != nil {
		t.Fatal(err)
	}
	if c, d := table.meet(1, 0); c != 0 || d != 0 {
		t.Errorf("B,A became %d,%d", c, d)
	}
	table, err = compileText(`name = "m"
states = ["A", "B"]
rules = ["A,B->A,B", "B,A->B,B", "A,A->A,A", "B,B->B,B"]
start = { A = 1, B = "rest" }
converged = "silent"`)
	if err != nil {
		t.Fatal(err)
	}
	if c, d := table.meet(1, 0); c != 1 || d != 1 {
		t.Errorf("B,A became %d,%d", c, d)
	}
}

// TestNewPopulationRestarts: another n restarts all executions. Other changes do not.
func TestNewPopulationRestarts(t *testing.T) {
	for form := range 3 {
		k := ExactMajority.Defaults()
		k = k.With("n", 100).With("gap", 2).With("simulation", float64(form)).With("slice", 1)
		e := singleWorkerEnv(ExactMajority, k, 1, collective.IDs(3))
		round := func(n uint64) {
			t.Helper()
			if _, err := ExactMajority.Program.Round(t.Context(), e, k, n); err != nil {
				t.Fatal(err)
			}
		}
		round(0)
		round(1)
		if got := e.Record(optim.BlockClock).U[0]; got != 200 {
			t.Errorf("form %d: %d meetings after two rounds", form, got)
		}
		k = k.With("n", 50)
		for _, b := range ExactMajority.Blocks(k, engine.Layout{}) {
			if e.Records[b.Name].Cols != b.Cols { // as the runtime plans it
				e.Records[b.Name] = engine.NewHost(3, b.Cols, b.Type)
			}
		}
		round(2)
		if got := e.Record(optim.BlockClock).U[0]; got != 50 {
			t.Errorf("form %d: %d meetings of the execution that began with 50 agents", form, got)
		}
	}
}

// TestStuck: a tie of exact majority ends without an answer, so that the run ends.
func TestStuck(t *testing.T) {
	for _, form := range forms {
		k := ExactMajority.Defaults()
		k = k.With("n", 20).With("gap", 0).With("simulation", form)
		results, err := Simulate(t.Context(), ExactMajority, k, 1, collective.IDs(20), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Time == r.Time || r.Right == r.Right {
				t.Errorf("a tie gave %+v", r)
			}
		}
	}
}

// TestRefusedShapes: the error names the knob that is wrong.
func TestRefusedShapes(t *testing.T) {
	for _, c := range []struct {
		a       *optim.Algorithm
		set     map[string]float64
		wantErr string
	}{
		{ExactMajority, map[string]float64{"n": 10, "gap": 3}, "gap = 3"},
		{ExactMajority, map[string]float64{"n": 10, "gap": 12}, "gap = 12"},
		{OR, map[string]float64{"n": 10, "ones": 11}, "ones = 11"},
		{AverageAndConquer, map[string]float64{"m": 4}, "weights are odd"},
		{Leader, map[string]float64{"n": 1e7, "simulation": forms["agents"]}, "simulation = counts"},
		{Own, map[string]float64{"n": 3}, "more than 3 agents"},
	} {
		if _, err := Simulate(t.Context(), c.a, c.a.Values(c.set), 1, collective.IDs(2), nil); err == nil ||
			!strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s %v: %v", c.a.Name, c.set, err)
		}
	}
}

// TestResultIndependentOfOthers: the result of an execution does not depend on the others that are simulated with it.
func TestResultIndependentOfOthers(t *testing.T) {
	k := ApproximateMajority.Defaults()
	done, reached := int64(0), 0.0
	all, err := Simulate(t.Context(), ApproximateMajority, k, 1, collective.IDs(6),
		func(time float64, ended int64) { reached, done = time, done+ended })
	if err != nil {
		t.Fatal(err)
	}
	some, err := Simulate(t.Context(), ApproximateMajority, k, 1, []engine.Member{2, 5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if some[0] != all[2] || some[1] != all[5] || all[2].Time == all[5].Time {
		t.Errorf("%v, with others %v", some, all)
	}
	last := 0.0
	for _, r := range all {
		last = max(last, r.Time)
	}
	if done != 6 || reached < last || reached > last+k.Get("slice") {
		t.Errorf("%d executions ended by a time of %g, and the last of 6 at %g", done, reached, last)
	}
}

// TestReportedSeriesAreDeclared: a round reports only series that the algorithm declares, for few states and for many,
// and the table has the states that the blocks are declared for.
func TestReportedSeriesAreDeclared(t *testing.T) {
	for _, c := range []struct {
		a   *optim.Algorithm
		set map[string]float64
	}{
		{OR, nil},
		{Leader, nil},
		{JuntaLeader, nil},
		{ExactMajority, nil},
		{ApproximateMajority, nil},
		{AverageAndConquer, map[string]float64{"m": 1}},
		{AverageAndConquer, nil},
		{SplitJoin, map[string]float64{"n": 3}},
		{SplitJoin, nil},
		{GossipMean, nil},
		{Own, nil},
	} {
		k := c.a.Values(c.set)
		if p, ok := c.a.Program.(finite); ok && p.states(k) != len(p.table(k).States) {
			t.Errorf("%s %v: %d states of %d", c.a.Name, c.set, p.states(k), len(p.table(k).States))
		}
		e := singleWorkerEnv(c.a, k, 1, collective.IDs(2))
		rep, err := c.a.Program.Round(t.Context(), e, k, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range rep.Points {
			if !slices.ContainsFunc(c.a.Series, func(s optim.Series) bool { return s.Name == p.Series }) {
				t.Errorf("%s %v reports the series %s", c.a.Name, c.set, p.Series)
			}
		}
	}
}

// TestChangesRestart: a change of what the states mean restarts the executions, even if their number stays.
func TestChangesRestart(t *testing.T) {
	for _, c := range []struct{ before, after map[string]float64 }{
		{map[string]float64{"m": 21}, map[string]float64{"m": 5}},
		{map[string]float64{"m": 21, "simulation": 2}, map[string]float64{"m": 19, "d": 2, "simulation": 2}},
	} {
		e := singleWorkerEnv(AverageAndConquer, AverageAndConquer.Values(c.before), 1, collective.IDs(1))
		for round, set := range []map[string]float64{c.before, c.before, c.after} {
			k := AverageAndConquer.Values(set)
			for _, b := range AverageAndConquer.Blocks(k, engine.Layout{}) {
				if e.Record(b.Name).Cols != b.Cols {
					e.Records[b.Name] = engine.NewHost(1, b.Cols, b.Type)
				}
			}
			rep, err := AverageAndConquer.Program.Round(t.Context(), e, k, uint64(round))
			if err != nil {
				t.Fatal(err)
			}
			if clock := e.Record(optim.BlockClock).U[0]; round != 1 && clock != uint64(rep.Samples) {
				t.Errorf("%v: after round %d of %d meetings the clock is at %d", c, round, rep.Samples, clock)
			}
		}
	}
}

// TestManyStatesWithoutOutputs: a rule table with more states than series and without outputs reports no shares.
func TestManyStatesWithoutOutputs(t *testing.T) {
	s := Spec{Name: "many", Otherwise: "stay", Start: map[string]any{"a": "rest"}, Converged: "silent"}
	for c := 'a'; c < 'a'+maxStateSeries+1; c++ {
		s.States = append(s.States, string(c))
	}
	a := ruleTable(s, must(s.Compile()))
	rep, err := a.Program.Round(t.Context(), singleWorkerEnv(a, a.Defaults(), 1, collective.IDs(1)), a.Defaults(), 0)
	if err != nil || len(a.Series) != 2 || len(rep.Points) != 2 { // loss and time
		t.Errorf("%d series, points %v, %v", len(a.Series), rep.Points, err)
	}
}
