package optim

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// Knob declares a quantity a person may turn while the run trains. Screens, flags, validation and help derive from it.
type Knob struct {
	Name  string // as typed, in ASCII: "ell"
	Label string // as screens write it in place of the name: "ℓ", "population size"; "" for the name
	Title string // what it is: "inner steps"
	Unit  string // "steps", "divisor", "" for a pure number
	Doc   string

	Min, Max, Default float64
	Scale             Scale    // how h/l steps and a slider move
	Integer           bool     // fractions are refused
	Choices           []string // values are indices into it; typed by name
	// Begins is what a new run is told where nobody says otherwise, "" for nothing. It stands in for another default of a
	// knob: logs that were written before it have Default.
	Begins string
	// Follows makes an algorithm that takes over from another one begin with Begins too; else it begins with Default.
	Follows bool
}

// Scale is a knob's natural axis.
type Scale uint8

const (
	Linear Scale = iota
	Log          // steps multiply; needs Min > 0, or 0 reached by typing
)

// Series declares something an algorithm measures.
type Series struct {
	Name, Title, Unit, Doc string
	Kind                   Kind
	Combine                Combine
	Validation             bool // of fitness: it is measured on validation samples, else on those that train
}

// Kind is the shape of a series.
type Kind uint8

const (
	Scalar    Kind = iota // one value a round
	PerMember             // one value a member a round
	PairEdges             // edges between members: of each the ids at the other ends, a point an edge
)

// Combine says how values of one point of the axis become one value.
type Combine uint8

const (
	Mean Combine = iota
	Max
	Last
)

// Values are the knobs of one round, resolved: constant within it, equal on all workers. Nobody changes them; With
// makes others. Asking for a name that the algorithm did not declare, or for a choice that the knob has not, panics: a
// programming error that the conformance suite finds.
type Values struct {
	knobs []Knob
	x     map[string]float64 // by name
}

// F is a float32 knob.
func (v Values) F(name string) float32 { return float32(v.Get(name)) }

// I is an integer knob.
func (v Values) I(name string) int { return int(v.Get(name)) }

// Get is any knob as a number; of one with choices the index, which programs do not ask for: see Is.
func (v Values) Get(name string) float64 {
	x, ok := v.x[name]
	if !ok {
		panic("knob " + name + " is read but not declared")
	}
	return x
}

// Is says whether a knob with choices stands at one of them: k.Is("backoff", "on").
func (v Values) Is(name, choice string) bool {
	if !slices.Contains(v.choices(name), choice) {
		panic("knob " + name + " is compared with " + choice + ", which is not one of its choices")
	}
	return v.Choice(name) == choice
}

// Choice is the name that a knob with choices stands at.
func (v Values) Choice(name string) string { return v.choices(name)[v.I(name)] }

func (v Values) choices(name string) []string {
	i := slices.IndexFunc(v.knobs, func(k Knob) bool { return k.Name == name })
	if i < 0 || len(v.knobs[i].Choices) == 0 {
		panic("knob " + name + " is asked for its choice and has none")
	}
	return v.knobs[i].Choices
}

// Has says whether the algorithm declares the knob: what is shared by several algorithms may ask.
func (v Values) Has(name string) bool {
	_, ok := v.x[name]
	return ok
}

// With are the values with another one of a declared knob.
func (v Values) With(name string, x float64) Values {
	v.Get(name)
	v.x = maps.Clone(v.x)
	v.x[name] = x
	return v
}

// Knob finds a declared knob.
func (a *Algorithm) Knob(name string) (Knob, bool) {
	for _, k := range a.Knobs {
		if k.Name == name {
			return k, true
		}
	}
	return Knob{}, false
}

// KnobNames are those of all declared knobs, sorted.
func (a *Algorithm) KnobNames() (out []string) {
	for _, k := range a.Knobs {
		out = append(out, k.Name)
	}
	slices.Sort(out)
	return out
}

// Defaults are the declared default values.
func (a *Algorithm) Defaults() Values { return a.Values(nil) }

// Values are those that are set, by name, and the defaults of all other knobs.
func (a *Algorithm) Values(set map[string]float64) Values {
	v := Values{a.Knobs, make(map[string]float64, len(a.Knobs))}
	for _, k := range a.Knobs {
		v.x[k.Name] = k.Default
	}
	for name, x := range set {
		v.Get(name)
		v.x[name] = x
	}
	return v
}

// Beginning is what the knob has in a new run where nobody says otherwise.
func (k Knob) Beginning() string { return cmp.Or(k.Begins, k.Format(k.Default)) }

// Told is the knob with another value that new runs are told.
func (k Knob) Told(value string) Knob { k.Begins = value; return k }

// Validate says in one sentence why x is no value of the knob.
func (k Knob) Validate(x float64) error {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return usererr.Errorf("%s must be a finite number", k.Name)
	case len(k.Choices) > 0 && (x != math.Trunc(x) || x < 0 || int(x) >= len(k.Choices)):
		return usererr.Errorf("%s must be one of %s", k.Name, strings.Join(k.Choices, ", "))
	case x < k.Min || x > k.Max:
		return usererr.Errorf("%s = %s is out of bounds: give a value from %s to %s%s", k.Name, k.Format(x), k.Format(k.Min), k.Format(k.Max), unit(k.Unit))
	case k.Integer && x != math.Trunc(x):
		return usererr.Errorf("%s = %g must be a whole number%s", k.Name, x, unit(k.Unit))
	}
	return nil
}

func unit(u string) string {
	if u == "" {
		return ""
	}
	return " (" + u + ")"
}

// Parse reads a typed value: a number, or the name of a choice.
func (k Knob) Parse(s string) (float64, error) {
	for i, c := range k.Choices {
		if c == s {
			return float64(i), nil
		}
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || len(k.Choices) > 0 {
		if len(k.Choices) > 0 {
			return 0, usererr.Errorf("%s must be one of %s, not %q", k.Name, strings.Join(k.Choices, ", "), s)
		}
		return 0, usererr.Errorf("%s = %q is not a number", k.Name, s)
	}
	return x, k.Validate(x)
}

// Format writes a value as a person would type it.
func (k Knob) Format(x float64) string {
	if i := int(x); len(k.Choices) > 0 && i >= 0 && i < len(k.Choices) {
		return k.Choices[i]
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}
