package timeline

import (
	"fmt"
	"strconv"
	"strings"

	"brood/models/usererr"
	"brood/optim"
	"brood/runtime/event"
)

// AcceptAll validates edits that are requested together and would take effect at a position, and converts them to the
// form and units of a log: see Accept, Count and Timeline.Scale.
func AcceptAll(alg *optim.Algorithm, before, edits []event.Edit, shape optim.Shape, at Position) error {
	if err := Count(alg, before, edits, shape, at); err != nil {
		return err
	}
	for _, e := range edits {
		k, _ := alg.Knob(e.Knob)
		if err := Accept(k, e.Expr, at); err != nil {
			return err
		}
	}
	return nil
}

// Accept validates an expression that a user requests and that would take effect at a position. It fails if Parse
// fails, and for a schedule that has ended at this position, since the knob would jump to its last value.
func Accept(k optim.Knob, expr string, at Position) error {
	s, err := Parse(k, Absolute(expr, at.Round))
	if err != nil {
		return err
	}
	if s.plus {
		return usererr.Errorf("%s: %q: + counts rounds: write +N for N rounds later, or epochs and steps without +",
			k.Name, expr)
	}
	if s.Constant() || !s.Ended(at) {
		return nil
	}
	where, again, why := "", func(t string) string { return "+" + strings.TrimPrefix(t, "+") }, "to count from there"
	switch s.unit {
	case 'e':
		where = fmt.Sprintf(" (epoch %.4g)", at.Epochs)
	case 's':
		where = fmt.Sprintf(" (step %d)", at.Steps)
	}
	if where != "" {
		again, why = func(string) string { return "+N" }, "to count N rounds from there"
	}
	form, _, _ := cutSuffixes(expr)
	instead := positions(form, again)
	if i := strings.LastIndexByte(instead, '@'); i >= 0 && s.form != "warmup" {
		instead = instead[i:]
	}
	return fmt.Errorf("%s: %q has ended by round %d%s: write %s %s", k.Name, expr, at.Round+1, where, instead, why)
}

// end returns the position from which on a schedule has its last value; false for a schedule without positions.
func (s Schedule) end() (float64, bool) {
	switch {
	case s.form == "linear" || s.form == "cosine" || s.form == "warmup":
		return s.until, true
	case len(s.knots) > 0:
		return s.knots[len(s.knots)-1].at, true
	}
	return 0, false
}

// Absolute returns an expression with relative positions, such as +200, converted to rounds of the run; round is the
// first round of the expression. Expressions in a log are absolute.
func Absolute(expr string, round uint64) string {
	return positions(expr, func(t string) string {
		n, err := strconv.ParseFloat(t, 64)
		if err != nil || !strings.HasPrefix(t, "+") {
			return t
		}
		return strconv.FormatFloat(float64(round)+n, 'f', -1, 64)
	})
}

// positions returns an expression with each position replaced by change.
func positions(expr string, change func(string) string) string {
	body, from, factor := cutSuffixes(expr)
	form, rest, _ := strings.Cut(body, ":")
	end := func(out string) string { return joinSuffixes(out, from, factor) }
	switch strings.TrimSpace(form) {
	case "linear", "cosine":
		if values, at, ok := strings.Cut(rest, "@"); ok {
			return end(form + ":" + values + "@" + change(at))
		}
	case "warmup":
		up, down, _ := strings.Cut(rest, "..")
		if peak, at, ok := strings.Cut(up, "@"); ok {
			if last, until, ok := strings.Cut(down, "@"); ok {
				return end(form + ":" + peak + "@" + change(at) + ".." + last + "@" + change(until))
			}
		}
	case "step", "piecewise":
		parts := strings.Split(rest, ",")
		for i, p := range parts {
			if at, v, ok := strings.Cut(p, "="); ok {
				parts[i] = change(at) + "=" + v
			}
		}
		return end(form + ":" + strings.Join(parts, ","))
	}
	return expr
}
