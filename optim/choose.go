package optim

import (
	"slices"

	"brood/models/engine"
)

// Auto is the choice of a knob that leaves the choice to the run: before a round is governed by it, an edit puts
// another in its place, by what the workers measured. Programs take it for the knob's first choice.
const Auto = "auto"

// Rates are what a worker measures of itself where something is left to the run; 0 is not measured.
type Rates struct {
	Noise float64 // elements of the weighted sum of noise, a second
	Bytes float64 // payload a second out of one worker to all its peers
}

// Slower is the slower of two workers in each respect.
func (r Rates) Slower(o Rates) Rates {
	least := func(a, b float64) float64 {
		if a <= 0 || b > 0 && b < a {
			return b
		}
		return a
	}
	return Rates{least(r.Noise, o.Noise), least(r.Bytes, o.Bytes)}
}

// Chooser is an optional power of a Program with knobs that may be Auto. It must choose among what gives equal bits: a
// choice is recorded, and whoever executes the record takes it from there.
type Chooser interface {
	// Noise is the kind of noise whose rate decides.
	Noise(k Values) engine.Noise
	// Prefer chooses for every knob of s.K that is Auto, by the rates of the slowest worker.
	Prefer(s Shape, r Rates) []Choice
}

// Choice is what a knob left to the run becomes.
type Choice struct{ Knob, Expr, Why string }

// Undecided are the knobs that values leave to the run.
func (a *Algorithm) Undecided(v Values) (out []Knob) {
	if _, ok := a.Program.(Chooser); !ok {
		return nil
	}
	for _, k := range a.Knobs {
		if slices.Contains(k.Choices, Auto) && v.Is(k.Name, Auto) {
			out = append(out, k)
		}
	}
	return out
}
