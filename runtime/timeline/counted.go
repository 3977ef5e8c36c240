package timeline

import (
	"strconv"
	"strings"

	"brood/models/arith"
	"brood/models/usererr"
	"brood/optim"
	"brood/runtime/event"
)

// nominal replaces unknown counts, to validate or draw a schedule before its run is known.
var nominal = optim.Counts{Replicas: 1, Cycle: 1, Tensors: 1, Batches: 100}

// Counted returns an expression in the units of a log. It replaces units that depend on the run:
//
//	12c                    a position after 12 cycles: in rounds
//	250r                   a position after 250 steps of each replica: in steps of the population
//	exp:100*0.99/cycle     a factor per cycle: /round, or /3rounds where a cycle takes three
//	exp:100*0.99/tensor    a factor per cycle for each parameter tensor: its power per cycle
//	exp:100*0.99/replica   a factor per step of each replica: its root per step
//	(1-1/(2B))             arithmetic with + - * /, a number by its value; B is mini-batches an epoch
//
// c holds the counts at the start of the schedule: later changes of knobs or population do not change the schedule. It
// fails for invalid arithmetic.
func Counted(k optim.Knob, expr string, c optim.Counts) (string, error) {
	if c == (optim.Counts{}) {
		c = nominal
	}
	expr, err := brackets(k, expr, c)
	if err != nil {
		return expr, err
	}
	body, from, factor := cutSuffixes(expr)
	if form, rest, ok := strings.Cut(body, ":"); ok && strings.TrimSpace(form) == "exp" {
		return joinSuffixes(form+":"+perCount(rest, c), from, factor), nil
	}
	return positions(expr, func(t string) string {
		n, unit := strings.TrimSpace(t), byte(0)
		if n != "" {
			n, unit = n[:len(n)-1], n[len(n)-1]
		}
		x, err := strconv.ParseFloat(n, 64)
		switch plus := strings.HasPrefix(n, "+"); {
		case err != nil:
		case unit == 'c' && plus:
			return "+" + number(x*float64(c.Cycle))
		case unit == 'c':
			return number(x * float64(c.Cycle))
		case unit == 'r' && !plus:
			return number(x*float64(c.Replicas)) + "s"
		}
		return t
	}), nil
}

// Count converts edits that take effect together at a position to the form and units of a log, in place: see Scale and
// Counted. It sets Typed where the units change. The units depend on the knobs at this position, which the edits in
// before and the edits themselves determine. shape has population, layout and data; without a population Count uses
// nominal units, which only validates the expressions.
func Count(alg *optim.Algorithm, before, edits []event.Edit, shape optim.Shape, at Position) error {
	line, err := New(alg, before)
	if err != nil {
		return err
	}
	for i, e := range edits {
		if _, ok := alg.Knob(e.Knob); ok {
			if e, err = line.Scale(e, at); err != nil {
				return err
			}
			edits[i] = e
			if err := line.Add(Begin(e, at.Round)); err != nil {
				return err
			}
		}
	}
	var c optim.Counts
	if len(shape.Roster.Members) > 0 {
		shape.K = line.Values(at)
		c = alg.Counts(shape)
	}
	for i := range edits {
		e := &edits[i]
		k, _ := alg.Knob(e.Knob)
		words := e.Expr
		if e.Expr, err = Counted(k, words, c); err != nil {
			return err
		}
		if e.Typed = line.typed(e.Knob, e.Expr); words != e.Expr {
			e.Typed = words
		}
	}
	return nil
}

// perCount converts the part of an expression after "exp:" to a factor per round or step.
func perCount(rest string, c optim.Counts) string {
	head, per, ok := strings.Cut(rest, "/")
	per, last, limited := strings.Cut(per, "..")
	if limited {
		last = ".." + last
	}
	rounds := "/round"
	if c.Cycle > 1 {
		rounds = "/" + strconv.Itoa(c.Cycle) + "rounds"
	}
	switch {
	case !ok:
	case per == "cycle":
		return head + rounds + last
	case per == "tensor":
		return power(head, float64(c.Tensors)) + rounds + last
	case per == "replica":
		return power(head, 1/float64(c.Replicas)) + "/step" + last
	}
	return rest
}

// power returns START*FACTOR with the factor raised to a power.
func power(head string, to float64) string {
	start, f, _ := strings.Cut(head, "*")
	if x, err := strconv.ParseFloat(f, 64); err == nil && x > 0 {
		return start + "*" + number(arith.Pow(x, to))
	}
	return head
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// brackets returns an expression with each pair of brackets replaced by the value of its content.
func brackets(k optim.Knob, expr string, c optim.Counts) (string, error) {
	for {
		from := strings.IndexByte(expr, '(')
		if from < 0 {
			return expr, nil
		}
		a := arithmetic{text: expr[from:], b: float64(c.Batches)}
		x := a.factor()
		switch {
		case a.usesB && c.Batches == 0:
			return expr, usererr.Errorf("%s: %q: B is the number of mini-batches per epoch, which this run does not "+
				"have: write a number",
				k.Name, expr)
		case a.bad || x != x || x-x != 0:
			return expr, usererr.Errorf("%s: %q is not a schedule: in brackets write numbers and B with + - * /, as "+
				"in (1-1/(2B))",
				k.Name, expr)
		}
		expr = expr[:from] + number(x) + a.text
	}
}

// arithmetic evaluates sums of products at the start of a text.
type arithmetic struct {
	text  string  // unread text
	b     float64 // value of B
	usesB bool
	bad   bool // the text is not a valid expression
	depth int
}

func (a *arithmetic) sum() float64 {
	x := a.product()
	for a.at("+-") {
		if a.take() == '+' {
			x += a.product()
		} else {
			x -= a.product()
		}
	}
	return x
}

// product evaluates a product. The sign * may be omitted before B and brackets, as in 2B.
func (a *arithmetic) product() float64 {
	x := a.factor()
	for !a.bad {
		switch {
		case a.at("*"):
			a.take()
			x *= a.factor()
		case a.at("/"):
			a.take()
			x /= a.factor()
		case a.at("B("):
			x *= a.factor()
		default:
			return x
		}
	}
	return x
}

func (a *arithmetic) factor() float64 {
	if a.depth++; a.depth > 200 {
		a.bad = true
	}
	defer func() { a.depth-- }()
	switch {
	case a.bad:
		return 0
	case a.at("-"):
		a.take()
		return -a.factor()
	case a.at("B"):
		a.take()
		a.usesB = true
		return a.b
	case a.at("("):
		a.take()
		x := a.sum()
		if a.bad = a.bad || !a.at(")"); !a.bad {
			a.take()
		}
		return x
	}
	end := 0
	for end < len(a.text) && strings.IndexByte("0123456789.", a.text[end]) >= 0 {
		end++
	}
	if end > 0 && end+1 < len(a.text) && a.text[end] == 'e' { // 1e-3
		more := end + 1
		if a.text[more] == '-' {
			more++
		}
		for more < len(a.text) && a.text[more] >= '0' && a.text[more] <= '9' {
			more++
			end = more
		}
	}
	x, err := strconv.ParseFloat(a.text[:end], 64)
	a.bad = a.bad || err != nil
	a.text = a.text[end:]
	return x
}

// at skips spaces and reports whether the next character is one of some.
func (a *arithmetic) at(some string) bool {
	a.text = strings.TrimLeft(a.text, " ")
	return a.text != "" && strings.IndexByte(some, a.text[0]) >= 0
}

func (a *arithmetic) take() byte {
	c := a.text[0]
	a.text = a.text[1:]
	return c
}
