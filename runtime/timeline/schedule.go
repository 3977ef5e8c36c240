// Package timeline resolves knobs: it parses schedules and computes the values of knobs in a round from the edits of a
// run. It has no I/O and no clock. It imports packages of models and optim, and runtime/event.
package timeline

import (
	"math"
	"strconv"
	"strings"

	"brood/models/arith"
	"brood/models/usererr"
	"brood/optim"
)

// Position is the progress of a run at the start of a round.
type Position struct {
	Round  uint64
	Epochs float64
	Steps  uint64
}

// Schedule is the value of a knob as a function of the position, constant within a round. Forms:
//
//	0.1                          a constant
//	linear:0.1..0.01@200         from A at its first round to B at position 200, constant after
//	cosine:0.1..0.001@200        the same, half a cosine
//	warmup:0.1@20..0.001@200     from zero (or the knob's least value) straight to A at position 20, then half a
//	                             cosine to B at position 200, constant after
//	exp:0.1*0.999/round          A*factor^(rounds since its first); also /epoch and /step
//	exp:0.1*0.999/3rounds        A*factor^(every third round since its first)
//	exp:0.1*0.999/round..0.01    the same, but not beyond a last value
//	step:0.1,60=0.02,120=0.004   A, then each value from its position on
//	piecewise:0=0.1,200=0.02     straight lines between the positions
//	SCHEDULE,from40,x0.8         a schedule that began at round 40, with all values times 0.8; either may be missing
//
// A position is a round of the run, or epochs with suffix e, or steps with suffix s. The schedule of an edit starts at
// its first round. Users may also give positions relative to that, such as +200, see Accept and Absolute, and other
// units, such as cycles, see Counted.
type Schedule struct {
	text   string
	form   string // "" for a constant
	a, b   float64
	unit   byte     // r, e or s
	plus   bool     // a position was written with a +
	every  float64  // of exp: rounds per factor; 0: 1
	until  float64  // last position of linear, cosine and warmup
	last   *float64 // of exp: the final value; nil: the bound of the knob
	from   *float64 // where it began; nil: at the first round of its edit
	factor float64  // of all values; 0: 1
	knots  []knot   // of step and piecewise, and the peak of warmup
}

type knot struct{ at, value float64 }

// String returns the schedule as the user typed it.
func (s Schedule) String() string { return s.text }

// Constant reports whether the value never changes.
func (s Schedule) Constant() bool { return s.form == "" }

// Parse parses a schedule for a knob and validates its values at its breakpoints.
func Parse(k optim.Knob, text string) (Schedule, error) {
	text = strings.TrimSpace(text)
	counted, err := Counted(k, text, nominal)
	if err != nil {
		return Schedule{text: text}, err
	}
	s, err := parse(k, counted)
	if s.text = text; err != nil {
		return s, err
	}
	for _, v := range s.extremes() {
		if err := k.Validate(v); err != nil {
			return s, err
		}
	}
	return s, nil
}

// parse parses a schedule in rounds, epochs or steps. It does not check the values against the bounds of the knob.
func parse(k optim.Knob, text string) (Schedule, error) {
	body, from, factor := cutSuffixes(text)
	form, rest, ok := strings.Cut(body, ":")
	if !ok {
		v, err := k.Parse(text)
		return Schedule{text: text, unit: 'r', a: v}, err
	}
	p := parser{k, Schedule{text: text, unit: 'r'}}
	if len(k.Choices) > 0 {
		return p.s, usererr.Errorf("%s is a choice and takes no schedule: give one of %s", k.Name,
			strings.Join(k.Choices, ", "))
	}
	p.s.form = form
	err := error(nil)
	switch form {
	case "linear", "cosine":
		err = p.ramp(rest)
	case "warmup":
		err = p.warmup(rest)
	case "exp":
		err = p.exp(rest)
	case "step", "piecewise":
		err = p.breakpoints(rest)
	default:
		err = usererr.Errorf("%s: unknown schedule %q: use a number, linear, cosine, warmup, exp, step or piecewise",
			k.Name, form)
	}
	if err == nil {
		err = p.suffixes(from, factor)
	}
	return p.s, err
}

// parser sets the fields of a schedule from the text after its form.
type parser struct {
	knob optim.Knob
	s    Schedule
}

// bad returns the error that the text does not have the form want.
func (p *parser) bad(want string) error {
	return usererr.Errorf("%s: %q is not a schedule: write %s", p.knob.Name, p.s.text, want)
}

// unordered returns the error that positions do not ascend.
func (p *parser) unordered() error {
	return usererr.Errorf("%s: %q: positions must ascend", p.knob.Name, p.s.text)
}

// finite parses a finite number and returns whether it is one.
func finite(t string, dst *float64) bool {
	v, err := strconv.ParseFloat(t, 64)
	*dst = v
	return err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// ramp parses linear and cosine.
func (p *parser) ramp(text string) error {
	ab, at, ok1 := strings.Cut(text, "@")
	a, b, ok2 := strings.Cut(ab, "..")
	if !ok1 || !ok2 || !finite(a, &p.s.a) || !finite(b, &p.s.b) || !p.s.position(at, &p.s.until) {
		return p.bad(p.s.form + ":FROM..TO@POSITION")
	}
	return nil
}

func (p *parser) warmup(text string) error {
	up, down, ok1 := strings.Cut(text, "..")
	peak, at, ok2 := strings.Cut(up, "@")
	b, until, ok3 := strings.Cut(down, "@")
	var top knot
	if !ok1 || !ok2 || !ok3 || !finite(peak, &top.value) || !finite(b, &p.s.b) || !p.s.position(at, &top.at) {
		return p.bad("warmup:PEAK@POSITION..LAST@POSITION")
	}
	if p.s.knots = []knot{top}; !p.s.position(until, &p.s.until) {
		return p.bad("warmup:PEAK@POSITION..LAST@POSITION, both positions in one unit")
	}
	if p.s.a = max(p.knob.Min, 0); p.s.until <= top.at {
		return p.unordered()
	}
	return nil
}

const expForm = "exp:START*FACTOR/round (or /epoch, /step, /cycle, /tensor, /replica) with a factor above 0, and " +
	"..LAST to end at that value"

func (p *parser) exp(text string) error {
	v, per, ok1 := strings.Cut(text, "/")
	per, last, limited := strings.Cut(per, "..")
	a, f, ok2 := strings.Cut(v, "*")
	unit := map[string]byte{"round": 'r', "epoch": 'e', "step": 's'}[per]
	if n, many := strings.CutSuffix(per, "rounds"); many {
		if every, err := strconv.ParseUint(n, 10, 32); err == nil && every > 1 {
			unit, p.s.every = 'r', float64(every)
		}
	}
	if !ok1 || !ok2 || unit == 0 || !finite(a, &p.s.a) || !finite(f, &p.s.b) || p.s.b <= 0 {
		return p.bad(expForm)
	}
	p.s.unit = unit
	if limited {
		p.s.last = new(float64)
		if !finite(last, p.s.last) {
			return p.bad(expForm)
		}
		if (*p.s.last-p.s.a)*(p.s.b-1) < 0 {
			return usererr.Errorf("%s: %q: %g never reaches %s with this factor", p.knob.Name, p.s.text, p.s.a, last)
		}
	}
	return nil
}

// breakpoints parses step and piecewise.
func (p *parser) breakpoints(text string) error {
	parts := strings.Split(text, ",")
	want := "piecewise:0=0.1,200=0.02"
	if p.s.form == "step" {
		want = "step:0.1,60=0.02,120=0.004"
		if !finite(parts[0], &p.s.a) {
			return p.bad(want)
		}
		parts = parts[1:]
	}
	for _, part := range parts {
		at, v, ok := strings.Cut(part, "=")
		var n knot
		if !ok || !p.s.position(at, &n.at) || !finite(v, &n.value) {
			return p.bad(want)
		}
		if i := len(p.s.knots); i > 0 && p.s.knots[i-1].at >= n.at {
			return p.unordered()
		}
		p.s.knots = append(p.s.knots, n)
	}
	if len(p.s.knots) == 0 {
		return p.bad(want)
	}
	return nil
}

// position parses "200", "2.5e" or "1000s". It returns false if the text is invalid or the unit differs from that of
// the earlier positions.
func (s *Schedule) position(t string, dst *float64) bool {
	unit := byte('r')
	if n := len(t); n > 0 && (t[n-1] == 'e' || t[n-1] == 's') {
		unit, t = t[n-1], t[:n-1]
	}
	if len(s.knots) > 0 && unit != s.unit {
		return false
	}
	s.unit, s.plus = unit, s.plus || strings.HasPrefix(t, "+")
	v, err := strconv.ParseFloat(t, 64)
	*dst = v
	return err == nil && v >= 0 && !math.IsInf(v, 0) && !math.IsNaN(v)
}

// extremes returns values between which the schedule stays. An exp schedule may exceed them; it is clamped to the
// bounds of the knob when resolved, as the least value of a warmup is.
func (s Schedule) extremes() (out []float64) {
	switch s.form {
	case "linear", "cosine":
		out = []float64{s.a, s.b}
	case "warmup":
		return []float64{s.a, s.scale(s.knots[0].value), s.scale(s.b)}
	case "piecewise", "step":
		if s.form == "step" {
			out = append(out, s.a)
		}
		for _, k := range s.knots {
			out = append(out, k.value)
		}
	default:
		if out = append(out, s.a); s.last != nil {
			out = append(out, *s.last)
		}
	}
	for i := range out {
		out[i] = s.scale(out[i])
	}
	return out
}

func (s Schedule) place(p Position) float64 {
	switch s.unit {
	case 'e':
		return p.Epochs
	case 's':
		return float64(p.Steps)
	}
	return float64(p.Round)
}

// At returns the value at position p of a schedule that took effect at first, without the bounds of the knob.
func (s Schedule) At(p, first Position) float64 { return s.scale(s.value(p, first)) }

// value returns the value without the factor.
func (s Schedule) value(p, first Position) float64 {
	x, x0 := s.place(p), s.place(first)
	if s.from != nil {
		x0 = *s.from
	}
	switch s.form {
	case "":
		return s.a
	case "linear", "cosine":
		if x >= s.until || s.until <= x0 {
			return s.b
		}
		t := max(0, (x-x0)/(s.until-x0))
		if s.form == "cosine" {
			return s.b + float64((s.a-s.b)*0.5*(1+arith.Cos(math.Pi*t)))
		}
		return s.a + float64((s.b-s.a)*t)
	case "warmup":
		top := s.knots[0]
		switch from := max(top.at, x0); {
		case x >= s.until:
			return s.b
		case x < top.at:
			return s.a + float64((top.value-s.a)*max(0, (x-x0)/(top.at-x0)))
		default:
			return s.b + float64((top.value-s.b)*0.5*(1+arith.Cos(math.Pi*(x-from)/(s.until-from))))
		}
	case "exp":
		if s.a == 0 {
			return 0 // the power of the factor may overflow
		}
		n := max(0, x-x0)
		if s.every > 0 {
			n = math.Floor(n / s.every)
		}
		v := float64(s.a * arith.Pow(s.b, n))
		if s.last != nil && (v-*s.last)*(s.b-1) > 0 {
			return *s.last
		}
		return v
	case "step":
		v := s.a
		for _, k := range s.knots {
			if x >= k.at {
				v = k.value
			}
		}
		return v
	}
	if x <= s.knots[0].at {
		return s.knots[0].value
	}
	for i := 1; i < len(s.knots); i++ {
		if a, b := s.knots[i-1], s.knots[i]; x < b.at {
			return a.value + (b.value-a.value)*(x-a.at)/(b.at-a.at)
		}
	}
	return s.knots[len(s.knots)-1].value
}

// Breakpoints returns the rounds at which the values must be checked; none for a constant and for units other than
// rounds.
func (s Schedule) Breakpoints() (out []uint64) {
	if s.unit != 'r' {
		return nil
	}
	if s.form == "linear" || s.form == "cosine" {
		return []uint64{uint64(s.until)}
	}
	for _, k := range s.knots {
		out = append(out, uint64(k.at))
	}
	if s.form == "warmup" {
		out = append(out, uint64(s.until))
	}
	return out
}

// Range returns values between which the schedule stays, within the bounds of the knob: those at its breakpoints, and
// the limit of an exp schedule.
func (s Schedule) Range(k optim.Knob) []float64 {
	return append(s.extremes(), s.limit(k)...)
}

// limit returns the value to which an exp schedule tends; none for other schedules and for a factor of 1.
func (s Schedule) limit(k optim.Knob) []float64 {
	switch {
	case s.form != "exp" || s.b == 1:
		return nil
	case s.last != nil:
		return []float64{s.scale(*s.last)}
	case s.b < 1:
		return []float64{max(k.Min, 0)}
	}
	return []float64{k.Max}
}

// ahead returns values between which a schedule that took effect at first stays from p on.
func (s Schedule) ahead(p, first Position, k optim.Knob) []float64 {
	out := []float64{s.At(p, first)}
	if s.form == "linear" || s.form == "cosine" || s.form == "warmup" {
		out = append(out, s.scale(s.b))
	}
	out = append(out, s.limit(k)...)
	for _, n := range s.knots {
		if n.at > s.place(p) {
			out = append(out, s.scale(n.value))
		}
	}
	return out
}
