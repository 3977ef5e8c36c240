package panel

import (
	"math"
	"strings"

	"brood/optim"
	"brood/tui/cell"
)

// DrawGauge shows what a knob is that does not move: its place between the bounds, or of a choice what else there is.
func DrawGauge(g *cell.Grid, x, y, w int, k optim.Knob, value float64, role cell.Role, ascii bool) {
	if len(k.Choices) > 0 {
		var others []string
		for i, c := range k.Choices {
			if i != int(value) {
				others = append(others, c)
			}
		}
		if len(others) > 0 {
			g.Text(x, y, w, cell.Faint, "or "+strings.Join(others, ", "))
		}
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

// gaugeDecades are how many of them below its upper bound a knob on a logarithmic scale begins, where its lower bound is
// nothing; whole numbers begin at 1.
const gaugeDecades = 8

// maxLinearRatio are bounds that a linear gauge can show: a value within wider ones would stand at one place whatever it is.
const maxLinearRatio = 1e4

// GaugePosition is where a value lies between a knob's bounds, from 0 to 1. Within wide ones it goes by decades, and where they
// have both signs each has a half.
func GaugePosition(k optim.Knob, x float64) float64 {
	lo, hi := k.Min, k.Max
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

func isWide(lo, hi float64) bool {
	switch {
	case lo > 0:
		return hi/lo > maxLinearRatio
	case hi < 0:
		return lo/hi > maxLinearRatio
	}
	return hi-lo > maxLinearRatio
}

// logPosition is where a value lies between bounds from 0 on, from 0 to 1, by the logarithm.
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

// IsConstant says whether a knob has one value in all columns.
func IsConstant(values []float64) bool {
	for _, x := range values {
		if x != values[0] {
			return false
		}
	}
	return true
}
