package host_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/runtime/ecdf"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/session"
)

// onBBOB returns options of a run on f 15 in 2 dimensions. extra are options by name.
func onBBOB(t *testing.T, extra ...string) host.Options {
	t.Helper()
	o := host.Options{Algorithm: "cma-es", Members: 6, Seed: 4, By: "test", Limit: event.Limit{Rounds: 500},
		Set: []event.Setting{{Knob: "sigma", Expr: "2"}, {Knob: "restarts", Expr: "2"}}}
	for _, x := range append([][2]string{{"bbob", "15"}, {"dimension", "2"}}, pairs(extra)...) {
		if err := option.Named(x[0]).Set(&o, x[1]); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// pairs splits a list into pairs.
func pairs(list []string) (out [][2]string) {
	for i := 0; i+1 < len(list); i += 2 {
		out = append(out, [2]string{list[i], list[i+1]})
	}
	return out
}

// A run with restarts has the same bits on 1, 2 and 3 workers, while generations take one, two and four rounds. It
// verifies from the session alone, records the defaults, and sends as many bytes as predicted.
func TestBBOB(t *testing.T) {
	hashes := map[string]bool{}
	for workers := 1; workers <= 3; workers++ {
		dir, o := filepath.Join(t.TempDir(), "run"), onBBOB(t)
		o.Workers = workers
		_, hash, err := maximise(context.Background(), nil, dir, o)
		if err != nil {
			t.Fatal(err)
		}
		hashes[hash] = true
		again, err := (*host.Own)(nil).Verify(context.Background(), dir, 0, nil)
		if err != nil || again.Last.Hash != hash || len(again.Alerts) > 0 {
			t.Errorf("verified with %v and alerts %q", err, again.Alerts)
		}
		r, err := ecdf.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if r.Function != 15 || r.Dimension != 2 || r.Instance != 1 || r.Evaluations != 3000 || r.Hits[0] == 0 {
			t.Errorf("the session is read as %+v", r)
		}
		if got := populations(t, dir); !slices.Equal(got, []float64{6, 12, 24}) {
			t.Errorf("the run has the populations %v", got)
		}
		if workers == 1 {
			continue
		}
		if c := again.Last; len(c.Sent) == 0 || c.Sent["fitness"] != c.Predicted["fitness"] {
			t.Errorf("%d workers sent %v, predicted %v", workers, c.Sent, c.Predicted)
		}
	}
	if len(hashes) != 1 {
		t.Errorf("hashes %v", hashes)
	}
}

// populations returns the different values of the series population of a session, in the order of their rounds.
func populations(t *testing.T, dir string) (out []float64) {
	for rec, err := range session.Records(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if p := rec.Points; p != nil && p.Series == "population" && !slices.Contains(out, p.Values[0]) {
			out = append(out, p.Values[0])
		}
	}
	return out
}

func TestBBOBRefuses(t *testing.T) {
	for want, extra := range map[string][]string{
		"env = cartpole and bbob = 15: a run has one objective: omit one":          {"env", "cartpole"},
		"objective = ./x: the run maximises a function of the suite BBOB: omit it": {"objective", "./x"},
		"bbob = 25 is out of bounds: give 1 to 24":                                 {"bbob", "25"},
		"dimension = 41: the functions of the suite have 2 to 40":                  {"dimension", "41"},
		"instance = 3: an instance is that of a function: give one":                {"bbob", "0", "dimension", "0", "instance", "3"},
		"dimension = 3: a dimension is that of a function: give one":               {"bbob", "0", "dimension", "3"},
	} {
		if _, err := host.Prepare(onBBOB(t, extra...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", extra, err, want)
		}
	}
	o := onBBOB(t)
	o.Model = "mlp-small"
	if _, err := host.Prepare(o); err == nil ||
		!strings.Contains(err.Error(), "a function of the suite BBOB has no model") {
		t.Errorf("with a model: %v", err)
	}
}
