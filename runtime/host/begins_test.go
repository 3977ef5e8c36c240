package host

import (
	"path/filepath"
	"slices"
	"testing"

	"brood/optim/population"
	"brood/runtime/event"
)

// TestKnobsThatBegin: a new run records what its knobs begin with where that is not their default, so that a session
// says it and logs from before keep their meaning; what a person or a preset says stands in its place.
func TestKnobsThatBegin(t *testing.T) {
	start := func(o Options) (expr, by string) {
		edits := Edits(population.PESGD, o)
		i := slices.IndexFunc(edits, func(e event.Edit) bool { return e.Knob == "start" })
		if i < 0 || len(edits) != max(1, len(o.Base)+len(o.Set)) {
			t.Fatalf("told %+v", edits)
		}
		return edits[i].Expr, edits[i].By
	}
	same := []event.Setting{{Knob: "start", Expr: "same"}}
	for _, c := range []struct {
		o        Options
		expr, by string
	}{{Options{}, "own", event.ByNobody}, {Options{Base: same}, "same", "preset"}, {Options{Set: same, By: "flag"}, "same", "flag"}} {
		if expr, by := start(c.o); expr != c.expr || by != c.by {
			t.Errorf("%+v: start %s by %s, want %s by %s", c.o, expr, by, c.expr, c.by)
		}
	}
	home, hashes := t.TempDir(), map[string]string{}
	for name, o := range map[string]Options{"untold": {}, "own": {Set: []event.Setting{{Knob: "start", Expr: "own"}}}, "same": {Set: same}} {
		told := tiny(4)
		told.Algorithm, told.Set = population.PESGD.Name, append(told.Set[1:], o.Set...)
		dir := filepath.Join(home, name)
		hashes[name] = obey(t, Order{Dir: dir, Options: told}, nil)
		if v, err := Verify(t.Context(), dir, 1, nil); err != nil || v.Last.Hash != hashes[name] {
			t.Errorf("%s: %+v, %v", name, v.Result, err)
		}
	}
	if hashes["untold"] != hashes["own"] || hashes["own"] == hashes["same"] {
		t.Errorf("hashes %v", hashes)
	}
}
