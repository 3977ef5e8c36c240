package sweep

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// Axis is a setting that a sweep varies.
type Axis struct {
	Name    string
	Values  []string
	Whole   bool    // values that are drawn from an interval are whole numbers
	between between // if it is not zero, values are drawn from it, see [Draw]
}

// Point is a point of a grid: a value for each axis, in the order of the axes.
type Point []string

// Bounds of a grid, to reject typing errors.
const (
	maxValues = 1000
	maxPoints = 100_000
)

// ParseAxes parses words of the form NAME=VALUES:
//
//	eta=0.01,0.1      values
//	members=1..8      whole numbers
//	members=1..64*2   each twice the one before
//	eta=step:0.1,9=0.01   one schedule
//	eta=log:0.001..0.1    values to draw, uniform in the logarithm; or uniform:0..1
//
// A repeated name adds values to its axis. It does not check whether a setting accepts the values.
func ParseAxes(words []string) ([]Axis, error) {
	var out []Axis
	for _, w := range words {
		name, text, ok := strings.Cut(w, "=")
		if !ok || name == "" || text == "" {
			return nil, usererr.Errorf("%q: write NAME=VALUES, such as eta=0.01,0.1 or members=1..8", w)
		}
		i := slices.IndexFunc(out, func(a Axis) bool { return a.Name == name })
		if b, drawn, err := parseBetween(text); drawn {
			if err != nil {
				return nil, usererr.Errorf("%s: %w", name, err)
			}
			if i >= 0 {
				return nil, usererr.Errorf("%s: an interval is the only value of a setting", w)
			}
			out = append(out, Axis{Name: name, between: b})
			continue
		}
		if i >= 0 && out[i].Drawn() {
			return nil, usererr.Errorf("%s: an interval is the only value of a setting", name)
		}
		values, err := values(text)
		if err != nil {
			return nil, usererr.Errorf("%s: %w", w, err)
		}
		if i < 0 {
			i, out = len(out), append(out, Axis{Name: name})
		}
		for _, v := range values {
			if slices.Contains(out[i].Values, v) {
				return nil, usererr.Errorf("%s: %s is given twice", name, v)
			}
			out[i].Values = append(out[i].Values, v)
		}
	}
	n := 1
	for _, a := range out {
		if n *= max(1, len(a.Values)); n > maxPoints || len(a.Values) > maxValues {
			return nil, usererr.Errorf("the grid has more than %d points: give fewer values", maxPoints)
		}
	}
	return out, nil
}

func values(text string) ([]string, error) {
	if strings.Contains(text, ":") { // a schedule, which may contain commas
		return []string{text}, nil
	}
	var out []string
	for _, v := range strings.Split(text, ",") {
		if v = strings.TrimSpace(v); v == "" {
			return nil, usererr.Errorf("a value is missing: write VALUE,VALUE")
		}
		if from, to, ok := strings.Cut(v, ".."); ok {
			r, err := interval(from, to)
			if err != nil {
				return nil, err
			}
			out = append(out, r...)
			continue
		}
		out = append(out, v)
	}
	return out, nil
}

// number parses a finite number.
func number(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsInf(x, 0) || math.IsNaN(x)) {
		err = strconv.ErrRange
	}
	return x, err
}

// interval returns the values of FROM..TO in steps of one, or of FROM..TO*FACTOR.
func interval(from, to string) (out []string, err error) {
	to, by, geometric := strings.Cut(to, "*")
	number := func(s string) (x float64) {
		x, e := number(s)
		if e != nil {
			err = usererr.Errorf("%q is not a number: write FROM..TO or FROM..TO*FACTOR, such as 1..8 or "+
				"0.001..1*10", s)
		}
		return x
	}
	lo, hi, factor := number(from), number(to), 1.0
	if geometric {
		factor = number(by)
	}
	switch {
	case err != nil:
		return nil, err
	case hi < lo:
		return nil, usererr.Errorf("%s..%s descends: write the smaller number first", from, to)
	case geometric && !(factor > 1 && lo > 0):
		return nil, usererr.Errorf("%s..%s*%s does not grow: give a start above 0 and a factor above 1", from, to, by)
	case !geometric && (lo != math.Trunc(lo) || hi != math.Trunc(hi)):
		return nil, usererr.Errorf("%s..%s are not whole numbers: list the values, or write a factor as in 0.001..1*10",
			from, to)
	}
	for x, i := lo, 0; x <= hi*(1+1e-12) || x <= hi; i++ {
		if i == maxValues {
			return nil, usererr.Errorf("%s..%s has more than %d values", from, to, maxValues)
		}
		out = append(out, strconv.FormatFloat(x, 'g', 12, 64))
		if x++; geometric {
			x = lo * math.Pow(factor, float64(i+1))
		}
	}
	return out, nil
}

// Points returns all points of a grid; the last axis varies fastest. Without axes it returns one empty point.
func Points(axes []Axis) []Point {
	out := []Point{{}}
	for _, a := range axes {
		var next []Point
		for _, p := range out {
			for _, v := range a.Values {
				next = append(next, append(slices.Clip(p), v))
			}
		}
		out = next
	}
	return out
}
