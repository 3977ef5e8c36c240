package panel

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"brood/optim"
)

// NextValue returns the next value up or down on the scale of the knob, within its bounds.
func NextValue(k optim.Knob, x float64, up bool) float64 {
	d := 1.0
	if !up {
		d = -1
	}
	next := x
	switch {
	case len(k.Choices) > 0:
		next = x + d
	case k.Scale == optim.Log && k.Integer && x < 10:
		next = x + d
	case k.Scale == optim.Log && x <= 0 && up:
		next = max(k.Min, k.Default/100, 1e-6)
	case k.Scale == optim.Log && (x <= 1e-9 && !up && k.Min <= 0):
		next = k.Min
	case k.Scale == optim.Log:
		for next = NextFactor(x, up); k.Integer && math.Round(next) == x; next = NextFactor(next, up) { // 13, 12.5
		}
	case k.Integer:
		next = x + d
	default:
		w := math.Pow(10, math.Floor(math.Log10((k.Max-k.Min)/99)+1e-9))
		next = math.Round((x+d*w)/w) * w
		if math.Abs(next-x) < w/2 {
			next = x + d*w
		}
		next, _ = strconv.ParseFloat(strconv.FormatFloat(next, 'g', 10, 64), 64)
	}
	if k.Integer {
		next = math.Round(next)
	}
	lo, hi := k.Bounds()
	return min(max(next, lo), hi)
}

// NextFactor returns the next factor up or down, above 0: ten steps to a factor of ten, in round numbers.
func NextFactor(x float64, up bool) float64 {
	steps := [...]float64{1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8}
	p := math.Pow(10, math.Floor(math.Log10(x)+1e-9))
	at := func(i int) float64 {
		e := p
		for ; i < 0; i += 10 {
			e /= 10
		}
		for ; i >= 10; i -= 10 {
			e *= 10
		}
		y, _ := strconv.ParseFloat(strconv.FormatFloat(steps[i]*e, 'g', 4, 64), 64)
		return y
	}
	if up {
		for i := 0; ; i++ {
			if y := at(i); y > x*(1+1e-6) {
				return y
			}
		}
	}
	for i := 10; ; i-- {
		if y := at(i); y < x*(1-1e-6) {
			return y
		}
	}
}

// KnobText formats a value in at most nine characters.
func KnobText(k optim.Knob, x float64) string {
	if len(k.Choices) > 0 {
		return k.Format(x)
	}
	if k.Integer && math.Abs(x) < 1e8 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

// BoundsText formats the bounds and the unit of a knob, or its choices, with a separator before them.
func BoundsText(k optim.Knob) string {
	unit := ""
	if k.Unit != "" {
		unit = " " + k.Unit
	}
	if len(k.Choices) > 0 {
		return ": " + strings.Join(k.Choices, ", ")
	}
	return fmt.Sprintf("  %s–%s%s", KnobText(k, k.Min), KnobText(k, k.Max), unit)
}
