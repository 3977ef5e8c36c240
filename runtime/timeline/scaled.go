package timeline

import (
	"math"
	"strconv"
	"strings"

	"brood/models/usererr"
	"brood/optim"
	"brood/runtime/event"
)

// A schedule may end with suffixes, in this order:
//
//	,from40   it began at round 40, or at an epoch or a step with e or s, instead of at the first round of its edit
//	,x0.8     all its values times a factor above 0
//
// A request *0.5 or /2 scales the schedule in effect. The log has the result with both suffixes, such as
// exp:100*0.99/round,from40,x0.5: it needs no earlier edit to be resolved.
const (
	fromSuffix  = ",from"
	scaleSuffix = ",x"
)

// cutSuffixes splits an expression into its form and its suffixes.
func cutSuffixes(expr string) (form, from, factor string) {
	form = expr
	if !strings.Contains(form, ":") {
		return form, "", ""
	}
	cut := func(mark string) (value string) {
		if i := strings.LastIndex(form, mark); i >= 0 && i+len(mark) < len(form) {
			form, value = form[:i], form[i+len(mark):]
		}
		return value
	}
	factor = cut(scaleSuffix)
	from = cut(fromSuffix)
	return form, from, factor
}

// joinSuffixes is the inverse of cutSuffixes. It omits a factor of 1.
func joinSuffixes(form, from, factor string) string {
	if from != "" {
		form += fromSuffix + from
	}
	if factor != "" && factor != "1" {
		form += scaleSuffix + factor
	}
	return form
}

// suffixes parses the suffixes of a schedule.
func (p *parser) suffixes(from, factor string) error {
	if from != "" {
		if !p.s.anchored() {
			return usererr.Errorf("%s: %q: values of %s do not depend on where it began: leave %s%s out", p.knob.Name,
				p.s.text, p.s.form, fromSuffix, from)
		}
		unit, plus := p.s.unit, p.s.plus
		p.s.from = new(float64)
		knots := p.s.knots
		p.s.knots = nil // they fix the unit
		ok := p.s.position(from, p.s.from) && p.s.unit == unit && !strings.HasPrefix(from, "+")
		if p.s.knots, p.s.unit, p.s.plus = knots, unit, plus; !ok {
			return p.bad("SCHEDULE" + fromSuffix + "POSITION, in the unit of its other positions and without +")
		}
	}
	if factor != "" && (!finite(factor, &p.s.factor) || p.s.factor <= 0) {
		return p.bad("SCHEDULE" + scaleSuffix + "FACTOR with a factor above 0")
	}
	return nil
}

// anchored reports whether the values depend on the position at which the schedule began.
func (s Schedule) anchored() bool {
	return s.form == "linear" || s.form == "cosine" || s.form == "warmup" || s.form == "exp"
}

// scale returns a value times the factor of the schedule.
func (s Schedule) scale(x float64) float64 {
	if s.factor == 0 {
		return x
	}
	return float64(x * s.factor)
}

// Ended reports whether the value does not change from position p on, as of a constant.
func (s Schedule) Ended(p Position) bool {
	last, ok := s.end()
	return s.Constant() || ok && s.place(p) >= last
}

// relative splits a request *F or /F; ok is false for other expressions.
func relative(expr string) (op byte, number string, ok bool) {
	if expr = strings.TrimSpace(expr); expr == "" || expr[0] != '*' && expr[0] != '/' {
		return 0, "", false
	}
	return expr[0], strings.TrimSpace(expr[1:]), true
}

// factor parses the number of a request *F or /F for a knob.
func factor(k optim.Knob, op byte, text string) (f float64, err error) {
	switch {
	case len(k.Choices) > 0:
		return 0, usererr.Errorf("%s is a choice: give one of %s", k.Name, strings.Join(k.Choices, ", "))
	case !finite(text, &f) || op == '/' && f == 0:
		return 0, usererr.Errorf("%s: write %c and a number, as in *0.5 or /2, not %q", k.Name, op, text)
	}
	return f, nil
}

// times returns x*f or x/f with 15 digits: 0.8 of 0.8 is 0.64. The number in the log is exact by definition.
func times(x float64, op byte, f float64) float64 {
	if op == '/' {
		x /= f
	} else {
		x *= f
	}
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 15, 64), 64)
	return x
}

// Factor returns the factor of a schedule, or of a request *F or /F; 1 if it has none.
func Factor(expr string) float64 {
	_, _, text := cutSuffixes(expr)
	op, n, scales := relative(expr)
	if scales {
		text = n
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return 1
	case scales && op == '/':
		return 1 / x
	}
	return x
}

// WithFactor returns a schedule, or a request *F or /F, with another factor.
func WithFactor(expr string, f float64) string {
	if Scales(expr) {
		return "*" + number(f)
	}
	form, from, _ := cutSuffixes(expr)
	return joinSuffixes(form, from, number(f))
}

// Scaled returns a schedule, or a request *F or /F, with its factor multiplied by f.
func Scaled(expr string, f float64) string { return WithFactor(expr, times(Factor(expr), '*', f)) }

// Scales reports whether an expression is a request *F or /F.
func Scales(expr string) bool {
	_, _, ok := relative(expr)
	return ok
}

// Moves reports whether an expression is a schedule, or a request *F or /F.
func Moves(expr string) bool { return Scales(expr) || strings.Contains(expr, ":") }

// Inverse returns the request that undoes a request *F or /F.
func Inverse(expr string) string {
	op, n, _ := relative(expr)
	return map[byte]string{'*': "/", '/': "*"}[op] + n
}

// Scale returns an edit, to take effect at a position, with a request *F or /F in Expr replaced by what it requests:
// the schedule in effect, from where it began, with another factor; for a knob without a schedule, or with one that has
// ended, a number. It returns other edits unchanged. Edits of t whose progress is not yet known cannot be scaled.
func (t *Timeline) Scale(e event.Edit, at Position) (event.Edit, error) {
	op, text, ok := relative(e.Expr)
	k, known := t.alg.Knob(e.Knob)
	if !ok || !known {
		return e, nil
	}
	f, err := factor(k, op, text)
	if err != nil {
		return e, err
	}
	s, base, has := t.Ruling(k.Name, at.Round)
	if !has && at.Round == 0 { // the default of a new run may be another value, as that of the model
		return e, usererr.Errorf("%s: %q scales a value that is set: give a value, or a schedule with a factor, such as "+
			"linear:0.1..0.01@200%s0.5", k.Name, e.Expr, scaleSuffix)
	}
	if !has || s.Ended(at) {
		x := k.Default
		if has {
			x = Settle(k, s.At(at, Position{base.At, base.Epochs, base.Steps}))
		}
		if x = times(x, op, f); k.Integer {
			x = math.Round(x)
		}
		e.Expr = number(x)
		return e, nil
	}
	if f <= 0 {
		return e, usererr.Errorf("%s follows a schedule: scale it by a factor above 0, not by %s", k.Name, text)
	}
	form, from, _ := cutSuffixes(base.Expr)
	if from == "" && s.anchored() && base.At != at.Round {
		if from, ok = began(s, base); !ok {
			return e, usererr.Errorf("%s: its schedule has just begun: scale it after round %d", k.Name, base.First())
		}
	}
	e.Expr = joinSuffixes(form, from, number(times(Factor(base.Expr), op, f)))
	return e, nil
}

// began returns the position at which the schedule of an edit began, in its unit; false if it is not yet known.
func began(s Schedule, e event.Edit) (string, bool) {
	switch s.unit {
	case 'e':
		return number(e.Epochs) + "e", e.At == 0 || e.Steps > 0 || e.Epochs > 0
	case 's':
		return strconv.FormatUint(e.Steps, 10) + "s", e.At == 0 || e.Steps > 0
	}
	return strconv.FormatUint(e.At, 10), true
}

// Continued returns the expression that, set later, continues the schedule of an edit from where it began. It returns
// the expression of the edit if that needs no such position.
func Continued(k optim.Knob, e event.Edit) string {
	s, err := Parse(k, e.Expr)
	form, from, factor := cutSuffixes(e.Expr)
	if err != nil || from != "" || !s.anchored() {
		return e.Expr
	}
	if from, ok := began(s, e); ok {
		return joinSuffixes(form, from, factor)
	}
	return e.Expr
}

// Text returns the expression of an edit for readers: as it was typed, and with its factor as in "cosine:... x 0.8".
func Text(e event.Edit) string {
	if e.Typed != "" {
		return Readable(e.Typed)
	}
	return Readable(e.Expr)
}

// Readable returns an expression for readers: without the position where it began, and with its factor set apart.
func Readable(expr string) string {
	if op, n, ok := relative(expr); ok {
		return map[byte]string{'*': "x ", '/': "/ "}[op] + n
	}
	form, _, factor := cutSuffixes(expr)
	if factor == "" {
		return form
	}
	return form + " x " + factor
}

// Change returns the value of an edit for readers, after the expression old that it replaces; "" for the default of the
// knob. It returns only the factor, or the factors before and after, if nothing else of a schedule changes.
func Change(e event.Edit, old string) string {
	form, _, _ := cutSuffixes(e.Expr)
	was, _, _ := cutSuffixes(old)
	switch {
	case old == "":
		return Text(e)
	case form == was && form != old && Factor(old) != Factor(e.Expr): // scaled again
		return "x " + number(Factor(old)) + "→x " + number(Factor(e.Expr))
	case form == was && form != e.Expr:
		return "x " + number(Factor(e.Expr))
	}
	return Readable(old) + "→" + Text(e)
}

// typed returns what the user typed for the schedule of expr, if an earlier edit of the knob has the same one in the
// units of the log; else "".
func (t *Timeline) typed(knob, expr string) string {
	form, from, factor := cutSuffixes(expr)
	for _, n := range t.entries {
		if n.mine && n.knob.Name == knob && n.edit.Typed != "" {
			if same, _, _ := cutSuffixes(n.edit.Expr); same == form {
				words, _, _ := cutSuffixes(n.edit.Typed)
				return joinSuffixes(words, from, factor)
			}
		}
	}
	return ""
}

// Begin returns an edit that takes effect at a round, with positions relative to it converted to rounds of the run.
func Begin(e event.Edit, round uint64) event.Edit {
	e.At, e.Expr, e.Typed = round, Absolute(e.Expr, round), Absolute(e.Typed, round)
	return e
}
