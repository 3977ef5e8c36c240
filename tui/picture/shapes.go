package picture

import (
	"image/color"
	"math"
)

// Widths of lines in units.
const (
	thin  = 1.0
	heavy = 2.2
)

// sides of a cell that a line character connects to its middle.
type sides struct{ left, right, up, down bool }

var lines = map[rune]sides{
	'─': {left: true, right: true}, '│': {up: true, down: true}, '┤': {left: true, up: true, down: true},
	'├': {right: true, up: true, down: true}, '┬': {left: true, right: true, down: true},
	'┴': {left: true, right: true, up: true}, '┼': {true, true, true, true},
}

// corners of boxes: the sides that an arc connects.
var corners = map[rune]sides{
	'╭': {right: true, down: true}, '╮': {left: true, down: true}, '╰': {right: true, up: true},
	'╯': {left: true, up: true},
}

// marks are polygons in a cell, in shares of its width and height.
var marks = map[rune][]point{
	'▸': {{.2, .28}, {.85, .5}, {.2, .72}}, '▶': {{.1, .22}, {.95, .5}, {.1, .78}},
	'◂': {{.8, .28}, {.15, .5}, {.8, .72}}, '▲': {{.5, .25}, {.95, .75}, {.05, .75}},
	'▼': {{.05, .25}, {.95, .25}, {.5, .75}}, '◆': {{.5, .26}, {.95, .5}, {.5, .74}, {.05, .5}},
	'■': {{.15, .32}, {.85, .32}, {.85, .68}, {.15, .68}},
}

// strokes are open lines in a cell, in the same shares.
var strokes = map[rune][][]point{
	'✓': {{{.1, .55}, {.4, .72}, {.9, .28}}}, '✗': {{{.15, .3}, {.85, .7}}, {{.85, .3}, {.15, .7}}},
	'‖': {{{.32, .28}, {.32, .72}}, {{.68, .28}, {.68, .72}}},
	'◇': {{{.5, .26}, {.95, .5}, {.5, .74}, {.05, .5}, {.5, .26}}},
	'□': {{{.15, .32}, {.85, .32}, {.85, .68}, {.15, .68}, {.15, .32}}},
	'→': {{{.05, .5}, {.95, .5}}, {{.6, .36}, {.95, .5}, {.6, .64}}},
	'←': {{{.95, .5}, {.05, .5}}, {{.4, .36}, {.05, .5}, {.4, .64}}},
	'↑': {{{.5, .8}, {.5, .2}}, {{.2, .36}, {.5, .2}, {.8, .36}}},
	'↓': {{{.5, .2}, {.5, .8}}, {{.2, .64}, {.5, .8}, {.8, .64}}},
}

// shade is the share of ink of the shades.
var shade = map[rune]float64{'░': .25, '▒': .5, '▓': .75}

// shape draws r in the cell at x, y and reports whether it is drawn as a shape and not as a letter.
func shape(c canvas, r rune, x, y float64, ink color.Color) bool {
	switch {
	case r >= 0x2800 && r < 0x2900:
		braille(c, r, x, y, ink)
	case r >= '▁' && r <= '█': // eighths from the bottom
		h := float64(r-'▁'+1) / 8 * cellH
		c.rect(x, y+cellH-h, cellW, h, ink)
	case r > '█' && r <= '▏': // eighths from the left, falling
		c.rect(x, y, float64('▏'-r+1)/8*cellW, cellH, ink)
	case r == '▐':
		c.rect(x+cellW/2.0, y, cellW/2.0, cellH, ink)
	case r == '▕':
		c.rect(x+cellW*7/8.0, y, cellW/8.0, cellH, ink)
	case shade[r] > 0:
		c.rect(x, y, cellW, cellH, faded(ink, shade[r]))
	case r == '●' || r == '○':
		circle(c, x+cellW/2.0, y+cellH/2.0, r == '●', ink)
	case r == '·' || r == '∙':
		c.rect(x+cellW/2.0-.8, y+cellH/2.0-.8, 1.6, 1.6, ink)
	case r == '━':
		c.rect(x, y+cellH/2.0-heavy/2, cellW, heavy, ink)
	case r == '╌':
		c.rect(x+.8, y+cellH/2.0-thin/2, cellW*.35, thin, ink)
		c.rect(x+.8+cellW*.5, y+cellH/2.0-thin/2, cellW*.35, thin, ink)
	case r == '┆':
		for i := range 3 {
			c.rect(x+cellW/2.0-thin/2, y+1+float64(i)*6, thin, 3.5, ink)
		}
	case lines[r] != sides{}:
		cross(c, lines[r], x, y, ink)
	case corners[r] != sides{}:
		corner(c, corners[r], x, y, ink)
	case marks[r] != nil:
		c.polygon(within(marks[r], x, y), ink)
	case strokes[r] != nil:
		for _, s := range strokes[r] {
			c.stroke(within(s, x, y), 1.3, ink)
		}
	default:
		return false
	}
	return true
}

// braille draws the dots of a pattern: bits 0 to 2 and 6 are the left column from the top, 3 to 5 and 7 the right one.
func braille(c canvas, r rune, x, y float64, ink color.Color) {
	const size = 3.2
	at := [8][2]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {0, 3}, {1, 3}}
	for bit, p := range at {
		if r&(1<<bit) != 0 {
			cx, cy := x+cellW*(float64(p[0])+.5)/2, y+cellH*(float64(p[1])+.5)/4
			c.rect(cx-size/2, cy-size/2, size, size, ink)
		}
	}
}

func cross(c canvas, s sides, x, y float64, ink color.Color) {
	mx, my := x+cellW/2.0, y+cellH/2.0
	left, right, top, bottom := mx, mx, my, my
	if s.left {
		left = x
	}
	if s.right {
		right = x + cellW
	}
	if s.up {
		top = y
	}
	if s.down {
		bottom = y + cellH
	}
	if right > left {
		c.rect(left, my-thin/2, right-left, thin, ink)
	}
	if bottom > top {
		c.rect(mx-thin/2, top, thin, bottom-top, ink)
	}
}

// corner draws a quarter of a circle between two sides.
func corner(c canvas, s sides, x, y float64, ink color.Color) {
	mx, my := x+cellW/2.0, y+cellH/2.0
	const radius = cellW / 2.0
	dx, dy := 1.0, 1.0
	if s.left {
		dx = -1
	}
	if s.up {
		dy = -1
	}
	points := []point{{mx, my + dy*cellH/2}}
	for i := 0; i <= 6; i++ {
		a := float64(i) / 6 * math.Pi / 2
		points = append(points, point{mx + dx*radius*(1-math.Cos(a)), my + dy*radius*(1-math.Sin(a))})
	}
	c.stroke(points, thin, ink)
}

func circle(c canvas, mx, my float64, filled bool, ink color.Color) {
	const radius, n = 3.2, 20
	points := make([]point, n+1)
	for i := range points {
		a := 2 * math.Pi * float64(i) / n
		points[i] = point{mx + radius*math.Cos(a), my + radius*math.Sin(a)}
	}
	if filled {
		c.polygon(points[:n], ink)
		return
	}
	c.stroke(points, 1.2, ink)
}

func within(shares []point, x, y float64) []point {
	out := make([]point, len(shares))
	for i, p := range shares {
		out[i] = point{x + p.x*cellW, y + p.y*cellH}
	}
	return out
}

func faded(c color.Color, share float64) color.Color {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	n.A = uint8(float64(n.A)*share + .5)
	return n
}
