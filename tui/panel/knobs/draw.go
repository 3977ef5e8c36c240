package knobs

import (
	"fmt"
	"strings"

	"brood/optim"
	"brood/runtime/timeline"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

func (r *Rail) title(m *panel.Host) (string, string) {
	return "knobs", m.FilterNote("knobs", m.Shown.Algorithm())
}

const (
	railFoot = 5 // lines below the list: a rule, the knob's doc and the answer
	sparkW   = 5 // leaves space for a factor such as "x 0.64*"
)

// window returns the first visible row of the list and the number of rows.
func (r *Rail) window(m *panel.Host, in cell.Rect) (first, n int) {
	knobs := r.Knobs(m)
	foot := railFoot
	if r.Typing != nil {
		foot = 0
	}
	n = min(len(knobs), max(1, in.H-foot))
	return min(max(0, r.index(knobs)-n/2), len(knobs)-n), n
}

// point selects the knob under the mouse, unless a value is being typed.
func (r *Rail) point(m *panel.Host, in cell.Rect, _, y int) {
	if r.Typing != nil {
		return
	}
	first, n := r.window(m, in)
	if i := y - in.Y; i >= 0 && i < n {
		r.Selected = r.Knobs(m)[first+i].Name
	}
}

func (r *Rail) draw(m *panel.Host, g *cell.Grid, in cell.Rect) {
	knobs := r.Knobs(m)
	if len(knobs) == 0 {
		panel.Explain(g, in, m.NoMatchText("knobs", "knob"))
		return
	}
	at := r.index(knobs)
	if r.Typing != nil {
		in = r.editor(m, g, in, knobs[at])
	}
	first, n := r.window(m, in)
	for i := range n {
		r.row(m, g, cell.Rect{X: in.X, Y: in.Y + i, W: in.W, H: 1}, knobs[first+i], first+i == at)
	}
	panel.DrawMore(g, in.X+in.W-1, in.Y, first, n, len(knobs))
	if foot := in.H - n; foot >= 2 && r.Typing == nil {
		_, rest := in.Top(in.H - min(foot, railFoot))
		r.foot(m, g, rest, knobs[at])
	}
}

// hiddenText returns the text in place of knobs that have no effect; "" if all are shown.
func (r *Rail) hiddenText(m *panel.Host) string {
	switch n := r.hiddenCount(m); n {
	case 0:
		return ""
	case 1:
		return "1 without effect: i shows it"
	default:
		return fmt.Sprintf("%d without effect: i shows them", n)
	}
}

// row draws a knob: its name, its value in effect and, at the right, the staged or pending value or its schedule.
func (r *Rail) row(m *panel.Host, g *cell.Grid, in cell.Rect, k optim.Knob, chosen bool) {
	role := cell.Plain
	if chosen && m.Focus == panel.Knobs {
		role = cell.FocusTitle
	}
	if chosen {
		g.Set(in.X+1, in.Y, '▸', role)
	}
	label, value := m.KnobLabel(k), inEffect(m, k)
	end := max(23, 3+cell.Width(label)+1+min(9, cell.Width(value))) // a long label shifts the columns after it
	g.Text(in.X+3, in.Y, in.W-4, role, label)
	g.Right(in.X+end, in.Y, 9, role, value)
	x, w := in.X+end+1, in.W-end-2
	if expr, ok := r.StagedExpr(k.Name); ok {
		if m.Knobs == nil || !timeline.Moves(expr) {
			g.Text(x, in.Y, w, cell.Staged, "→ "+expr+"*")
			return
		}
		r.spark(m, g, x, in.Y, w, k, m.Knobs.With(k.Name, expr), timeline.Readable(expr)+"*", cell.Staged)
		return
	}
	if m.Knobs == nil {
		return
	}
	if e, ok := m.Knobs.Pending(k.Name); ok {
		g.Text(x, in.Y, w, cell.Good, "→ "+timeline.Text(e)+" @"+textfmt.Grouped(e.First()))
		return
	}
	if expr, moving := m.Knobs.Expr(k.Name); moving {
		word, _, _ := strings.Cut(expr, ":")
		if f := timeline.Factor(expr); f != 1 {
			word = fmt.Sprintf("x %.4g", f)
		}
		r.spark(m, g, x, in.Y, w, k, m.Knobs, word, cell.Median)
		return
	}
	wide := w
	if len(k.Choices) == 0 {
		wide = min(w, 14)
	}
	panel.DrawGauge(g, x+1, in.Y, wide-1, k, m.KnobValue(k), cell.Median, m.Opt.ASCII)
}

// spark draws a schedule over the run in sparkW columns, with a word after it.
func (r *Rail) spark(m *panel.Host, g *cell.Grid, x, y, w int, k optim.Knob, knobs *view.Knobs, word string,
	role cell.Role) {
	lo, hi := r.Horizon(m)
	c := chart.Of(knobs.Curve(k, lo, hi, sparkW))
	chart.Spark(g, x, y, c, nil, chart.FitAxis(k.Scale == optim.Log, c), role)
	if role == cell.Median {
		role = cell.Faint
	}
	g.Text(x+sparkW+1, y, w-sparkW-1, role, word)
}

// inEffect returns the current value of a knob. Before the first plan there is no population size.
func inEffect(m *panel.Host, k optim.Knob) string {
	if k.Name == view.MembersKnob && m.Shown.Plan == nil {
		return "–"
	}
	return panel.KnobText(k, m.KnobValue(k))
}

// foot describes the selected knob and the result of the last change, below a rule with the number of hidden knobs.
func (r *Rail) foot(m *panel.Host, g *cell.Grid, in cell.Rect, k optim.Knob) {
	for x := in.X + 1; x < in.X+in.W-1; x++ {
		g.Set(x, in.Y, '╌', cell.Border)
	}
	if hidden := r.hiddenText(m); hidden != "" {
		g.Text(in.X+2, in.Y, in.W-4, cell.Faint, " "+hidden+" ")
	}
	y, end := in.Y+1, in.Y+in.H-1
	about := []string{m.KnobTitle(k) + panel.BoundsText(k)}
	if cell.Width(about[0]) > in.W-2 {
		about = textfmt.Wrap(about[0], in.W-2)
	}
	for _, l := range about {
		if y < end {
			g.Text(in.X+1, y, in.W-2, cell.Faint, l)
			y++
		}
	}
	note := r.Footnote(m, k)
	lines, role := textfmt.Wrap(note.Text, in.W-2), note.role
	if len(r.Staged) > 0 && note.Text == "" {
		role, lines = cell.Staged, append(r.stagedEffect(m, k, in.W-2), r.stagedLine(m))
	}
	own := len(lines) // the schedule and, without another message, the doc of the knob follow
	if len(r.Staged) == 0 {
		lines = append(lines, r.scheduleLines(m, k, note, in.W-2)...)
	}
	if own == 0 || note.fromHistory {
		lines = append(lines, textfmt.Wrap(k.Doc, in.W-2)...)
	}
	for i, l := range lines {
		if y+i > end {
			break
		}
		if y+i == end && i < len(lines)-1 {
			l += "…"
		}
		if i == own {
			role = cell.Faint
		}
		g.Text(in.X+1, y+i, in.W-2, role, l)
	}
}

// scheduleLines returns the schedule in effect as a text, unless the footnote contains it.
func (r *Rail) scheduleLines(m *panel.Host, k optim.Knob, note footnote, width int) []string {
	was, moving := r.schedule(m, k)
	if !moving || note.fromHistory && note.Text != "" {
		return nil
	}
	return textfmt.Wrap("follows "+was, width)
}

// stagedEffect returns the whole staged schedule of a knob, since its row truncates it, or what its staged value does
// to the schedule in effect.
func (r *Rail) stagedEffect(m *panel.Host, k optim.Knob, width int) []string {
	expr, ok := r.StagedExpr(k.Name)
	switch {
	case !ok:
		return nil
	case strings.Contains(expr, ":"):
		return textfmt.Wrap(timeline.Readable(expr), width)
	}
	return textfmt.Wrap(r.effect(m, k, expr), width)
}
