package cli

import (
	"fmt"
	"math"
	"strings"

	"brood/runtime/scaling"
	"brood/tui/cell"
	"brood/tui/chart"
)

// Sizes of a plot in the terminal, in cells; plotLeft is the width of the axis labels.
const (
	plotWidth  = 78
	plotHeight = 12
	plotLeft   = 8
)

// drawPlot draws the lines of a plot over the fleet size on a logarithmic axis and returns its rows, with a legend.
// width and height are in cells; height excludes the title, the axis and the legend. A point is the letter of its line,
// in lower case if workers missed their pace. Points of several lines in one cell are a *.
func drawPlot(p scaling.Plot, width, height int) []string {
	g := cell.New(width, height+3)
	g.Text(0, 0, width, cell.Plain, p.Title+", "+p.Unit)
	in := cell.Rect{X: plotLeft, Y: 1, W: width - plotLeft, H: height}
	row := func(y float64) int { return in.Y + in.H - 1 - int(math.Round(p.Share(y)*float64(in.H-1))) }
	for _, y := range p.Ticks() {
		g.Right(plotLeft-1, row(y), plotLeft-1, cell.Faint, chart.Label(y))
		g.Set(plotLeft-1, row(y), '┤', cell.Border)
	}
	// columns of the fleet sizes, on a logarithmic axis
	at := make([]int, len(p.Workers))
	first, last := math.Log(float64(p.Workers[0])), math.Log(float64(p.Workers[len(p.Workers)-1]))
	for i, n := range p.Workers {
		x := 0.5
		if last > first {
			x = (math.Log(float64(n)) - first) / (last - first)
		}
		at[i] = 1 + int(math.Round(x*float64(in.W-3)))
		g.Text(in.X+at[i], in.Y+in.H, 4, cell.Faint, fmt.Sprint(n))
	}
	layers := make([]chart.Layer, len(p.Lines))
	for i, l := range p.Lines {
		layers[i] = chart.Layer{Columns: chart.Of(interpolate(p, l, at, 2*in.W)), Style: chart.Thin, Glyph: '.'}
		if l.Limited {
			layers[i].Style = chart.Dots
		}
	}
	chart.Curve(g, in, chart.Span(false, 0, 1), false, layers...)
	seen, met := map[[2]int]bool{}, false
	for i, l := range p.Lines {
		for j, y := range l.Y {
			if y != y {
				continue
			}
			x, y := in.X+at[j], row(y)
			letter := rune('A' + i%26)
			if l.Late[j] {
				letter = rune('a' + i%26)
			}
			if seen[[2]int{x, y}] {
				letter, met = '*', true
			}
			seen[[2]int{x, y}] = true
			g.Set(x, y, letter, cell.Focus)
		}
	}
	lines := strings.Split(cell.Plainly(false).String(g), "\n")
	lines[in.Y+in.H+1] = strings.Repeat(" ", plotLeft) + "workers"
	for i, l := range p.Lines {
		lines = append(lines, fmt.Sprintf("%*s%c  %s", plotLeft, "", rune('A'+i%26), l.Name))
	}
	if met {
		lines = append(lines, fmt.Sprintf("%*s*  several lines", plotLeft, ""))
	}
	return lines
}

// interpolate returns a line in n half-columns, as shares of the range: linear between points, NaN outside. at holds
// the columns of the points.
func interpolate(p scaling.Plot, l scaling.Line, at []int, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.NaN()
	}
	for i := 1; i < len(at); i++ {
		a, b := p.Share(l.Y[i-1]), p.Share(l.Y[i])
		for x := 2 * at[i-1]; x <= 2*at[i] && a == a && b == b; x++ {
			out[x] = a + (b-a)*float64(x-2*at[i-1])/float64(2*(at[i]-at[i-1]))
		}
	}
	return out
}
