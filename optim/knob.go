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

// Knob declares a hyper-parameter that can change while the run trains. Screens, flags, validation and help derive from
// it.
type Knob struct {
	Name  string // what users type, in ASCII: "ell"
	Label string // what screens show instead of the name: "ℓ", "population size"; "" shows the name
	Title string // a noun phrase: "inner steps"
	Unit  string // "steps", "divisor"; "" if dimensionless
	Doc   string

	Min, Max, Default float64  // Min and Max are 0 with Choices, see Bounds
	Scale             Scale    // how the keys h and l and a slider change the value
	Integer           bool     // rejects fractions
	Choices           []string // values are indices into it; users type the name
	// Schedule is a schedule that new runs set and record if the user gives no value; "" sets nothing. A run that swaps to
	// the algorithm has Default.
	Schedule string

	Group Group // what the knob is about; screens list the algorithm's own knobs first
	Only  When  // the choice of another knob with which this one has an effect; the zero When: with any
}

// Group is what knobs that several algorithms share are about.
type Group uint8

const (
	Own            Group = iota // the algorithm itself
	GroupStep                   // the learning rate and the momentum of a step
	GroupRound                  // the length of a round and the format of messages
	GroupStream                 // mini-batches and their gradients
	GroupOptimiser              // the optimiser of a gradient step
	groupCount
)

// When is a condition on the choice of a knob. It holds for an algorithm without that knob.
type When struct {
	Knob    string
	Choices []string
}

// Shown returns the knobs in the order of screens: the algorithm's own as declared, then group by group.
func (a *Algorithm) Shown() []Knob {
	var out []Knob
	for g := range groupCount {
		for _, k := range a.Knobs {
			if k.Group == g {
				out = append(out, k)
			}
		}
	}
	return out
}

// Idle reports whether a knob has no effect while the others have the values of value.
func (a *Algorithm) Idle(k Knob, value func(Knob) float64) bool {
	on, ok := a.Knob(k.Only.Knob)
	return ok && !slices.Contains(k.Only.Choices, on.Choices[int(value(on))])
}

// Scale selects how a knob's value is stepped and drawn.
type Scale uint8

const (
	Linear Scale = iota
	Log          // steps multiply; Min must be positive, or 0 is reached only by typing it
)

// Series declares a measurement of an algorithm.
type Series struct {
	Name, Title, Unit, Doc string
	Kind                   Kind
	Validation             bool // for a fitness: measured on validation samples instead of training samples
}

// Kind is the shape of a series.
type Kind uint8

const (
	Scalar    Kind = iota // one value per round
	PerMember             // one value per member and round
	PairEdges             // a point per edge of a member; its value is the id of the member at the other end
)

// Values are the knobs of one round: constant within it, equal on all workers, and immutable (With returns a copy). To
// read a knob that the algorithm does not declare, or to compare with a choice that it does not have, panics: a
// programming error that the conformance suite finds.
type Values struct {
	knobs []Knob
	x     map[string]float64 // by name
}

// F returns a knob as float32.
func (v Values) F(name string) float32 { return float32(v.Get(name)) }

// I returns an integer knob.
func (v Values) I(name string) int { return int(v.Get(name)) }

// Get returns a knob as a number; for a knob with choices, the index. Programs compare choices by Is.
func (v Values) Get(name string) float64 {
	x, ok := v.x[name]
	if !ok {
		panic("knob " + name + " is read but not declared")
	}
	return x
}

// Is reports whether a knob has the named choice: k.Is("backoff", "on").
func (v Values) Is(name, choice string) bool {
	if !slices.Contains(v.choices(name), choice) {
		panic("knob " + name + " is compared with " + choice + ", which is not one of its choices")
	}
	return v.Choice(name) == choice
}

// Choice returns the name of the current choice of a knob.
func (v Values) Choice(name string) string { return v.choices(name)[v.I(name)] }

func (v Values) choices(name string) []string {
	i := slices.IndexFunc(v.knobs, func(k Knob) bool { return k.Name == name })
	if i < 0 || len(v.knobs[i].Choices) == 0 {
		panic("knob " + name + " is asked for its choice and has none")
	}
	return v.knobs[i].Choices
}

// Has reports whether the algorithm declares the knob, for code that several algorithms share.
func (v Values) Has(name string) bool {
	_, ok := v.x[name]
	return ok
}

// With returns a copy with one declared knob set to x.
func (v Values) With(name string, x float64) Values {
	v.Get(name)
	v.x = maps.Clone(v.x)
	v.x[name] = x
	return v
}

// Knob returns the declared knob of a name, and whether there is one.
func (a *Algorithm) Knob(name string) (Knob, bool) {
	for _, k := range a.Knobs {
		if k.Name == name {
			return k, true
		}
	}
	return Knob{}, false
}

// KnobNames returns the names of all declared knobs, sorted.
func (a *Algorithm) KnobNames() (out []string) {
	for _, k := range a.Knobs {
		out = append(out, k.Name)
	}
	slices.Sort(out)
	return out
}

// Defaults returns the default of every knob.
func (a *Algorithm) Defaults() Values { return a.Values(nil) }

// Values returns the values in set, by name, and the defaults of all other knobs. It panics for a name that is not
// declared.
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

// Initial returns the schedule or the value of the knob in a new run that does not set it.
func (k Knob) Initial() string { return cmp.Or(k.Schedule, k.Format(k.Default)) }

// OnlyWith returns the knob as one that has an effect only with these choices of another.
func (k Knob) OnlyWith(knob string, choices ...string) Knob { k.Only = When{knob, choices}; return k }

// Scheduled returns the knob with Schedule set to expr.
func (k Knob) Scheduled(expr string) Knob { k.Schedule = expr; return k }

// Bounds returns the smallest and the largest value of the knob.
func (k Knob) Bounds() (lo, hi float64) {
	if n := len(k.Choices); n > 0 {
		return 0, float64(n - 1)
	}
	return k.Min, k.Max
}

// Validate returns an error, one sentence, if x is not a valid value of the knob.
func (k Knob) Validate(x float64) error {
	switch lo, hi := k.Bounds(); {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return usererr.Errorf("%s must be a finite number", k.Name)
	case len(k.Choices) > 0 && (x != math.Trunc(x) || x < lo || x > hi):
		return usererr.Errorf("%s must be one of %s", k.Name, strings.Join(k.Choices, ", "))
	case x < lo || x > hi:
		return usererr.Errorf("%s = %s is out of bounds: give %s", k.Name, k.Format(x), k.interval())
	case k.Integer && x != math.Trunc(x):
		return usererr.Errorf("%s = %g must be a whole number%s", k.Name, x, unit(k.Unit))
	}
	return nil
}

// interval describes the values of a knob without choices, for errors.
func (k Knob) interval() string {
	return "a value from " + k.Format(k.Min) + " to " + k.Format(k.Max) + unit(k.Unit)
}

func unit(u string) string {
	if u == "" {
		return ""
	}
	return " (" + u + ")"
}

// Parse parses what a user typed, a number or the name of a choice, and validates it.
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
		return 0, usererr.Errorf("%s = %q is not a number: give %s", k.Name, s, k.interval())
	}
	return x, k.Validate(x)
}

// Format formats a value so that Parse reads it again.
func (k Knob) Format(x float64) string {
	if i := int(x); len(k.Choices) > 0 && i >= 0 && i < len(k.Choices) {
		return k.Choices[i]
	}
	if k.Integer && x == math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}
