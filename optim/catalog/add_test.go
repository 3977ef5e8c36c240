package catalog

import (
	"slices"
	"strings"
	"testing"

	"brood/optim"
	"brood/optim/averaging"
)

// TestAdd: an added algorithm is found by its name and listed last. Add fails if the name is taken or the declaration
// has a mistake.
func TestAdd(t *testing.T) {
	t.Cleanup(func() { added = nil })
	own := *averaging.DPSGD
	own.Name = "own-sgd"
	before := len(All())
	if err := Add(&own); err != nil {
		t.Fatal(err)
	}
	if got, err := Lookup("own-sgd"); err != nil || got != &own {
		t.Errorf("found %v, %v", got, err)
	}
	if all := All(); len(all) != before+1 || all[before] != &own {
		t.Errorf("%d algorithms, the last is %s", len(all), all[len(all)-1].Name)
	}
	for text, spoil := range map[string]func(a *optim.Algorithm){
		"of this name already":    func(a *optim.Algorithm) { a.Name = "own-sgd" },
		"lower-case letters":      func(a *optim.Algorithm) { a.Name = "Own SGD" },
		"a Title, a Paper":        func(a *optim.Algorithm) { a.Paper = "" },
		"and a Program":           func(a *optim.Algorithm) { a.Program = nil },
		`knob "eta" is declared`:  func(a *optim.Algorithm) { a.Knobs = append(slices.Clone(a.Knobs), optim.KnobEta) },
		`knob "members" is`:       func(a *optim.Algorithm) { a.Knobs = []optim.Knob{{Name: "members", Title: "t", Doc: "d"}} },
		"must have a Title and a": func(a *optim.Algorithm) { a.Knobs = []optim.Knob{{Name: "x", Max: 1}} },
		"knob x has the bounds 1": func(a *optim.Algorithm) {
			a.Knobs = []optim.Knob{{Name: "x", Title: "t", Doc: "d", Min: 1, Default: 1}}
		},
		"the default is refused":    func(a *optim.Algorithm) { a.Knobs = []optim.Knob{{Name: "x", Title: "t", Doc: "d", Min: 1, Max: 2}} },
		`series "loss" has no name`: func(a *optim.Algorithm) { a.Series = append(slices.Clone(a.Series), optim.SeriesLoss) },
	} {
		bad := *averaging.DPSGD
		bad.Name = "bad"
		spoil(&bad)
		if err := Add(&bad); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	if len(All()) != before+1 {
		t.Errorf("%d algorithms after refusals", len(All()))
	}
	if _, err := Lookup("lion"); err == nil || !strings.Contains(err.Error(), "or run the program that has it") {
		t.Errorf("%v", err)
	}
}
