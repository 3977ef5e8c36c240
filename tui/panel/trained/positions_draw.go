package trained

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/geometry"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// Geometer is optionally implemented by a Library. It measures the distances between the members of a session, and
// calls recomputed with each round that is recomputed for that.
type Geometer interface {
	Geometry(ctx context.Context, dir string, want geometry.Wanted, recomputed func(round uint64)) (*geometry.Geometry,
		error)
}

// drawOverlaps draws the matrix of overlaps: as numbers if all fit, else as shades. With too many members a cell is
// the mean of a block of members. The last line explains the shades.
func drawOverlaps(g *cell.Grid, r cell.Rect, x *geometry.Geometry, focus engine.Member) {
	least, _, most, ok := x.Overlaps()
	if !ok {
		panel.Explain(g, r, fmt.Sprintf("there is one member in round %s: an overlap needs two",
			textfmt.Grouped(x.Round)))
		return
	}
	body, legend := r.Top(r.H - 1)
	n := len(x.Members)
	pairs := overlapQuarters(x, 1)
	digits := overlapDigits(min(pairs[0], pairs[2]), max(most, pairs[2]))
	label := cell.Width(panel.MemberRange(x.Members[max(0, n-(n+body.H-1)/max(1, body.H)):])) + 3
	figure := digits + 4 // with the shade
	figures := label+figure*n <= body.W && n+1 <= body.H
	wide, rows := 1, max(1, min(body.H-1, body.W-label-1))
	switch {
	case figures:
		wide = figure
	case label+1+2*n <= body.W && n <= rows:
		wide = 2
	}
	each := 1
	if !figures {
		each = (n + rows - 1) / rows
		if wide == 1 && label+1+2*((n+each-1)/each) <= body.W {
			wide = 2
		}
	}
	quarters := overlapQuarters(x, each)
	equal := most-least < math.Pow10(-mostDigits) // at the displayed precision
	if equal {
		quarters = quartiles{most, most, most}
	}
	for i, y := 0, body.Y; i < n; i, y = i+each, y+1 {
		role, block := cell.Faint, x.Members[i:min(n, i+each)]
		if block[0] <= focus && focus <= block[len(block)-1] {
			role = cell.Member
		}
		if figures {
			g.Right(body.X+label+(i+1)*wide, body.Y, wide, role, fmt.Sprintf("m%d", x.Members[i]))
		}
		at := y
		if figures {
			at++
		}
		g.Text(body.X+1, at, label-1, role, panel.MemberRange(block))
		for j, col := 0, body.X+label; j < n; j, col = j+each, col+wide {
			v, ok := meanOverlap(x, i, j, each)
			if !ok {
				continue
			}
			shade := quarters.shade(v)
			if !figures {
				for k := range wide {
					g.Set(col+k, at, shade, chart.ShadeRole(shade))
				}
				continue
			}
			if i == j {
				g.Right(col+wide, at, wide-1, cell.Faint, "1")
				continue
			}
			g.Set(col+1, at, shade, chart.ShadeRole(shade))
			g.Right(col+wide, at, wide-2, cell.Plain, cosine(v, digits))
		}
	}
	text := "all equal"
	switch {
	case most != most:
		text = "? for a member whose parameters are all zero or not finite"
	case equal && least < most:
		text = fmt.Sprintf("all equal to %d digits", mostDigits)
	case !equal:
		text = fmt.Sprintf("%s ░ %s ▒ %s ▓ %s █ %s", cosine(least, digits), cosine(quarters[0], digits),
			cosine(quarters[1], digits),
			cosine(quarters[2], digits), cosine(most, digits))
	}
	g.Text(legend.X+1, legend.Y, legend.W-2, cell.Faint, text)
	chart.TintShades(g, legend)
}

// mostDigits is the most decimals of an overlap.
const mostDigits = 8

// overlapDigits returns the number of decimals that distinguishes the overlaps.
func overlapDigits(least, most float64) int {
	d := 3
	for step := most - least; d < mostDigits && step > 0 && step*math.Pow10(d) < 5; {
		d++
	}
	return d
}

// cosine formats a value with this many decimals, without the zero before the point.
func cosine(v float64, digits int) string {
	switch {
	case v != v:
		return "nan"
	case v == 1:
		return "1"
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if whole, part, _ := strings.Cut(text, "."); strings.TrimPrefix(whole, "-") == "0" {
		return strings.TrimSuffix(whole, "0") + "." + part
	}
	return text
}

// meanOverlap returns the mean overlap of different members of two blocks of `each` members, which start at i and j.
func meanOverlap(x *geometry.Geometry, i, j, each int) (mean float64, ok bool) {
	if each == 1 {
		return x.Overlap(i, j), true
	}
	sum, n := 0.0, 0
	for a := i; a < min(i+each, len(x.Members)); a++ {
		for b := j; b < min(j+each, len(x.Members)); b++ {
			if a != b {
				sum, n = sum+x.Overlap(a, b), n+1
			}
		}
	}
	return sum / float64(max(1, n)), n > 0
}

// quartiles holds the three quartiles of values.
type quartiles [3]float64

// overlapQuarters returns the quartiles of all pairs that are drawn.
func overlapQuarters(x *geometry.Geometry, each int) (q quartiles) {
	var all []float64
	for i := 0; i < len(x.Members); i += each {
		for j := 0; j <= i; j += each {
			if v, ok := meanOverlap(x, i, j, each); ok && v == v && (each > 1 || i != j) {
				all = append(all, v)
			}
		}
	}
	slices.Sort(all)
	for i := range q {
		if len(all) > 0 {
			q[i] = all[min(len(all)-1, (i+1)*len(all)/4)]
		}
	}
	return q
}

// shade returns the shade of v: darker for a higher quarter.
func (q quartiles) shade(v float64) rune {
	n := 0
	for _, bound := range q {
		if v >= bound && q[0] < q[2] {
			n++
		}
	}
	if v != v {
		return '?'
	}
	return []rune("░▒▓█")[n]
}

// drawBetween draws the loss along the line from one member to another, and dotted its linear interpolation.
func drawBetween(g *cell.Grid, r cell.Rect, x *geometry.Geometry, ascii bool) {
	if len(x.Line) < 2 || r.H < 4 {
		panel.Explain(g, r, "a line needs two members and more space")
		return
	}
	area, legend := panel.ChartArea(r)
	loss := make([]float64, len(x.Line))
	for i, p := range x.Line {
		loss[i] = shownLoss(x, p)
	}
	w := 2 * chart.Plot(area).W
	curve, even := make([]view.Bucket, w), make([]view.Bucket, w)
	for c := range w {
		t := float64(c) / float64(max(1, w-1))
		at := t * float64(len(loss)-1)
		i := min(int(at), len(loss)-2)
		f := at - float64(i)
		curve[c] = chart.Of([]float64{(1-f)*loss[i] + f*loss[i+1]})[0]
		even[c] = chart.Of([]float64{(1-t)*loss[0] + t*loss[len(loss)-1]})[0]
	}
	chart.Draw(g, area, chart.Chart{
		Layers: []chart.Layer{{
			Columns: even,
			Role:    cell.Faint,
			Style:   chart.Dots,
			Glyph:   '.',
		}, {Columns: curve, Role: cell.Centre, Style: chart.Line, Glyph: '*'}},
		From: 0, To: 101, Axis: chart.FitAxis(false, curve, even), ASCII: ascii,
		Label: func(n, _ uint64) string {
			switch n {
			case 0:
				return fmt.Sprintf("m%d", x.From)
			case 100, 101:
				return fmt.Sprintf("m%d", x.To)
			}
			return fmt.Sprintf("%d %%", n)
		},
	})
	g.Text(legend.X+1, legend.Y, legend.W-2, cell.Faint, BarrierText(x))
}

// shownLoss returns a loss as displayed: the fitness for an objective.
func shownLoss(x *geometry.Geometry, s optim.Scores) float64 {
	if x.Measured {
		return 0 - s.Mean() // avoids -0
	}
	return s.Mean()
}

// BarrierText describes the curve in words.
func BarrierText(x *geometry.Geometry) string {
	ends := fmt.Sprintf(";  m%d %s, m%d %s", x.From, textfmt.Number(shownLoss(x, x.Line[0])), x.To,
		textfmt.Number(shownLoss(x, x.Line[len(x.Line)-1])))
	switch h, at := x.Barrier(); {
	case h != h:
		return "some values are NaN" + ends
	case h <= 1e-3*max(math.Abs(x.Line[0].Mean()), math.Abs(x.Line[len(x.Line)-1].Mean())):
		return "no barrier" + ends
	default:
		return fmt.Sprintf("barrier %s at %.0f %%", textfmt.Number(h), 100*at) + ends
	}
}

// drawSpreads draws a bar for each member: its distance from the centre.
func drawSpreads(g *cell.Grid, r cell.Rect, x *geometry.Geometry, focus engine.Member) {
	at, top := 0, 0.0
	for i, m := range x.Members {
		if m == focus {
			at = i
		}
		top = max(top, x.Spread[i])
	}
	first, n := panel.TableWindow(r, len(x.Members), at, 0)
	g.Text(r.X+1, r.Y, r.W-2, cell.Faint, "member")
	g.Right(r.X+17, r.Y, 9, cell.Faint, "spread")
	g.Right(r.X+27, r.Y, 9, cell.Faint, "length")
	for i := first; i < first+n; i++ {
		y, role, bar := r.Y+1+i-first, cell.Plain, cell.Band
		if x.Members[i] == focus {
			role, bar = cell.Member, cell.Member
			g.Set(r.X, y, '▸', role)
		}
		g.Text(r.X+1, y, 7, role, fmt.Sprintf("m%d", x.Members[i]))
		g.Right(r.X+17, y, 9, role, textfmt.Number(x.Spread[i]))
		g.Right(r.X+27, y, 9, cell.Faint, textfmt.Number(x.Length[i]))
		if w := r.W - 30; w > 3 && top > 0 {
			chart.Bar(g, r.X+29, y, w, x.Spread[i]/top, bar)
		}
	}
	panel.DrawMore(g, r.X+r.W-1, r.Y+1, first, n, len(x.Members))
}

// drawSlopes replaces the distances for candidates of one model: it draws the cosine of their estimate and the
// gradient, as a number and a bar for each kind of samples, and the upper bound of an unguided estimate.
func drawSlopes(g *cell.Grid, r cell.Rect, x *geometry.Geometry) {
	batch, batchError, train, trainError := x.Cosines()
	lines := []struct {
		name         string
		value, error float64
		role         cell.Role
	}{
		{"its own mini-batch", batch, batchError, cell.Centre},
		{fmt.Sprintf("%s of training", textfmt.Count(x.Samples, "sample")), train, trainError, cell.Centre},
		{"unguided, at most", x.Bound(), math.NaN(), cell.Median},
	}
	top := x.Bound()
	for _, l := range lines {
		if l.value == l.value {
			top = max(top, l.value)
		}
	}
	why := "each candidate has a different one"
	if train != train { // the training gradient is common to all candidates: the cause is another one
		why = "no direction: all results of a generation were equal"
	}
	const name, value, fault = 26, 9, 9
	y := r.Y
	text := func(role cell.Role, s string) {
		for _, line := range textfmt.Wrap(s, r.W-2) {
			if y < r.Y+r.H {
				g.Text(r.X+1, y, r.W-2, role, line)
			}
			y++
		}
	}
	text(cell.Faint, fmt.Sprintf("cosine of the estimate of a generation and the gradient, mean of %s",
		textfmt.Count(len(x.Slopes), "generation")))
	for _, l := range lines {
		if y >= r.Y+r.H {
			return
		}
		g.Text(r.X+2, y, name, cell.Plain, l.name)
		switch {
		case l.value != l.value:
			g.Text(r.X+2+name, y, r.W-name-3, cell.Faint, why)
		default:
			g.Right(r.X+2+name+value, y, value, cell.Plain, fmt.Sprintf("%.4f", l.value))
			if l.error == l.error {
				g.Text(r.X+3+name+value, y, fault, cell.Faint, fmt.Sprintf("± %.4f", l.error))
			}
			if at := 3 + name + value + fault; r.W-at > 4 {
				chart.Bar(g, r.X+at, y, r.W-at-1, l.value/top, l.role)
			}
		}
		y++
	}
	text(cell.Faint,
		fmt.Sprintf("%d independent isotropic directions among %s parameters give at most "+
			"√(n/(n+M)) for a linear loss. Surrogate gradients and unequal deviations increase it; curvature, noise of the "+
			"results and ranking reduce it.",
			x.Slopes[0].Directions, textfmt.Grouped(x.Params)))
}

// GeometryText formats a measurement as text with lines of at most width cells.
func GeometryText(x *geometry.Geometry, width int, ascii bool) string {
	head := fmt.Sprintf("%s, %s after round %s: %s", x.Session, x.Algorithm, textfmt.Grouped(x.Round),
		textfmt.Count(x.Population, "member"))
	if len(x.Slopes) == 0 && len(x.Members) < x.Population {
		head += fmt.Sprintf(", %d of them compared", len(x.Members))
	}
	if len(x.Slopes) > 0 {
		g := cell.New(width, 13) // a narrow text is longer; trailing blank lines are removed
		g.Text(0, 0, width, cell.Plain, head)
		drawSlopes(g, cell.Rect{X: 0, Y: 1, W: width, H: 12}, x)
		return gridText(g, ascii)
	}
	matrix := min(len(x.Members), 32) + 2
	spreads := min(len(x.Members), 16) + 1
	height := 2 + matrix + 1 + 1 + spreads
	if len(x.Line) > 1 {
		height += 1 + 1 + 12
	}
	g := cell.New(width, height)
	g.Text(0, 0, width, cell.Plain, head)
	y := 1
	part := func(title string, h int, draw func(r cell.Rect)) {
		g.Text(0, y, width, cell.Faint, title)
		draw(cell.Rect{X: 0, Y: y + 1, W: width, H: h})
		y += h + 2
	}
	part("overlap: cosine of the angle between the parameters of two members", matrix,
		func(r cell.Rect) { drawOverlaps(g, r, x, engine.None) })
	if len(x.Line) > 1 {
		part(lineTitle(x), 12, func(r cell.Rect) { drawBetween(g, r, x, ascii) })
	}
	title := "spread: RMS distance from the centre"
	if n := len(x.Members) - spreads + 1; n > 0 {
		title += fmt.Sprintf("; %d more with --json", n)
	}
	part(title, spreads, func(r cell.Rect) { drawSpreads(g, r, x, engine.None) })
	return gridText(g, ascii)
}

// gridText returns a grid without colours and without trailing blanks and blank lines.
func gridText(g *cell.Grid, ascii bool) string {
	var out []string
	for _, line := range strings.Split(cell.Plainly(ascii).String(g), "\n") {
		out = append(out, strings.TrimRight(line, " "))
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n") + "\n"
}

// lineTitle returns the title of the line between two members.
func lineTitle(x *geometry.Geometry) string {
	what := "loss"
	if x.Measured {
		what = "fitness"
	}
	return fmt.Sprintf("%s on the line from m%d to m%d", what, x.From, x.To)
}
