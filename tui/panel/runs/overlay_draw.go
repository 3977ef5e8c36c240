package runs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"brood/runtime/archive"
	"brood/runtime/event"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

func (r *Runs) overlayTitle(m *panel.Host) (string, string) {
	o := r.layOut(m)
	title := "overlay"
	if n := len(r.selectedRuns(m)); n > 1 {
		title = textfmt.Count(n, "run") + " overlaid"
	} else if len(o.Set) == 1 {
		title = o.Set[0].Name
	}
	note := o.forkNote() + "by " + o.Axis.String()
	if o.At >= 0 && len(o.Set) > 0 {
		_, end := o.Cell()
		note = "at " + panel.AxisText(o.Axis, end)
	}
	for _, l := range o.Lines {
		if len(l.Runs) > 1 {
			note = "seeds as mean (least–most) and band · " + note
			break
		}
	}
	return title, note
}

const leastPlot = 6 // rows of a chart with its title

func (r *Runs) drawOverlay(m *panel.Host, g *cell.Grid, in cell.Rect) {
	entries := r.selectedRuns(m)
	if len(entries) == 0 {
		panel.Explain(g, in, "the curves of a run appear here: choose one, or mark several with space")
		return
	}
	o := r.layOut(m)
	if len(o.Plots) == 0 {
		panel.Explain(g, in, r.NoCurve(entries[0]))
		return
	}
	n := min(len(o.Plots), max(1, in.H/leastPlot), 4)
	for i, p := range o.Plots[:n] {
		var area cell.Rect
		area, in = in.Top(in.H / (n - i))
		area.W--
		r.drawPlot(m, g, area, p)
	}
}

// NoCurve returns the message why a run has no chart.
func (r *Runs) NoCurve(e archive.Entry) string {
	h := r.Overlay.loaded[e.Dir]
	switch {
	case e.Host != "" && !slices.Contains(r.Marks, e.Dir):
		return RemoteNote(e)
	case h == nil || r.Reader.curving && h.run == nil && h.err == nil:
		return "reading the run"
	case h.err != nil:
		return h.err.Error()
	}
	return "the run has measured nothing yet"
}

func (r *Runs) drawPlot(m *panel.Host, g *cell.Grid, area cell.Rect, p Plot) {
	o := &r.Overlay
	head, area := area.Top(1)
	x := g.Text(head.X+1, head.Y, head.W-1, cell.Title, p.Title)
	log := p.log && m.LogAxis
	if log {
		x = g.Text(x, head.Y, head.W, cell.Faint, "  log")
	}
	r.values(g, x+2, head.Y, head.X+head.W, p)
	c := chart.Chart{
		From:  uint64(max(0, o.Lo) * panel.AxisUnits(o.Axis)),
		To:    uint64(math.Ceil(o.Hi*panel.AxisUnits(o.Axis))) + 1,
		Axis:  p.Fit(m),
		ASCII: m.Opt.ASCII,
		Value: p.ticks,
		Label: panel.AxisLabel(o.Axis),
		Hint:  panel.OutliersHint,
	}
	for i, cols := range p.Lines {
		if l := o.Lines[i]; cols != nil && len(l.Runs) > 1 {
			c.Layers = append(c.Layers, chart.Layer{Columns: cols, Role: cell.Band, Style: chart.Fill, Glyph: ':'})
		}
	}
	for i, cols := range p.Lines {
		style := chart.Line
		if len(o.Lines[i].Runs) > 1 {
			style = chart.Thin
		}
		c.Layers = append(c.Layers, chart.Layer{Columns: cols, Role: o.Lines[i].role, Style: style,
			Glyph: o.Lines[i].letter})
	}
	if o.At >= 0 {
		now := uint64(o.x() * panel.AxisUnits(o.Axis))
		c.Now = &now
	}
	chart.Draw(g, area, c)
	if len(o.Lines) > 1 {
		o.letters(g, chart.Plot(area), c.Axis, p)
	}
}

// letters draws the letter of each line at its end. It moves letters that would overlap apart, in the order of their
// values.
func (o *OverlayState) letters(g *cell.Grid, area cell.Rect, a chart.Axis, p Plot) {
	type end struct {
		line, x, y int
		value      float64 // of the last drawn column, which may differ from the last value
	}
	var ends []end
	for i, cols := range p.Lines {
		if last := len(panel.Trimmed(cols)) - 1; last >= 0 {
			value := cols[last].Mean()
			ends = append(ends, end{i, min(area.X+last/2+1, area.X+area.W-1), area.Y + a.Dot(value, 4*area.H)/4, value})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Or(a.x-b.x, cmp.Compare(b.value, a.value)) })
	for i := 1; i < len(ends); i++ { // move down, below the letter above
		if ends[i].x == ends[i-1].x {
			ends[i].y = max(ends[i].y, ends[i-1].y+1)
		}
	}
	for i := len(ends) - 1; i >= 0; i-- { // move up again from below the plot
		most := area.Y + area.H - 1
		if i+1 < len(ends) && ends[i+1].x == ends[i].x {
			most = min(most, ends[i+1].y-1)
		}
		if ends[i].y = min(ends[i].y, most); ends[i].y >= area.Y {
			g.Set(ends[i].x, ends[i].y, o.Lines[ends[i].line].letter, o.Lines[ends[i].line].role)
		}
	}
}

// values draws the value of each line at the cursor, or its last value, as far as they fit between x and end.
func (r *Runs) values(g *cell.Grid, x, y, end int, p Plot) {
	o := &r.Overlay
	type word struct {
		text string
		role cell.Role
	}
	var words []word
	width := 0
	for i, runs := range p.Read {
		text := "–"
		if v, ok := o.LastValues(runs); ok {
			text = p.text(v.Mean())
			if least, most := p.text(v.Min), p.text(v.Max); least != most {
				text += " (" + least + "–" + most + ")"
			}
			if begin, _ := o.Cell(); o.At >= 0 && v.X <= begin {
				text += " @" + panel.AxisValueText(o.Axis, v.X)
			}
		}
		if len(o.Lines) > 1 {
			text = string(o.Lines[i].letter) + " " + text
		}
		words, width = append(words, word{text, o.Lines[i].role}), width+cell.Width(text)+2
	}
	x = max(x, end-width+2)
	for _, w := range words {
		if x+cell.Width(w.text) > end {
			g.Set(min(x, end-1), y, '…', cell.Faint)
			return
		}
		x = g.Text(x, y, end-x, w.role, w.text) + 2
	}
}

// pointAt moves the cursor to the mouse.
func (r *Runs) pointAt(_ *panel.Host, in cell.Rect, x, _ int) {
	if p := chart.Plot(in); x >= p.X && x < p.X+r.Overlay.Width {
		r.Overlay.At = x - p.X
	}
}

// figureWeights are the weights of the result columns. In a narrow table columns of small weight are hidden.
var figureWeights = map[string]int{event.KeyTestBits: 105, event.KeyTestError: 100, event.KeyTestFitness: 99,
	event.KeyTestHamming: 97,
	event.KeyTestRMSE:    95, "mean_fitness": 91, "train_loss": 90, "seconds": 70, "bytes": 60, event.KeyTestLoss: 50,
	event.KeyTestR2: 45,
	"samples_per_s": 40}

// metricHead returns the heading of a column, with a blank above the mark behind a figure. It shortens test error to
// test, as the narrow status line does.
func metricHead(m archive.Metric) string {
	return strings.Replace(m.Title, "test error", "test", 1) + " "
}

func (r *Runs) figuresTitle(m *panel.Host) (string, string) {
	if len(r.Marks) < 2 {
		return "settings and results", ""
	}
	note := "* best"
	switch {
	case r.Overlay.unequalCosts != "" && r.Overlay.unlikeResults != "":
		note = "* fastest"
	case r.Overlay.unequalCosts != "":
		note = "* best, not of costs"
	case r.Overlay.unlikeResults != "":
		note = "* best, not of results"
	}
	if slices.ContainsFunc(r.Overlay.Rows, func(row figureRow) bool { return len(row.Runs) > 1 }) {
		note = "mean ± standard error · " + note
	}
	return "settings and results", note
}

// figureRow is a row of the table: a run, or the mean of runs that differ only in their seeds.
type figureRow struct {
	overlayLine
	cells map[string]string
}

func (r *Runs) drawFigures(m *panel.Host, g *cell.Grid, in cell.Rect) {
	if len(r.Marks) < 2 {
		r.drawDetails(m, g, in)
		return
	}
	o := r.layOut(m)
	if len(o.Set) == 0 || len(o.Plots) == 0 {
		panel.Explain(g, in, "settings and results of the runs appear here")
		return
	}
	rows, left := o.Rows, slices.Clone(o.differing)
	rest := o.Cols
	for { // columns that do not fit go into another table below, if there is space
		kept, name := panel.FitColumns(slices.Clone(rest), in.W-5, 16, 36)
		o.figureRows(g, in, kept, name)
		rest = slices.DeleteFunc(slices.Clone(rest), func(c panel.Column[figureRow]) bool {
			return hasColumn(kept, c.Title)
		})
		left = slices.DeleteFunc(left, func(d string) bool { return hasColumn(kept, d) })
		if len(rest) == 0 || len(kept) == 0 || in.H < 2*(len(rows)+2) {
			break
		}
		_, in = in.Top(len(rows) + 2)
	}
	var absent, foot []string
	if len(left) > 0 {
		absent = append(absent, "they also differ in: "+strings.Join(left, ", "))
	}
	var hidden []string
	for _, c := range rest {
		if !slices.Contains(o.differing, c.Title) {
			hidden = append(hidden, strings.TrimSpace(c.Title))
		}
	}
	if len(hidden) > 0 {
		absent = append(absent, "hidden: "+strings.Join(hidden, ", "))
	}
	if o.oldTests != "" { // the first line to be dropped, since the list marks old tests too
		foot = append(foot, o.oldTests)
	}
	if len(absent) > 0 {
		foot = append(foot, strings.Join(absent, " · "))
	}
	if o.unequalCosts != "" {
		foot = append(foot, "no * for seconds and sent: "+o.unequalCosts)
	}
	if o.unlikeResults != "" {
		foot = append(foot, "no * for results: "+o.unlikeResults)
	}
	if o.unlikeLosses != "" {
		foot = append(foot, "no * for train loss: "+o.unlikeLosses)
	}
	var lines []string
	for _, sentence := range foot {
		lines = append(lines, textfmt.Wrap(sentence, max(1, in.W-2))...)
	}
	for i := range lines {
		if len(rows)+1+i < in.H {
			g.Text(in.X+1, in.Y+in.H-1-i, in.W-2, cell.Faint, lines[len(lines)-1-i])
		}
	}
}

// oldTestsNote returns the note which runs have trained since their last test; "" for none.
func (o *OverlayState) oldTestsNote() string {
	var each []string
	for _, run := range o.Set {
		if at := run.Aged("test_loss"); at > 0 {
			letter, _ := chart.KindLetter(o.index[run])
			each = append(each, fmt.Sprintf("%c @%s", letter, textfmt.Grouped(at)))
		}
	}
	if len(each) == 0 {
		return ""
	}
	return "tests of rounds before the last: " + strings.Join(each, ", ")
}

// figureRows draws the columns kept of the table, after a column for the name of name cells.
func (o *OverlayState) figureRows(g *cell.Grid, in cell.Rect, kept []panel.Column[figureRow], name int) {
	g.Text(in.X+4, in.Y, name, cell.Faint, "run")
	panel.DrawTableHead(g, in.X+4+name+2, in.Y, kept)
	names := make([]string, len(o.Rows))
	for i, row := range o.Rows {
		names[i] = row.Name
	}
	names = panel.Distinct(names, name)
	for i, row := range o.Rows {
		y := in.Y + 1 + i
		if y >= in.Y+in.H-1 {
			g.Text(in.X+4, y, in.W-5, cell.Faint, fmt.Sprintf("and %d more: v shows all", len(o.Rows)-i))
			return
		}
		g.Set(in.X+1, y, row.letter, row.role)
		g.Text(in.X+4, y, name, cell.Plain, names[i])
		panel.DrawTableRow(g, in.X+4+name+2, y, kept, cell.Plain, row)
	}
}

func hasColumn(cols []panel.Column[figureRow], head string) bool {
	return slices.ContainsFunc(cols, func(c panel.Column[figureRow]) bool { return c.Title == head })
}

// widestFigure is the greatest width of a column of settings and results.
const widestFigure = 28

// figures returns the rows and columns of the table, and the names of the settings in which the runs differ.
func (o *OverlayState) figures() (rows []figureRow, cols []panel.Column[figureRow], differing []string) {
	for _, l := range o.Lines {
		for _, run := range l.Runs {
			letter, role := chart.KindLetter(o.index[run])
			rows = append(rows, figureRow{overlayLine{[]*archive.Run{run}, letter, role, run.Name},
				map[string]string{}})
		}
	}
	put := func(head string, weight int, right bool, text func(row figureRow) string) {
		width := cell.Width(head)
		for _, row := range rows {
			row.cells[head] = text(row)
			width = max(width, cell.Width(row.cells[head]))
		}
		cols = append(cols, panel.Column[figureRow]{Title: head, Width: min(width, widestFigure), Weight: weight,
			Right: right, Text: func(row figureRow) string { return row.cells[head] }})
	}
	for i, d := range archive.Differences(o.Set) {
		values := map[*archive.Run]string{}
		for j, run := range o.Set {
			values[run] = d.Values[j]
		}
		differing = append(differing, d.Name)
		weight := 85 - i
		if slices.Contains([]string{"workers", "fork of", "limit"}, d.Name) { // the least interesting settings
			weight = 30 - i
		}
		put(d.Name, weight, false, func(row figureRow) string {
			switch v := values[row.Runs[0]]; {
			case v != "" && slices.Contains([]string{"data", "model", "init"}, d.Name): // values may be paths
				return textfmt.FileCut(v, widestFigure)
			case v != "":
				return v
			}
			return "–"
		})
	}
	for _, metric := range archive.Metrics {
		if !slices.ContainsFunc(o.Set, func(run *archive.Run) bool { _, ok := run.Metric(metric.Name); return ok }) {
			continue
		}
		best := archive.Best(o.Set, metric)
		put(metricHead(metric), figureWeights[metric.Name], true, func(row figureRow) string {
			x, ok := row.Runs[0].Metric(metric.Name)
			switch {
			case !ok:
				return "– "
			case slices.Contains(best, row.Runs[0]):
				return textfmt.Figure(metric.Name, x) + "*"
			}
			return textfmt.Figure(metric.Name, x) + " "
		})
	}
	for _, g := range archive.Groups(o.Set) {
		if g.Seeds() < 2 {
			continue
		}
		var letters []string
		for _, run := range g.Runs {
			letter, _ := chart.KindLetter(o.index[run])
			letters = append(letters, string(letter))
		}
		mean := figureRow{overlayLine{g.Runs, '=', cell.Plain, "mean of " + strings.Join(letters, " ")},
			map[string]string{}}
		for _, metric := range archive.Metrics {
			x, se, n := g.Mean(metric.Name)
			switch {
			case n > 1:
				mean.cells[metricHead(metric)] = textfmt.Figure(metric.Name, x) + "±" + textfmt.Uncertainty(se) + " "
			case n == 1:
				mean.cells[metricHead(metric)] = textfmt.Figure(metric.Name, x) + " "
			}
		}
		rows = append(rows, mean)
	}
	for i := range cols { // cells of means may be wider
		for _, row := range rows {
			cols[i].Width = min(max(cols[i].Width, cell.Width(row.cells[cols[i].Title])), widestFigure)
		}
	}
	return rows, cols, differing
}
