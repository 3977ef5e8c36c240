package runs

import (
	"fmt"
	"strings"

	"brood/optim"
	"brood/runtime/timeline"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// launchRow is the screen row of a line of the form.
type launchRow struct {
	At cell.Rect
	Of panel.LineID
}

const (
	launchWide  = panel.WideW - 2 // least width for knobs to the right of the options
	launchName  = 19              // most cells of a name
	launchValue = 24
	launchCurve = 5 // most extra lines of a curve, if free
	launchFoot  = 6 // lines below the list: a rule, two on the chosen line, one that starts it, two of the command line
)

func (l *Launch) title(*panel.Host) (string, string) {
	return "start a run", "* your value"
}

func (l *Launch) hints(*panel.Host) [][2]string {
	enter := "type"
	if l.Chosen() == startLine {
		enter = "start it"
	}
	over := "knobs"
	if l.Chosen().Knob || l.Chosen() == startLine {
		over = "options"
	}
	return [][2]string{{"j k", "line"}, {"enter", enter}, {"tab", over}, {"h l", "turn"}, {"G", "start it"},
		{"y", "copy"},
		{"u", "clear"},
		{"esc", "leave"}, {"?", "help"}}
}

// point selects the line under the mouse.
func (l *Launch) point(_ *panel.Host, _ cell.Rect, x, y int) {
	for i, r := range l.Rows {
		if r.At.Has(x, y) && l.typing == nil {
			for n, of := range l.lines() {
				if of == l.Rows[i].Of {
					l.cursor = n
				}
			}
		}
	}
}

func (l *Launch) draw(m *panel.Host, g *cell.Grid, in cell.Rect) {
	l.Rows = l.Rows[:0]
	switch {
	case !l.drafted && l.Err != nil:
		panel.Explain(g, in, l.Err.Error())
		return
	case !l.drafted:
		panel.Explain(g, in, "reading presets and data sets")
		return
	}
	if in.W >= launchWide {
		l.drawWide(m, g, in)
		return
	}
	all := l.lines()
	list, foot := in.Top(max(1, min(in.H-launchFoot, len(all)+1)))
	n := len(l.draft.Lines)
	rows := make([]panel.LineID, 0, len(all)) // with the heading of the knobs; the last line is in the foot
	rows = append(rows, all[:n]...)
	rows = append(rows, panel.LineID{})
	rows = append(rows, all[n:len(all)-1]...)
	at := l.cursor
	if at >= n {
		at = min(at+1, len(rows)-1)
	}
	first := max(0, at-list.H/2)
	if at > n { // the knobs that fit, after their heading
		first = max(n, at-list.H+1)
	}
	first = min(first, max(0, len(rows)-list.H))
	cols := l.columns(m, list.W)
	for i := 0; i < list.H && first+i < len(rows); i++ {
		line := cell.Rect{X: list.X, Y: list.Y + i, W: list.W, H: 1}
		if rows[first+i] == (panel.LineID{}) {
			l.knobHead(g, line, cols)
			continue
		}
		l.drawLine(m, g, line, cols, rows[first+i])
	}
	panel.DrawMore(g, list.X+list.W-1, list.Y, first, list.H, len(rows))
	if in.H > launchFoot {
		l.foot(m, g, foot, cols)
	}
}

// drawWide draws the options and their effects at the left, and the knobs with their curves at the right.
func (l *Launch) drawWide(m *panel.Host, g *cell.Grid, in cell.Rect) {
	left, right := in.Left(in.W * 9 / 20)
	for y := in.Y; y < in.Y+in.H; y++ {
		g.Set(right.X, y, '│', cell.Border)
	}
	right = cell.Rect{X: right.X + 1, Y: right.Y, W: right.W - 1, H: right.H}
	cols := l.columns(m, left.W-1)
	y := left.Y + 1
	for _, f := range l.draft.Lines {
		l.drawLine(m, g, cell.Rect{X: left.X, Y: y, W: left.W - 1, H: 1}, cols, panel.LineID{Name: f.Name})
		y++
	}
	l.foot(m, g, cell.Rect{X: left.X, Y: y + 1, W: left.W - 1, H: max(0, left.Y+left.H-y-1)}, cols)
	cols = l.columns(m, right.W)
	l.knobHead(g, cell.Rect{X: right.X, Y: right.Y, W: right.W, H: 1}, cols)
	knobs := l.Knobs()
	tall, spare, moving := make([]int, len(knobs)), right.H-1-len(knobs), 0
	for i, k := range knobs {
		if tall[i] = 1; l.rangeText(k) != "" {
			tall[i], moving = 2, moving+1
		}
	}
	more := min(launchCurve, spare/max(1, moving)) // extra lines of each knob with a schedule
	for i := range tall {
		if tall[i] > 1 {
			tall[i] += max(more, 0) - 1
		}
	}
	first, n := 0, len(knobs)
	if spare < 0 {
		n = right.H - 1
		first = min(max(0, l.cursor-len(l.draft.Lines)-n/2), len(knobs)-n)
	}
	y = right.Y + 1
	for i, k := range knobs[first : first+n] {
		h := tall[first+i]
		l.drawLine(m, g, cell.Rect{X: right.X, Y: y, W: right.W, H: h}, cols, panel.LineID{Name: k.Name, Knob: true})
		y += h
	}
	panel.DrawMore(g, right.X+right.W-1, right.Y+1, first, n, len(knobs))
}

// launchColumns is the layout of a line: offsets from its left end; title is 0 if it does not fit.
type launchColumns struct{ name, value, sketch, bounds, title int }

func (l *Launch) columns(m *panel.Host, width int) (c launchColumns) {
	name, between, title := 9, 6, 0
	for _, k := range l.Knobs() {
		name = max(name, min(cell.Width(m.KnobLabel(k)), launchName))
		between = max(between, cell.Width(bounds(k)))
		title = max(title, cell.Width(k.Title))
	}
	c.name = 2
	c.value = c.name + name + 2
	c.sketch = c.value + launchValue
	left := width - c.sketch - between - 3
	if left-title >= 18 {
		c.title = width - title - 1
		left -= title + 2
	}
	c.bounds = c.sketch + min(max(8, left), 40) + 2
	if c.title > 0 {
		c.title = c.bounds + between + 2
	}
	return c
}

func (l *Launch) knobHead(g *cell.Grid, in cell.Rect, c launchColumns) {
	g.Text(in.X+c.name, in.Y, c.value-c.name-1, cell.Title, "knobs")
	g.Text(in.X+c.value, in.Y, launchValue-2, cell.Faint, "of "+l.alg())
	over := "position or curve"
	if hi, known := l.horizon(); known {
		over = "rounds 0–" + textfmt.Grouped(hi)
	}
	g.Text(in.X+c.sketch, in.Y, c.bounds-c.sketch-1, cell.Faint, over)
	g.Text(in.X+c.bounds, in.Y, in.W-c.bounds-1, cell.Faint, "bounds")
}

// horizon returns the rounds over which schedules are drawn, and whether the limit or the estimate determines them.
func (l *Launch) horizon() (hi uint64, known bool) {
	if l.draft.Limit.Rounds > 0 {
		return l.draft.Limit.Rounds, true
	}
	if l.estimate.Expected.Rounds > 0 {
		return l.estimate.Expected.Rounds, true
	}
	hi = 1000
	for _, k := range l.Knobs() {
		hi = max(hi, l.draft.Knobs.Ends(k.Name))
	}
	return hi, false
}

// drawLine draws a line of the form: name, value and details.
func (l *Launch) drawLine(m *panel.Host, g *cell.Grid, in cell.Rect, c launchColumns, of panel.LineID) {
	l.Rows = append(l.Rows, launchRow{in, of})
	role, chosen := cell.Plain, of == l.Chosen()
	if chosen {
		role = cell.FocusTitle
		g.Set(in.X, in.Y, '▸', role)
	}
	var k optim.Knob
	label := of.Name
	if of.Knob {
		k, _ = l.draft.Knobs.Algorithm.Knob(of.Name)
		label = m.KnobLabel(k)
	}
	g.Text(in.X+c.name, in.Y, c.value-c.name-1, role, label)
	l.drawValue(m, g, in.X+c.value, in.Y, of, role)
	x, w := in.X+c.sketch, in.W-c.sketch-1
	if at, err := l.refusal(); err != nil && at == of {
		role := cell.Alert
		if chosen && l.typing != nil && len(l.offers()) > 0 { // it may still be completed to a word
			role = cell.Faint
		}
		g.Text(x, in.Y, w, role, err.Error())
		return
	}
	if !of.Knob {
		g.Text(x, in.Y, w, cell.Faint, strings.ReplaceAll(l.formLine(of).Doc, "`", ""))
		return
	}
	sketch, end := cell.Rect{X: x, Y: in.Y, W: c.bounds - c.sketch - 2, H: in.H}, in.W-1
	if c.title > 0 {
		g.Text(in.X+c.title, in.Y, in.W-c.title-1, cell.Faint, k.Title)
		end = c.title - 2
	}
	if len(k.Choices) > 0 {
		sketch.W = end - c.sketch
	}
	l.sketch(m, g, sketch, k)
	if in.H > 1 {
		g.Text(in.X+c.value, in.Y+1, launchValue-2, cell.Faint, l.rangeText(k))
	}
	g.Text(in.X+c.bounds, in.Y, end-c.bounds, cell.Faint, bounds(k))
}

// bounds formats the bounds of a knob briefly.
func bounds(k optim.Knob) string {
	if len(k.Choices) > 0 {
		return ""
	}
	return panel.KnobText(k, k.Min) + "–" + panel.KnobText(k, k.Max)
}

// rangeText formats the first and the last value of a schedule; "" for a constant.
func (l *Launch) rangeText(k optim.Knob) string {
	values := l.curve(k, 64)
	if panel.IsConstant(values) {
		return ""
	}
	return panel.KnobText(k, values[0]) + " → " + panel.KnobText(k, values[len(values)-1])
}

// drawValue draws the value of a line: a value from the user with a mark, and a value being typed with a cursor.
func (l *Launch) drawValue(m *panel.Host, g *cell.Grid, x, y int, of panel.LineID, role cell.Role) {
	const w = launchValue - 2
	text, explicit := l.value(of)
	switch {
	case l.typing != nil && of == l.Chosen():
		panel.DrawInput(m, g, x, y, w, cell.Staged, l.typing)
	case explicit:
		if f := timeline.Factor(text); f != 1 { // first: the end of a long schedule is cut
			text = fmt.Sprintf("x %.4g %s", f, timeline.WithFactor(text, 1))
		}
		g.Text(x, y, w, cell.Staged, text+"*")
	case text != "":
		g.Text(x, y, w, role, text)
	default:
		text = "–"
		switch e := l.estimate; { // derived values
		case of.Name == "model" && e.Model != "":
			text = e.Model
		case of.Name == "data" && e.Data != "":
			text = e.Data
		}
		g.Text(x, y, w, cell.Faint, text)
	}
}

// sketch draws the curve of a knob over the run, or for a constant its place between the bounds.
func (l *Launch) sketch(m *panel.Host, g *cell.Grid, in cell.Rect, k optim.Knob) {
	values := l.curve(k, 2*in.W)
	if panel.IsConstant(values) {
		panel.DrawGauge(g, in.X, in.Y, in.W, k, values[0], cell.Median, m.Opt.ASCII)
		return
	}
	columns := chart.Of(values)
	axis := chart.FitAxis(k.Scale == optim.Log, columns)
	if in.H > 1 {
		chart.Curve(g, in, axis, m.Opt.ASCII, chart.Layer{Columns: columns, Role: cell.Median, Style: chart.Thin})
		return
	}
	chart.Spark(g, in.X, in.Y, chart.Of(l.curve(k, in.W)), nil, axis, cell.Median)
}
