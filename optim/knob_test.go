package optim

import (
	"math"
	"strings"
	"testing"
)

var (
	realKnob   = Knob{Name: "gamma", Unit: "divisor", Min: 0.5, Max: 100, Default: 1}
	wholeKnob  = Knob{Name: "ell", Min: 1, Max: 50, Default: 5, Integer: true}
	choiceKnob = Knob{Name: "variant", Choices: []string{"paper", "arxiv"}}
)

func TestKnobParse(t *testing.T) {
	for _, c := range []struct {
		k    Knob
		text string
		want float64
		err  string // a part of the error; "": none
	}{
		{realKnob, "0.5", 0.5, ""},
		{realKnob, "1e2", 100, ""},
		{realKnob, "0.49", 0, "gamma = 0.49 is out of bounds: give a value from 0.5 to 100 (divisor)"},
		{realKnob, "101", 0, "give a value from 0.5 to 100"},
		{realKnob, "NaN", 0, "gamma must be a finite number"},
		{realKnob, "inf", 0, "gamma must be a finite number"},
		{realKnob, "", 0, `gamma = "" is not a number: give a value from 0.5 to 100 (divisor)`},
		{realKnob, "1,5", 0, `gamma = "1,5" is not a number`},
		{wholeKnob, "7", 7, ""},
		{wholeKnob, "7.5", 0, "ell = 7.5 must be a whole number"},
		{wholeKnob, "0", 0, "give a value from 1 to 50"},
		{choiceKnob, "paper", 0, ""},
		{choiceKnob, "arxiv", 1, ""},
		{choiceKnob, "1", 0, `variant must be one of paper, arxiv, not "1"`},
		{choiceKnob, "sysml", 0, `variant must be one of paper, arxiv, not "sysml"`},
	} {
		got, err := c.k.Parse(c.text)
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%s = %q: %g, %v", c.k.Name, c.text, got, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s = %q: %v, want %q", c.k.Name, c.text, err, c.err)
		}
	}
}

func TestKnobValidate(t *testing.T) {
	for _, x := range []float64{-1, 0.5, 2, math.NaN(), math.Inf(1)} {
		if err := choiceKnob.Validate(x); err == nil {
			t.Errorf("choice %g is admitted", x)
		}
	}
	for _, k := range []Knob{realKnob, wholeKnob, choiceKnob} {
		lo, hi := k.Bounds()
		for _, x := range []float64{lo, hi, k.Default} {
			if err := k.Validate(x); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestKnobFormat: Parse reads the text of Format.
func TestKnobFormat(t *testing.T) {
	for _, c := range []struct {
		k    Knob
		x    float64
		want string
	}{{realKnob, 0.5, "0.5"}, {realKnob, 1e-9, "1e-09"}, {wholeKnob, 12, "12"},
		{KnobB, 1<<20 - 1, "1048575"}, {choiceKnob, 1, "arxiv"},
		{choiceKnob, 5, "5"}, {choiceKnob, -1, "-1"}} {
		got := c.k.Format(c.x)
		if got != c.want {
			t.Errorf("%s %g is written %q, want %q", c.k.Name, c.x, got, c.want)
		}
		if x, err := c.k.Parse(got); c.k.Validate(c.x) == nil && (err != nil || x != c.x) {
			t.Errorf("%s: %q reads as %g, %v", c.k.Name, got, x, err)
		}
	}
}

func TestValues(t *testing.T) {
	a := &Algorithm{Knobs: []Knob{realKnob, wholeKnob, choiceKnob}}
	v := a.Defaults()
	if v.F("gamma") != 1 || v.I("ell") != 5 || !v.Is("variant", "paper") || v.Choice("variant") != "paper" ||
		v.Has("rho") {
		t.Errorf("defaults are %v", v)
	}
	if k, ok := a.Knob("ell"); !ok || k.Name != "ell" {
		t.Error("ell is not found")
	}
	if _, ok := a.Knob("rho"); ok {
		t.Error("a knob that is not declared is found")
	}
	w := v.With("variant", 1)
	if !w.Is("variant", "arxiv") || !v.Is("variant", "paper") {
		t.Error("With changes its receiver, or does not set the value in its result")
	}
	if x := a.Values(map[string]float64{"gamma": 2}); x.F("gamma") != 2 || x.I("ell") != 5 {
		t.Errorf("values are %v", x)
	}
	for what, ask := range map[string]func(){
		"a knob that is not declared can be read":                      func() { v.Get("rho") },
		"a knob that is not declared can be set":                       func() { v.With("rho", 1) },
		"a knob that is not declared has a value":                      func() { a.Values(map[string]float64{"rho": 1}) },
		"a knob is compared with a text that is no choice of the knob": func() { v.Is("variant", "sysml") },
		"a knob without choices is compared with a choice":             func() { v.Is("ell", "5") },
		"a knob without choices has the name of a choice":              func() { v.Choice("ell") },
		"a knob has a default that is none of its choices":             func() { choiceKnob.Choosing("sysml") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error(what)
				}
			}()
			ask()
		}()
	}
}
