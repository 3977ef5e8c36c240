package optim

import (
	"slices"

	"brood/models/engine"
)

// Auto is the choice of a knob that lets the run choose: before a round with it, the runtime records an edit to another
// choice, based on the rates of the workers. Programs treat it as the first choice of the knob.
const Auto = "auto"

// Rates are measurements of a worker for the choice of a knob that is Auto; 0 means not measured.
type Rates struct {
	Noise float64 // elements of a weighted noise sum per second
	Bytes float64 // payload bytes per second from one worker to all its peers
}

// Slower returns the lower of each rate; a rate that one of them did not measure is the other's.
func (r Rates) Slower(o Rates) Rates {
	least := func(a, b float64) float64 {
		if a <= 0 || b > 0 && b < a {
			return b
		}
		return a
	}
	return Rates{least(r.Noise, o.Noise), least(r.Bytes, o.Bytes)}
}

// Chooser is an optional interface of a Program with knobs that may be Auto. All choices must give equal bits: the
// choice is recorded, and re-execution uses the recorded one.
type Chooser interface {
	// Noise returns the kind of noise whose rate is measured.
	Noise(k Values) engine.Noise
	// Prefer returns a choice for every knob of s.K that is Auto. r holds the lowest rates of all workers.
	Prefer(s Shape, r Rates) []Choice
}

// Choice is a knob that was Auto, its chosen value and a clause with the reason.
type Choice struct{ Knob, Expr, Why string }

// Undecided returns the knobs that are Auto.
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
