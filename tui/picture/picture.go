// Package picture writes a grid of cells as SVG or PNG, for papers, issues and pages. It draws braille dots, lines,
// blocks and marks as shapes, so that a picture looks the same on every machine; an SVG takes letters from the
// monospace font of the viewer, a PNG has those of Go Mono.
package picture

import (
	"image/color"
	"io"

	"brood/tui/cell"
)

// Forms lists the formats that Write knows, which are also the extensions of their files.
func Forms() []string { return []string{"svg", "png"} }

// Size of a cell in units of a picture: pixels of an SVG at its natural size. A PNG has pngScale pixels to a unit.
const (
	cellW, cellH = 9, 18
	fontSize     = 15.0
	baseline     = 13.5 // below the top of a cell
	pngScale     = 2
)

// Write writes the grid in one of Forms, in the colours of the theme for a dark or a light background.
func Write(out io.Writer, g *cell.Grid, form string, dark bool) error {
	var c canvas
	switch form {
	case "png":
		p, err := newPNG(g.W, g.H)
		if err != nil {
			return err
		}
		c = p
	default:
		c = &svg{w: g.W * cellW, h: g.H * cellH}
	}
	ink, ground := color.NRGBA{0x2b, 0x2f, 0x3f, 0xff}, color.NRGBA{0xff, 0xff, 0xff, 0xff}
	if dark {
		ink, ground = color.NRGBA{0xd5, 0xd9, 0xe6, 0xff}, color.NRGBA{0x10, 0x13, 0x1c, 0xff}
	}
	palette := cell.Palette(dark)
	for i := range palette {
		if palette[i].Fore == nil {
			palette[i].Fore = ink
		}
	}
	draw(c, g, palette, ground)
	return c.end(out)
}

// canvas is what a grid is drawn on. Coordinates are in units, x to the right and y down.
type canvas interface {
	rect(x, y, w, h float64, c color.Color)
	polygon(points []point, c color.Color)
	stroke(points []point, width float64, c color.Color)
	// text draws s from cell x, y on. Each rune takes this many cells.
	text(x, y int, s string, cells int, bold bool, c color.Color)
	end(out io.Writer) error
}

type point struct{ x, y float64 }

func draw(c canvas, g *cell.Grid, palette []cell.Look, ground color.Color) {
	c.rect(0, 0, float64(g.W*cellW), float64(g.H*cellH), ground)
	for y := range g.H {
		for x := 0; x < g.W; {
			role := g.At(x, y).Role
			end := x + 1
			for end < g.W && g.At(end, y).Role == role {
				end++
			}
			drawRun(c, g, x, end, y, palette[role])
			x = end
		}
	}
}

// drawRun draws the cells from x to end of a row, which have one look.
func drawRun(c canvas, g *cell.Grid, x, end, y int, look cell.Look) {
	if look.Back != nil {
		c.rect(float64(x*cellW), float64(y*cellH), float64((end-x)*cellW), cellH, look.Back)
	}
	word, from := []rune(nil), x
	flush := func() {
		if len(word) > 0 {
			c.text(from, y, string(word), 1, look.Bold, look.Fore)
			word = nil
		}
	}
	for ; x < end; x++ {
		r := g.At(x, y).R
		if g.At(x+1, y).R == 0 { // a wide character
			flush()
			c.text(x, y, string(r), 2, look.Bold, look.Fore)
			continue
		}
		if r == ' ' || r == 0 || shape(c, r, float64(x*cellW), float64(y*cellH), look.Fore) {
			flush()
			continue
		}
		if word == nil {
			from = x
		}
		word = append(word, r)
	}
	flush()
}
