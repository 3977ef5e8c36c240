package chart

import (
	"math"

	"brood/runtime/view"
	"brood/tui/cell"
)

var sparkRunes = []rune("▁▂▃▄▅▆▇█")

// Spark draws one row of means, from the axis' low to its high; a column without values repeats the one before it, but
// for those in which nobody measured (nil: none).
func Spark(g *cell.Grid, x, y int, cols []view.Bucket, void []bool, a Axis, role cell.Role) {
	level := -1
	for i, b := range cols {
		if i < len(void) && void[i] {
			level = -1
		}
		if !b.Empty() {
			level = len(sparkRunes) - 1 - a.Dot(b.Mean(), len(sparkRunes))
		}
		if level >= 0 {
			g.Set(x+i, y, sparkRunes[level], role)
		}
	}
}

// Sparkline is a row as [Spark] draws it.
func Sparkline(cols []view.Bucket, a Axis) string {
	g := cell.New(len(cols), 1)
	Spark(g, 0, 0, cols, nil, a, cell.Plain)
	out := make([]rune, len(cols))
	for i := range out {
		out[i] = g.At(i, 0).R
	}
	return string(out)
}

// Bar draws a horizontal bar of share (0..1) of width cells to an eighth of a cell; what is above nothing shows.
func Bar(g *cell.Grid, x, y, width int, share float64, role cell.Role) {
	part := []rune(" ▏▎▍▌▋▊▉")
	n := int(math.Round(min(max(share, 0), 1) * float64(width) * 8))
	if n == 0 && share > 0 {
		n = 1
	}
	for i := range width {
		switch left := n - 8*i; {
		case left >= 8:
			g.Set(x+i, y, '█', role)
		case left > 0:
			g.Set(x+i, y, part[left], role)
		}
	}
}

var shades = []rune(" ░▒▓█")

// Shades there are besides the blank.
const Shades = 4

// ShadeBy is the darker the more of the ascending bounds x reaches: a blank for nothing.
func ShadeBy(x float64, bounds [Shades - 1]float64) rune {
	if !(x > 0) {
		return shades[0]
	}
	n := 1
	for _, b := range bounds {
		if x >= b {
			n++
		}
	}
	return shades[n]
}

// Shade is x from nothing to `top`: a blank for nothing, then ever darker.
func Shade(x, top float64) rune {
	if !(x > 0 && top > 0) {
		return shades[0]
	}
	return shades[1+int(math.Round(min(x/top, 1)*float64(len(shades)-2)))]
}

// kindRoles are the colours of kinds that lie beside each other.
var kindRoles = []cell.Role{cell.Centre, cell.Member, cell.Median, cell.Predicted, cell.Marks, cell.Key}

// KindLetter names a kind: a to z and A to Z, again for those beyond, in a colour that also tells it from its neighbours.
func KindLetter(kind int) (rune, cell.Role) {
	const names = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	kind = max(kind, 0)
	return rune(names[kind%len(names)]), kindRoles[kind%len(kindRoles)]
}

// DrawKinds draws rows of letters, one column a cell: of several kinds in a column the highest. A column without values
// shows what was before.
func DrawKinds(g *cell.Grid, x, y int, rows [][]view.Bucket) {
	for i, r := range rows {
		kind := -1
		for c, b := range r {
			if !b.Empty() {
				kind = int(b.Max)
			}
			if kind >= 0 {
				letter, role := KindLetter(kind)
				g.Set(x+c, y+i, letter, role)
			}
		}
	}
}
