package host

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"brood/optim/protocol"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/testutil"
)

const twoColours = `name = "colours"
states = ["red", "blue"]
rules = ["red,blue->red,red"]
otherwise = "stay"
output = { red = "r", blue = "b" }
start = { red = 2, blue = "rest" }
converged = "consensus"
expect = "r"
`

// TestModellessRun: the log records the rule table of a run without a model. The run resumes and verifies from the log
// alone, without a model or data.
func TestModellessRun(t *testing.T) {
	train := func(j *Job, dir string, from *Restored) {
		t.Helper()
		open := session.Create
		if from != nil {
			open = session.Open
		}
		s, err := open(dir)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Start(j, s, from, func(event.Record) {})
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := r.Train(testutil.Context(t)); err != nil || exit.Phase != event.Finished {
			t.Fatal(exit, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Algorithm: protocol.Own.Name, Rules: []byte(twoColours), Members: 5, Workers: 2, Seed: 3,
		Limit: event.Limit{Rounds: 4},
		Set:   []event.Setting{{Knob: "n", Expr: "500"}}}
	j, err := Prepare(o)
	if err != nil {
		t.Fatal(err)
	}
	if j.Config.ModelSpec != twoColours || j.Config.Params != 0 || j.Config.Data != "" || j.Config.Probe != 0 {
		t.Errorf("recorded as %+v", j.Config)
	}
	dir := filepath.Join(t.TempDir(), "s")
	train(j, dir, nil)
	from, err := Restore(context.Background(), dir, 0, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(from.Job.Alg.Series) == len(protocol.Own.Series) {
		t.Error("the resumed run has the series of another rule table")
	}
	if err := from.Continue(Options{Workers: 3, Limit: event.Limit{Epochs: 1}}); err != nil {
		t.Fatal(err)
	}
	train(from.Job, dir, from)
	v, err := Verify(context.Background(), dir, 1, nil)
	if err != nil || v.Open {
		t.Fatal(v, err)
	}

	whole := filepath.Join(t.TempDir(), "s")
	o.Limit, o.Workers = event.Limit{}, 1
	if j, err = Prepare(o); err != nil {
		t.Fatal(err)
	}
	if j.Config.Limit.Epochs != 1 {
		t.Errorf("without a limit the run ends after %g epochs", j.Config.Limit.Epochs)
	}
	train(j, whole, nil)
	w, err := Verify(context.Background(), whole, 1, nil)
	if err != nil || w.Last.Hash != v.Last.Hash {
		t.Errorf("uninterrupted %s, resumed %s (%v)", w.Last.Hash, v.Last.Hash, err)
	}
}

// TestModellessRefuses: options that need a model are rejected, and so is a swap between runs with and without a model.
func TestModellessRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"model":  {Options{Algorithm: "or", Model: "mlp"}, "or trains no model"},
		"data":   {Options{Algorithm: "or", Data: "glyphs"}, "or trains no model"},
		"init":   {Options{Algorithm: "or", Init: "x.safetensors"}, "or trains no model"},
		"target": {Options{Algorithm: "or", Limit: event.Limit{Target: "loss=0.1"}}, "epochs (1: every member has ended)"},
		"rules":  {Options{Algorithm: "or", Rules: []byte(twoColours)}, "has built-in rules"},
		"table":  {Options{Algorithm: "dp-sgd", Rules: []byte(twoColours)}, "takes no rule table"},
		"bad":    {Options{Algorithm: "protocol", Rules: []byte("states = 3")}, "protocol"},
		"gap":    {Options{Algorithm: "exact-majority", Set: []event.Setting{{Knob: "gap", Expr: "101"}}}, "gap = 101"},
	} {
		if _, err := Prepare(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	bare, err := Prepare(Options{Algorithm: "or"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bare.lookup("parle"); err == nil || !strings.Contains(err.Error(), "this run has none") {
		t.Errorf("parle in a run without a model: %v", err)
	}
	if _, err := bare.lookup("leader"); err != nil {
		t.Error(err)
	}
	full, err := Prepare(tiny(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := full.lookup("leader"); err == nil || !strings.Contains(err.Error(), "and this run does") {
		t.Errorf("leader in a run with a model: %v", err)
	}
}
