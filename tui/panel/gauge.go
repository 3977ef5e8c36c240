package panel

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"brood/optim"
	"brood/tui/cell"
	"brood/tui/textfmt"
)

// DrawGauge draws a constant knob: its position between the bounds, or the other choices of a choice.
func DrawGauge(g *cell.Grid, x, y, w int, k optim.Knob, value float64, role cell.Role, ascii bool) {
	if len(k.Choices) > 0 {
		var others []string
		for i, c := range k.Choices {
			if i != int(value) {
				others = append(others, c)
			}
		}
		g.Text(x, y, w, cell.Faint, othersText(others, w))
		return
	}
	line, dot := '─', '●'
	if ascii {
		line, dot = '-', 'o'
	}
	at := int(math.Round(GaugePosition(k, value) * float64(w-1)))
	for i := range w {
		g.Set(x+i, y, line, cell.Border)
	}
	g.Set(x+at, y, dot, role)
}

// othersText lists other choices in w cells: those that fit, and the number of the rest.
func othersText(others []string, w int) string {
	for n := len(others); n > 0; n-- {
		text := "or " + strings.Join(others[:n], ", ")
		if more := len(others) - n; more > 0 {
			text += fmt.Sprintf(", %d more", more)
		}
		if cell.Width(text) <= w {
			return text
		}
	}
	if len(others) == 0 {
		return ""
	}
	return "or " + textfmt.Count(len(others), "other")
}

// gaugeDecades is the number of decades that a logarithmic gauge shows below the upper bound, if the lower bound is 0.
// Integers start at 1.
const gaugeDecades = 8

// maxLinearRatio is the largest ratio of the bounds, or range with a bound of 0, of a linear gauge. With wider bounds
// most values would be at one end.
const maxLinearRatio = 1e4

// GaugePosition returns the position of x between the bounds of a knob, from 0 to 1. It is logarithmic for a
// logarithmic knob and for wide bounds. If the bounds have different signs, each sign gets one half.
func GaugePosition(k optim.Knob, x float64) float64 {
	lo, hi := k.Bounds()
	if !(hi > lo) || math.IsInf(hi-lo, 0) || math.IsNaN(x) {
		return 0
	}
	x = min(max(x, lo), hi)
	switch {
	case k.Scale != optim.Log && !isWide(lo, hi):
		return (x - lo) / (hi - lo)
	case lo >= 0:
		return logPosition(k, x, lo, hi)
	case hi <= 0:
		return 1 - logPosition(k, -x, -hi, -lo)
	case x < 0:
		return (1 - logPosition(k, -x, 0, -lo)) / 2
	}
	return (1 + logPosition(k, x, 0, hi)) / 2
}

// isWide reports whether bounds are too wide for a linear gauge.
func isWide(lo, hi float64) bool {
	switch {
	case lo > 0:
		return hi/lo > maxLinearRatio
	case hi < 0:
		return lo/hi > maxLinearRatio
	}
	return hi-lo > maxLinearRatio
}

// logPosition returns the logarithmic position of x between bounds >= 0, from 0 to 1.
func logPosition(k optim.Knob, x, lo, hi float64) float64 {
	switch {
	case lo > 0:
	case k.Integer && hi > 1:
		lo = 1
	default:
		lo = hi * math.Pow(10, -gaugeDecades)
	}
	return math.Log(max(x, lo)/lo) / math.Log(hi/lo)
}

// IsConstant reports whether all values are equal.
func IsConstant(values []float64) bool {
	return !slices.ContainsFunc(values, func(x float64) bool { return x != values[0] })
}
