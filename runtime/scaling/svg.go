package scaling

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// colours of curves, by Okabe and Ito (2008). They differ for colour-blind people, on light and dark backgrounds.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999"}

// Sizes of a plot in pixels.
const (
	wide, high       = 340, 260
	left, right      = 56, 12
	top, below       = 34, 40
	legendRow, title = 18, 44
)

// SVG returns the plots of a plan in one picture, two in a row, with a legend below. Lines over links with a rate are
// dashed, and points of runs with late workers are hollow. A bar that exceeds its plot ends in an arrow. The background
// is transparent and text is grey, for light and dark pages.
func SVG(heading string, plots []Plot) []byte {
	var b strings.Builder
	columns := min(2, max(1, len(plots)))
	rows := (len(plots) + columns - 1) / columns
	legend := legendOf(plots)
	w, h := columns*wide, title+rows*high+(len(legend)+columns-1)/columns*legendRow+10
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`font-family="sans-serif" font-size="12" fill="#808080">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, `<text x="%d" y="24" font-size="15">%s</text>`+"\n", left, escaped(heading))
	for i, p := range plots {
		p.svg(&b, float64(i%columns*wide), float64(title+i/columns*high))
	}
	for i, l := range legend {
		x, y := i%columns*wide+left, title+rows*high+i/columns*legendRow+8
		fmt.Fprintf(&b, `<path d="M%d %dh26"%s/><text x="%d" y="%d">%s</text>`+"\n", x, y, l.stroke(), x+34, y+4,
			escaped(l.Name))
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// legendOf returns the lines of all plots, each name once.
func legendOf(plots []Plot) (out []Line) {
	seen := map[string]bool{}
	for _, p := range plots {
		for _, l := range p.Lines {
			if !seen[l.Name] {
				seen[l.Name] = true
				out = append(out, l)
			}
		}
	}
	return out
}

func (l Line) stroke() string {
	dash := ""
	if l.Limited {
		dash = ` stroke-dasharray="6 4"`
	}
	return fmt.Sprintf(` fill="none" stroke="%s" stroke-width="2"%s`, colours[l.Curve%len(colours)], dash)
}

// svg draws one plot with its top left corner at x, y.
func (p Plot) svg(b *strings.Builder, x, y float64) {
	x0, x1, y0, y1 := x+left, x+wide-right, y+high-below, y+top
	at := func(i int) float64 { // the axis is logarithmic
		if len(p.Workers) == 1 {
			return (x0 + x1) / 2
		}
		first, last := math.Log(float64(p.Workers[0])), math.Log(float64(p.Workers[len(p.Workers)-1]))
		return x0 + 8 + (x1-x0-16)*(math.Log(float64(p.Workers[i]))-first)/(last-first)
	}
	up := func(v float64) float64 { return y0 + (y1-y0)*min(p.Share(v), 1) }
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f">%s</text>`+"\n", x0, y1-14, escaped(p.Title+", "+p.Unit))
	for _, t := range p.Ticks() {
		fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1f" stroke="#808080" stroke-opacity=".25"/>`, x0, up(t), x1)
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="end">%.4g</text>`+"\n", x0-6, up(t)+4, t)
	}
	for i, n := range p.Workers {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%d</text>`+"\n", at(i), y0+16, n)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">workers</text>`+"\n", (x0+x1)/2, y0+32)
	for _, l := range p.Lines {
		path, pen := "", "M"
		for i, v := range l.Y {
			if v != v {
				pen = "M"
				continue
			}
			path += fmt.Sprintf("%s%.1f %.1f", pen, at(i), up(v))
			pen = "L"
			colour := colours[l.Curve%len(colours)]
			fill := colour
			if l.Late[i] {
				fill = "none"
			}
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s" stroke="%s"/>`+"\n", at(i), up(v), fill, colour)
			if lo, hi := l.Low[i], l.High[i]; lo == lo && hi == hi {
				tip := ""
				if p.Share(hi) > 1 {
					tip = "m-3 5l3 -5l3 5"
				}
				fmt.Fprintf(b, `<path d="M%.1f %.1fV%.1f%s" fill="none" stroke="%s"/>`+"\n", at(i), up(lo), up(hi), tip, colour)
			}
		}
		fmt.Fprintf(b, `<path d="%s"%s/>`+"\n", path, l.stroke())
	}
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder does not fail
	return b.String()
}
