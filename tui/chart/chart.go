// Package chart draws curves, bands, sparklines, bars and heat maps of a view's buckets into a grid of cells. Each dot
// column of a curve spans the exact minimum and maximum of its bucket, so that a spike is visible at any width. The
// cost depends on the number of columns, not of points.
package chart

import (
	"slices"

	"brood/runtime/view"
	"brood/tui/cell"
)

// Layer is a curve or band. A later layer covers earlier ones, since a cell has one colour.
type Layer struct {
	Columns []view.Bucket // two for each cell of the plot, see [Plot]
	Void    []bool        // columns without a measurement, which no line crosses; nil: none
	Role    cell.Role
	Style   Style
	Glyph   rune // character of the layer in ASCII; 0: *
	Name    rune // character that [Draw] writes on the curve near its right end; 0: none
}

// Style is the way in which the columns of a layer become dots.
type Style uint8

const (
	Line  Style = iota // from minimum to maximum, connected to the previous column
	Thick              // like Line, at least two dots wide in both directions
	Thin               // the means, connected
	Dots               // the means, dashed
	Fill               // from minimum to maximum, stippled, not connected
)

// Mark is a vertical line at a round, with a text below the x axis.
type Mark struct {
	Round uint64
	Text  string
	More  string // follows the text where there is space
	Role  cell.Role
}

// Chart is the content of a chart. The rounds [From, To) span the plot.
type Chart struct {
	Layers   []Layer
	Density  [][]view.Bucket // many curves drawn as shades behind the layers, one column for each cell of the plot
	Marks    []Mark
	From, To uint64
	Axis     Axis
	Now      *uint64 // round of the cursor line; nil draws none
	ASCII    bool
	Hint     string // appended to the note on values outside of the axis
	// Label formats a value n of the x axis so that it differs from values at least a step away; nil: rounds
	Label func(n, step uint64) string
	// Value formats a value of the y axis in at most six characters; nil: the function Label
	Value func(float64) string
}

const gutter = 8 // columns of the y labels and the axis line

// Plot returns the area of r for dots. A layer has 2*Plot(r).W columns.
func Plot(r cell.Rect) cell.Rect {
	return cell.Rect{X: r.X + gutter, Y: r.Y, W: max(0, r.W-gutter), H: max(0, r.H-1)}
}

// Draw draws the chart into r: y labels at the left, x labels in the last row.
func Draw(g *cell.Grid, r cell.Rect, c Chart) {
	p := Plot(r)
	if p.W < 4 || p.H < 1 {
		return
	}
	value := c.Value
	if value == nil {
		value = Label
	}
	c.Axis.draw(g, p, value)
	foot := c.labels(g, p)
	if c.Now != nil {
		c.vertical(g, p, Mark{Round: *c.Now, Role: cell.Focus}, '│')
	}
	for _, m := range c.Marks {
		c.vertical(g, p, m, '┆')
	}
	for _, m := range slices.Backward(c.Marks) { // the newest mark has priority
		c.mark(g, p, m, foot.taken)
	}
	c.ticks(g, p, foot)
	c.density(g, p)
	Curve(g, p, c.Axis, c.ASCII, c.Layers...)
	c.markOutliers(g, p)
}

// column returns the cell column of a round; -1 outside of the plot.
func (c Chart) column(p cell.Rect, round uint64) int {
	if round < c.From || round >= c.To || c.To <= c.From {
		return -1
	}
	return p.X + int((round-c.From)*uint64(p.W)/(c.To-c.From))
}

// vertical draws a vertical line at a mark, unless it is outside of the plot.
func (c Chart) vertical(g *cell.Grid, p cell.Rect, m Mark, r rune) {
	if x := c.column(p, m.Round); x >= 0 {
		for y := p.Y; y < p.Y+p.H; y++ {
			g.Set(x, y, r, m.Role)
		}
	}
}

// mark writes the text of a mark below its line, to the right or left, where there is space.
func (c Chart) mark(g *cell.Grid, p cell.Rect, m Mark, taken []bool) {
	x := c.column(p, m.Round)
	if x < 0 {
		return
	}
	var places []place
	for _, text := range slices.Compact([]string{m.Text + m.More, m.Text}) {
		places = append(places, markPlaces(x-p.X, text)...)
	}
	for _, l := range append(places, place{x - p.X, "┆"}) {
		n := cell.Width(l.text)
		if l.from < 0 || l.from+n > len(taken) || !free(taken[max(0, l.from-1):min(l.from+n+1, len(taken))]) {
			continue
		}
		g.Text(p.X+l.from, p.Y+p.H, n, m.Role, l.text)
		for i := range n {
			taken[l.from+i] = true
		}
		return
	}
}

// markPlaces returns the positions for the text of a mark in column at, the best one first.
func markPlaces(at int, text string) []place {
	w := cell.Width(text)
	places := []place{{at, "┆" + text}, {at - w, text + "┆"}}
	for d := 1; d <= maxMarkShift && text != ""; d++ {
		places = append(places, place{at - w - d, text + "┆"})
	}
	return places
}

// place is a candidate position of a text.
type place struct {
	from int
	text string
}

// maxMarkShift is the largest distance in columns by which the text of a mark moves to the left of its line. The newest
// mark is often above the number of the last round.
const maxMarkShift = 8

func free(t []bool) bool {
	for _, b := range t {
		if b {
			return false
		}
	}
	return true
}

// foot is the row of the x axis.
type foot struct {
	taken  []bool          // by column
	labels map[string]bool // labels in the row
}

// labels writes the first and last value of the x axis at the columns of their points.
func (c Chart) labels(g *cell.Grid, p cell.Rect) foot {
	f := foot{make([]bool, p.W), map[string]bool{}}
	if c.To > c.From {
		end := c.text(c.To-1, p)
		f.label(g, p, min(c.column(p, c.To-1)-p.X, p.W-len(end)), end)
		f.label(g, p, 0, c.text(c.From, p))
	}
	return f
}

func (c Chart) text(n uint64, p cell.Rect) string {
	if c.Label != nil {
		return c.Label(n, min(c.step(p), max(1, c.To-1-c.From)))
	}
	return view.Grouped(n)
}

// step returns the distance of round numbers on the x axis.
func (c Chart) step(p cell.Rect) uint64 {
	return uint64(max(1, niceStep(float64(c.To-min(c.From, c.To))*16/float64(p.W))))
}

// ticks writes round numbers on the x axis where there is space.
func (c Chart) ticks(g *cell.Grid, p cell.Rect, f foot) {
	n := c.step(p)
	for r := (c.From/n + 1) * n; r < c.To; r += n {
		f.label(g, p, c.column(p, r)-p.X, c.text(r, p))
	}
}

// label writes a text into the row of the x axis if there is space and the same text is not there yet.
func (f foot) label(g *cell.Grid, p cell.Rect, x int, s string) {
	if f.labels[s] || x < 0 || x+len(s) > p.W || !free(f.taken[max(0, x-1):min(p.W, x+len(s)+1)]) {
		return
	}
	f.labels[s] = true
	g.Text(p.X+x, p.Y+p.H, len(s), cell.Faint, s)
	for i := range s {
		f.taken[x+i] = true
	}
}
