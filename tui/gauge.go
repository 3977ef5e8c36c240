package tui

import (
	"math"
	"strings"

	"brood/optim"
	"brood/tui/cell"
)

// gauge shows what a knob is that does not move: its place between the bounds, or of a choice what else there is.
func gauge(g *cell.Grid, x, y, w int, k optim.Knob, value float64, role cell.Role, ascii bool) {
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
	at := int(math.Round(place(k, value) * float64(w-1)))
	for i := range w {
		g.Set(x+i, y, line, cell.Border)
	}
	g.Set(x+at, y, dot, role)
}

// decades are how many of them below its upper bound a knob on a logarithmic scale begins, where its lower bound is
// nothing.
const decades = 8

// widest are bounds that a linear gauge can show: a value within wider ones would stand at its beginning whatever it
// is.
const widest = 1e4

// place is where a value lies between a knob's bounds, from 0 to 1.
func place(k optim.Knob, x float64) float64 {
	lo, hi := k.Min, k.Max
	if k.Scale == optim.Log && hi > 0 || lo > 0 && hi/lo > widest {
		if lo <= 0 {
			lo = hi * math.Pow(10, -decades)
		}
		lo, hi, x = math.Log(lo), math.Log(hi), math.Log(max(x, lo))
	}
	if !(hi > lo) || math.IsInf(hi-lo, 0) || math.IsNaN(x) {
		return 0
	}
	return min(max((x-lo)/(hi-lo), 0), 1)
}

// still says whether a knob has one value in all columns.
func still(values []float64) bool {
	for _, x := range values {
		if x != values[0] {
			return false
		}
	}
	return true
}
