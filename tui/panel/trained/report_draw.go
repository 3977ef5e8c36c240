package trained

import (
	"context"
	"fmt"
	"slices"

	"brood/runtime/report"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// Examiner is optionally implemented by a Library. Examine evaluates the model of a session on the test set after round
// `at`, 0 for the newest checkpoint, and calls recomputed with each round that it recomputes for that.
type Examiner interface {
	Examine(ctx context.Context, dir string, at uint64, recomputed func(round uint64)) (*Examined, error)
}

// Examined is the result of an evaluation. Report is nil if the results of the model are not finite.
type Examined struct {
	Round  uint64
	Report *report.Report
}

// Largest numbers of classes in a report as text.
const (
	textClasses = 20 // in the table
	textMatrix  = 12 // in the confusion matrix
)

// classColumns are the columns of the table of classes.
var classColumns = []struct {
	name string
	of   func(report.ClassScore) string
}{
	{"precision", func(c report.ClassScore) string { return textfmt.NumberOrDash(c.Precision) }},
	{"recall", func(c report.ClassScore) string { return textfmt.NumberOrDash(c.Recall) }},
	{"F1", func(c report.ClassScore) string { return textfmt.NumberOrDash(c.F1) }},
	{"samples", func(c report.ClassScore) string { return textfmt.Grouped(c.Samples) }},
}

// drawClasses draws a line for each class, or the classes of lowest F1 if not all fit, and the means.
func drawClasses(g *cell.Grid, r cell.Rect, x *report.Report) {
	if x.Outputs != nil {
		drawOutputs(g, r, x)
		return
	}
	means := []report.ClassScore{x.Macro()}
	if x.Several != nil {
		means = append(means, x.Several.Micro)
	}
	classes, head := slices.Clone(x.Classes), "class"
	if rows := max(1, r.H-1-len(means)); len(classes) > rows {
		classes = x.Lowest()
		head = fmt.Sprintf("lowest F1 of %d", len(classes))
		classes = classes[:min(len(classes), rows)]
	}
	name := len(head)
	for _, c := range append(classes, means...) {
		name = max(name, min(widestName, cell.Width(c.Name)))
	}
	const figure = 10
	name = max(1, min(name, r.W-3-figure))
	columns := classColumns // in a narrow panel F1 and the columns before it remain
	if n := max(1, (r.W-3-name)/figure); n < len(columns) {
		columns = columns[3-n : 3]
	}
	at := func(i int) int { return r.X + 2 + name + (i+1)*figure }
	g.Text(r.X+1, r.Y, name, cell.Faint, head)
	for i, c := range columns {
		g.Right(at(i), r.Y, figure, cell.Faint, c.name)
	}
	row := func(y int, role, bar cell.Role, c report.ClassScore) {
		g.Text(r.X+1, y, name, role, c.Name)
		for i, column := range columns {
			g.Right(at(i), y, figure, role, column.of(c))
		}
		if from := at(len(columns)-1) + 2; r.X+r.W-from > 4 && c.F1 == c.F1 {
			chart.Bar(g, from, y, min(40, r.X+r.W-from-1), c.F1, bar)
		}
	}
	for i, short := range panel.Distinct(classNames(classes), name) {
		classes[i].Name = short
		row(r.Y+1+i, cell.Plain, cell.Band, classes[i])
	}
	for i, c := range means {
		row(r.Y+1+len(classes)+i, cell.Strong, cell.Centre, c)
	}
}

// widestName is the largest width of a class name in cells.
const widestName = 24

func classNames(classes []report.ClassScore) (names []string) {
	for _, c := range classes {
		names = append(names, c.Name)
	}
	return names
}

// drawOutputs draws a line for each output of a regression.
func drawOutputs(g *cell.Grid, r cell.Rect, x *report.Report) {
	const figure = 14
	name := 8
	for _, o := range x.Outputs {
		name = max(name, min(cell.Width(o.Name), r.W-3*figure-3))
	}
	for i, c := range []string{"RMSE", "MAE", "R2"} {
		g.Right(r.X+1+name+(i+1)*figure, r.Y, figure, cell.Faint, c)
	}
	g.Text(r.X+1, r.Y, name, cell.Faint, "output")
	for k, o := range x.Outputs[:min(len(x.Outputs), max(0, r.H-1))] {
		g.Text(r.X+1, r.Y+1+k, name, cell.Plain, o.Name)
		for i, v := range []string{textfmt.Number(o.RMSE), textfmt.Number(o.MAE), textfmt.NumberOrDash(o.R2)} {
			g.Right(r.X+1+name+(i+1)*figure, r.Y+1+k, figure, cell.Plain, v)
		}
	}
}

// confusionShades are the shades by the share of a class's samples that exceeds from.
var confusionShades = []struct {
	from  float64
	shade rune
}{{0.5, '█'}, {0.2, '▓'}, {0.05, '▒'}, {0, '░'}}

func confusionShade(part float64) rune {
	for _, s := range confusionShades {
		if part > s.from {
			return s.shade
		}
	}
	return ' '
}

// drawConfusion draws the confusion matrix: as numbers if they fit, else as shades, else as a list of the most frequent
// confusions.
func drawConfusion(g *cell.Grid, r cell.Rect, x *report.Report) {
	const head = "is, taken for"
	n, label, figure := len(x.Classes), len(head), 0
	names := panel.Distinct(classNames(x.Classes), 16)
	for _, name := range names {
		label, figure = max(label, cell.Width(name)), max(figure, cell.Width(name))
	}
	for _, c := range x.Confusion {
		figure = max(figure, cell.Width(textfmt.Grouped(c.Samples)))
	}
	figure += 3 // blanks and the shade
	body, legend := r.Top(r.H - 1)
	wide := 0
	switch {
	case n+1 > body.H:
	case label+2+n*figure <= r.W:
		wide = figure
	case label+2+2*n <= r.W:
		wide = 2
	}
	if wide == 0 {
		drawConfused(g, r, x)
		return
	}
	g.Text(r.X+1, r.Y, label, cell.Faint, head)
	matrix, letters := x.Matrix(), panel.Initials(classNames(x.Classes))
	for i, c := range x.Classes {
		if wide == figure {
			g.Right(r.X+1+label+(i+1)*wide, r.Y, wide-1, cell.Faint, names[i])
		} else {
			g.Text(r.X+2+label+i*wide, r.Y, 1, cell.Faint, letters[i])
		}
		g.Text(r.X+1, r.Y+1+i, label, cell.Plain, names[i])
		for j, k := range matrix[i] {
			at, role := r.X+2+label+j*wide, cell.Warn
			if i == j {
				role = cell.Median
			}
			shade := confusionShade(float64(k) / float64(max(1, c.Samples)))
			g.Set(at, r.Y+1+i, shade, role)
			switch {
			case wide == 2:
				g.Set(at+1, r.Y+1+i, shade, role)
			case k == 0:
				g.Right(at+wide-1, r.Y+1+i, wide-2, cell.Faint, "·")
			default:
				g.Right(at+wide-1, r.Y+1+i, wide-2, cell.Plain, textfmt.Grouped(k))
			}
		}
	}
	g.Text(legend.X+1, legend.Y, legend.W-2, cell.Faint,
		"of a class's samples  ░ some  ▒ above 5 %  ▓ above 20 %  █ above 50 %")
}

func drawConfused(g *cell.Grid, r cell.Rect, x *report.Report) {
	pairs := x.Mistaken()
	name, names := 4, panel.Distinct(classNames(x.Classes), widestName)
	for _, n := range names {
		name = max(name, cell.Width(n))
	}
	g.Text(r.X+1, r.Y, name, cell.Faint, "is")
	g.Text(r.X+3+name, r.Y, 9, cell.Faint, "taken for")
	g.Right(r.X+3+name+max(name, 9)+9, r.Y, 9, cell.Faint, "samples")
	for i, p := range pairs[:min(len(pairs), max(0, r.H-1))] {
		y := r.Y + 1 + i
		g.Text(r.X+1, y, name, cell.Plain, names[p.Is])
		g.Text(r.X+3+name, y, max(name, 9), cell.Plain, names[p.As])
		g.Right(r.X+3+name+max(name, 9)+9, y, 9, cell.Plain, textfmt.Grouped(p.Samples))
		if from := r.X + 3 + name + max(name, 9) + 11; r.X+r.W-from > 4 {
			chart.Bar(g, from, y, min(40, r.X+r.W-from-1), float64(p.Samples)/float64(pairs[0].Samples), cell.Warn)
		}
	}
}

// drawCalibration draws a bar for each bin of predictions, with the share that is right, and a mark at the predicted
// probability.
func drawCalibration(g *cell.Grid, r cell.Rect, x *report.Report) {
	samples, predicted, right := "samples", "predicted", "right"
	if x.Several != nil {
		samples, right = "labels", "in class"
	}
	g.Text(r.X+1, r.Y, r.W-2, cell.Faint, fmt.Sprintf("expected calibration error %.2f %%", 100*x.Calibration.Error))
	name, ends := 14, [3]int{24, 34, 44} // ends: the cells after each column of figures, from r.X + 1 on
	if r.W < 56 {
		name, ends, predicted = 12, [3]int{19, 28, 36}, "expected"
		if x.Several != nil {
			right = "true"
		}
	}
	g.Text(r.X+1, r.Y+1, name, cell.Faint, "probability")
	for i, c := range []string{samples, predicted, right} {
		g.Right(r.X+1+ends[i], r.Y+1, 10, cell.Faint, c)
	}
	from := r.X + 1 + ends[2] + 2
	w := min(50, r.X+r.W-from-1)
	if w > 4 {
		g.Text(from, r.Y+1, w, cell.Faint, right+", predicted |")
	}
	y, skip := r.Y+2, 0
	if over := bins(x) - max(0, r.H-2); over > 0 { // hide bins of low probability, and one more for the note
		skip = over + 1
		g.Text(r.X+1, y, r.W-2, cell.Faint, fmt.Sprintf("%d lower bins hidden", skip))
		y++
	}
	for _, b := range x.Calibration.Bins {
		if b.Samples == 0 {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		g.Text(r.X+1, y, name, cell.Plain, fmt.Sprintf("%.2f to %.2f", b.From, b.To))
		for i, v := range []string{textfmt.Grouped(b.Samples), fmt.Sprintf("%.1f %%", 100*b.Confidence),
			fmt.Sprintf("%.1f %%", 100*b.Right)} {
			g.Right(r.X+1+ends[i], y, 10, cell.Plain, v)
		}
		if w > 4 {
			chart.Bar(g, from, y, w, b.Right, cell.Band)
			g.Set(from+min(w-1, int(b.Confidence*float64(w))), y, '|', cell.Predicted)
		}
		y++
	}
}

// bins returns the number of calibration bins with samples.
func bins(x *report.Report) (n int) {
	for _, b := range x.Calibration.Bins {
		if b.Samples > 0 {
			n++
		}
	}
	return n
}

// ReportText formats a report as text with lines of at most width cells.
func ReportText(x *report.Report, width int, ascii bool) (text string) {
	part := func(h int, draw func(*cell.Grid, cell.Rect, *report.Report)) {
		g := cell.New(width, h)
		draw(g, cell.Rect{X: 1, W: width - 1, H: h}, x)
		text += "\n" + gridText(g, ascii)
	}
	if x.Outputs != nil {
		if len(x.Outputs) > 1 {
			part(len(x.Outputs)+1, drawOutputs)
		}
		return text
	}
	part(min(len(x.Classes), textClasses)+3, drawClasses)
	if x.Several == nil {
		part(min(len(x.Classes), textMatrix)+2, drawConfusion)
	}
	part(bins(x)+2, drawCalibration)
	return text
}
