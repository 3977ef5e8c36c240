package chart

import (
	"math"
	"slices"

	"brood/runtime/view"
	"brood/tui/cell"
)

var sparkRunes = []rune("▁▂▃▄▅▆▇█")

// Spark draws the means of columns in one row. An empty column repeats the one before it, except after an unmeasured
// one (void; nil: none).
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

// Sparkline returns the row of [Spark] as text.
func Sparkline(cols []view.Bucket, a Axis) string {
	g := cell.New(len(cols), 1)
	Spark(g, 0, 0, cols, nil, a, cell.Plain)
	out := make([]rune, len(cols))
	for i := range out {
		out[i] = g.At(i, 0).R
	}
	return string(out)
}

// Bar draws a horizontal bar of share (0 to 1) of width cells, with a resolution of an eighth of a cell. A share above
// 0 is always visible.
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

// Shades is the number of shades without the blank.
const Shades = 4

// ShadeBy returns the shade of x: darker the more of the ascending bounds it reaches, blank for x <= 0.
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

// Shade returns the shade of x between 0 and top: blank for x <= 0.
func Shade(x, top float64) rune {
	if !(x > 0 && top > 0) {
		return shades[0]
	}
	return shades[1+int(math.Round(min(x/top, 1)*float64(len(shades)-2)))]
}

// ShadeRole returns the colour of a shade: the middle of its part of [cell.Gradient].
func ShadeRole(shade rune) cell.Role {
	return cell.Gradient((float64(slices.Index(shades, shade)) - 0.5) / Shades)
}

// TintShades colours the shades in r, such as those of a legend in a text.
func TintShades(g *cell.Grid, r cell.Rect) {
	for y := r.Y; y < r.Y+r.H; y++ {
		for x := r.X; x < r.X+r.W; x++ {
			if c := g.At(x, y).R; slices.Index(shades, c) > 0 {
				g.Set(x, y, c, ShadeRole(c))
			}
		}
	}
}

// kindRoles are the colours of consecutive kinds.
var kindRoles = []cell.Role{cell.Centre, cell.Member, cell.Median, cell.Predicted, cell.Marks, cell.Key}

// KindLetter returns the letter and the colour of a kind: a to z, A to Z, then from the start. Neighbouring kinds have
// different colours.
func KindLetter(kind int) (rune, cell.Role) {
	const names = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	kind = max(kind, 0)
	return rune(names[kind%len(names)]), kindRoles[kind%len(kindRoles)]
}

// DrawKinds draws rows of letters, one column a cell: the highest kind in a column. An empty column repeats the one
// before it.
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
