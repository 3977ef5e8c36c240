package tui

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
)

func (r *runs) overlayTitle(m *model) (string, string) {
	o := r.lay(m)
	title := "overlay"
	if n := len(r.selectedRuns(m)); n > 1 {
		title = count(n, "run") + " overlaid"
	} else if len(o.set) == 1 {
		title = o.set[0].Name
	}
	note := o.raceNote() + "by " + o.axis.String()
	if o.at >= 0 && len(o.set) > 0 {
		_, end := o.cell()
		note = "at " + axisText(o.axis, end)
	}
	for _, l := range o.lines {
		if len(l.runs) > 1 {
			note = "seeds as mean (least–most) and band · " + note
			break
		}
	}
	return title, note
}

const leastPlot = 6 // rows of a chart with its title

func (r *runs) drawOverlay(m *model, g *cell.Grid, in cell.Rect) {
	entries := r.selectedRuns(m)
	if len(entries) == 0 {
		explain(g, in, "the curves of a run appear here: choose one, or mark several with space")
		return
	}
	o := r.lay(m)
	if len(o.plots) == 0 {
		explain(g, in, r.noCurve(entries[0]))
		return
	}
	n := min(len(o.plots), max(1, in.H/leastPlot), 4)
	for i, p := range o.plots[:n] {
		var area cell.Rect
		area, in = in.Top(in.H / (n - i))
		area.W--
		r.drawPlot(m, g, area, p)
	}
}

// noCurve returns the message why a run has no chart.
func (r *runs) noCurve(e archive.Entry) string {
	h := r.overlay.loaded[e.Dir]
	switch {
	case e.Host != "" && !slices.Contains(r.marks, e.Dir):
		return remoteNote(e)
	case h == nil || r.reader.curving && h.run == nil && h.err == nil:
		return "reading the run"
	case h.err != nil:
		return h.err.Error()
	}
	return "the run has measured nothing yet"
}

func (r *runs) drawPlot(m *model, g *cell.Grid, area cell.Rect, p plot) {
	o := &r.overlay
	head, area := area.Top(1)
	x := g.Text(head.X+1, head.Y, head.W-1, cell.Title, p.title)
	log := p.log && m.logAxis
	if log {
		x = g.Text(x, head.Y, head.W, cell.Faint, "  log")
	}
	r.values(g, x+2, head.Y, head.X+head.W, p)
	c := chart.Chart{
		From:  uint64(max(0, o.lo) * fine(o.axis)),
		To:    uint64(math.Ceil(o.hi*fine(o.axis))) + 1,
		Axis:  p.fit(m),
		ASCII: m.opt.ASCII,
		Value: p.ticks,
		Label: axisLabel(o.axis),
		Hint:  allHint,
	}
	for i, cols := range p.lines {
		if l := o.lines[i]; cols != nil && len(l.runs) > 1 {
			c.Layers = append(c.Layers, chart.Layer{Columns: cols, Role: cell.Band, Style: chart.Fill, Glyph: ':'})
		}
	}
	for i, cols := range p.lines {
		style := chart.Line
		if len(o.lines[i].runs) > 1 {
			style = chart.Thin
		}
		c.Layers = append(c.Layers, chart.Layer{Columns: cols, Role: o.lines[i].role, Style: style, Glyph: o.lines[i].letter})
	}
	if o.at >= 0 {
		now := uint64(o.x() * fine(o.axis))
		c.Now = &now
	}
	chart.Draw(g, area, c)
	if len(o.lines) > 1 {
		o.letters(g, chart.Plot(area), c.Axis, p)
	}
}

// letters draws the letter of each line at its end. It moves letters that would overlap apart, in the order of their
// values.
func (o *overlayState) letters(g *cell.Grid, area cell.Rect, a chart.Axis, p plot) {
	type end struct {
		line, x, y int
		value      float64 // of the last drawn column, which may differ from the last value
	}
	var ends []end
	for i, cols := range p.lines {
		last := len(cols) - 1
		for last >= 0 && cols[last].Empty() {
			last--
		}
		if last >= 0 {
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
			g.Set(ends[i].x, ends[i].y, o.lines[ends[i].line].letter, o.lines[ends[i].line].role)
		}
	}
}

// values draws the value of each line at the cursor, or its last value, as far as they fit between x and end.
func (r *runs) values(g *cell.Grid, x, y, end int, p plot) {
	o := &r.overlay
	type word struct {
		text string
		role cell.Role
	}
	var words []word
	width := 0
	for i, runs := range p.read {
		text := "–"
		if v, ok := o.read(runs); ok {
			text = p.text(v.Mean())
			if least, most := p.text(v.Min), p.text(v.Max); least != most {
				text += " (" + least + "–" + most + ")"
			}
			if begin, _ := o.cell(); o.at >= 0 && v.x <= begin {
				text += " @" + placeText(o.axis, v.x)
			}
		}
		if len(o.lines) > 1 {
			text = string(o.lines[i].letter) + " " + text
		}
		words, width = append(words, word{text, o.lines[i].role}), width+cell.Width(text)+2
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
func (r *runs) pointAt(_ *model, in cell.Rect, x, _ int) {
	if p := chart.Plot(in); x >= p.X && x < p.X+r.overlay.width {
		r.overlay.at = x - p.X
	}
}

// figureWeights are the weights of the result columns. In a narrow table columns of small weight are hidden.
var figureWeights = map[string]int{event.KeyTestBits: 105, event.KeyTestError: 100, event.KeyTestFitness: 99,
	event.KeyTestHamming: 97,
	event.KeyTestRMSE:    95, "mean_fitness": 91, "train_loss": 90, "seconds": 70, "bytes": 60, event.KeyTestLoss: 50, event.KeyTestR2: 45,
	"samples_per_s": 40}

// metricHead returns the heading of a column, with a blank above the mark behind a figure. It shortens test error to
// test, as the narrow status line does.
func metricHead(m archive.Metric) string {
	return strings.Replace(m.Title, "test error", "test", 1) + " "
}

func (r *runs) figuresTitle(*model) (string, string) {
	note := "* best"
	switch {
	case r.overlay.unequal != "" && r.overlay.unlike != "":
		note = "* fastest"
	case r.overlay.unequal != "":
		note = "* best, not of costs"
	case r.overlay.unlike != "":
		note = "* best, not of results"
	}
	if slices.ContainsFunc(r.overlay.rows, func(row figureRow) bool { return len(row.runs) > 1 }) {
		note = "mean ± standard error · " + note
	}
	return "settings and results", note
}

// figureRow is a row of the table: a run, or the mean of runs that differ only in their seeds.
type figureRow struct {
	overlayLine
	cells map[string]string
}

func (r *runs) drawFigures(m *model, g *cell.Grid, in cell.Rect) {
	o := r.lay(m)
	if len(o.set) == 0 || len(o.plots) == 0 {
		explain(g, in, "settings and figures of the runs above appear here")
		return
	}
	rows, left := o.rows, slices.Clone(o.differing)
	rest := o.cols
	for { // columns that do not fit go into another table below, if there is space
		kept, name := fitColumns(slices.Clone(rest), in.W-5, 16, 36)
		o.figureRows(g, in, kept, name)
		rest = slices.DeleteFunc(slices.Clone(rest), func(c column[figureRow]) bool { return hasColumn(kept, c.head) })
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
		if !slices.Contains(o.differing, c.head) {
			hidden = append(hidden, strings.TrimSpace(c.head))
		}
	}
	if len(hidden) > 0 {
		absent = append(absent, "hidden: "+strings.Join(hidden, ", "))
	}
	if o.aged != "" { // the first line to be dropped, since the list marks old tests too
		foot = append(foot, o.aged)
	}
	if len(absent) > 0 {
		foot = append(foot, strings.Join(absent, " · "))
	}
	if o.unequal != "" {
		foot = append(foot, "no * for seconds and sent: "+o.unequal)
	}
	if o.unlike != "" {
		foot = append(foot, "no * for results: "+o.unlike)
	}
	if o.tried != "" {
		foot = append(foot, "no * for train loss: "+o.tried)
	}
	for i := range foot {
		if len(rows)+1+i < in.H {
			g.Text(in.X+1, in.Y+in.H-1-i, in.W-2, cell.Faint, foot[len(foot)-1-i])
		}
	}
}

// older returns the note which runs have trained since their last test; "" for none.
func (o *overlayState) older() string {
	var each []string
	for _, run := range o.set {
		if at := run.Aged("test_loss"); at > 0 {
			letter, _ := chart.Letter(o.index[run])
			each = append(each, fmt.Sprintf("%c @%s", letter, round(at)))
		}
	}
	if len(each) == 0 {
		return ""
	}
	return "tests of rounds before the last: " + strings.Join(each, ", ")
}

// figureRows draws the columns kept of the table, after a column for the name of name cells.
func (o *overlayState) figureRows(g *cell.Grid, in cell.Rect, kept []column[figureRow], name int) {
	g.Text(in.X+4, in.Y, name, cell.Faint, "run")
	tableHead(g, in.X+4+name+2, in.Y, kept)
	for i, row := range o.rows {
		y := in.Y + 1 + i
		if y >= in.Y+in.H-1 {
			g.Text(in.X+4, y, in.W-5, cell.Faint, fmt.Sprintf("and %d more: v shows all", len(o.rows)-i))
			return
		}
		g.Set(in.X+1, y, row.letter, row.role)
		g.Text(in.X+4, y, name, cell.Plain, row.name)
		tableRow(g, in.X+4+name+2, y, kept, cell.Plain, row)
	}
}

func hasColumn(cols []column[figureRow], head string) bool {
	for _, c := range cols {
		if c.head == head {
			return true
		}
	}
	return false
}

// figures returns the rows and columns of the table, and the names of the settings in which the runs differ.
func (o *overlayState) figures() (rows []figureRow, cols []column[figureRow], differing []string) {
	for _, l := range o.lines {
		for _, run := range l.runs {
			letter, role := chart.Letter(o.index[run])
			rows = append(rows, figureRow{overlayLine{[]*archive.Run{run}, letter, role, run.Name}, map[string]string{}})
		}
	}
	put := func(head string, weight int, right bool, text func(row figureRow) string) {
		width := cell.Width(head)
		for _, row := range rows {
			row.cells[head] = text(row)
			width = max(width, cell.Width(row.cells[head]))
		}
		cols = append(cols, column[figureRow]{head: head, width: min(width, 18), weight: weight, right: right,
			text: func(row figureRow) string { return row.cells[head] }})
	}
	for i, d := range archive.Differences(o.set) {
		values := map[*archive.Run]string{}
		for j, run := range o.set {
			values[run] = d.Values[j]
		}
		differing = append(differing, d.Name)
		weight := 85 - i
		if slices.Contains([]string{"workers", "fork of", "limit"}, d.Name) { // the least interesting settings
			weight = 30 - i
		}
		put(d.Name, weight, false, func(row figureRow) string {
			switch v := values[row.runs[0]]; {
			case v != "" && slices.Contains([]string{"data", "model", "init"}, d.Name): // values may be paths
				return FileCut(v, 18)
			case v != "":
				return v
			}
			return "–"
		})
	}
	for _, metric := range archive.Metrics {
		best, some := map[*archive.Run]bool{}, false
		for _, run := range archive.Best(o.set, metric) {
			best[run] = true
		}
		for _, run := range o.set {
			_, ok := run.Metric(metric.Name)
			some = some || ok
		}
		if !some {
			continue
		}
		put(metricHead(metric), figureWeights[metric.Name], true, func(row figureRow) string {
			x, ok := row.runs[0].Metric(metric.Name)
			switch {
			case !ok:
				return "– "
			case best[row.runs[0]]:
				return Figure(metric.Name, x) + "*"
			}
			return Figure(metric.Name, x) + " "
		})
	}
	for _, g := range archive.Groups(o.set) {
		if g.Seeds() < 2 {
			continue
		}
		var letters []string
		for _, run := range g.Runs {
			letter, _ := chart.Letter(o.index[run])
			letters = append(letters, string(letter))
		}
		mean := figureRow{overlayLine{g.Runs, '=', cell.Plain, "mean of " + strings.Join(letters, " ")}, map[string]string{}}
		for _, metric := range archive.Metrics {
			x, se, n := g.Mean(metric.Name)
			switch {
			case n > 1:
				mean.cells[metricHead(metric)] = Figure(metric.Name, x) + "±" + Uncertainty(se) + " "
			case n == 1:
				mean.cells[metricHead(metric)] = Figure(metric.Name, x) + " "
			}
		}
		rows = append(rows, mean)
	}
	for i := range cols { // cells of means may be wider
		for _, row := range rows {
			cols[i].width = min(max(cols[i].width, cell.Width(row.cells[cols[i].head])), 18)
		}
	}
	return rows, cols, differing
}
