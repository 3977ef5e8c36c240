package timeline

import (
	"math"
	"strconv"
	"strings"
)

// Stretched returns an expression, as a user typed it, for a run that is longer by a factor: all of its positions are
// multiplied, and rounded to whole numbers where they are no epochs. It does not change the rates of exp.
func Stretched(expr string, factor float64) string {
	return positions(expr, func(t string) string {
		n := strings.TrimRight(strings.TrimSpace(t), "ecrs")
		unit := strings.TrimSpace(t)[len(n):]
		x, err := strconv.ParseFloat(n, 64)
		switch {
		case err != nil:
			return t
		case unit != "e":
			x = math.Round(x * factor)
		default:
			x *= factor
		}
		if strings.HasPrefix(n, "+") {
			return "+" + number(x) + unit
		}
		return number(x) + unit
	})
}
