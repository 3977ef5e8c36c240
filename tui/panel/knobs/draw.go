package knobs

import (
	"fmt"
	"strings"

	"brood/optim"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

func (r *Rail) title(m *panel.Host) (string, string) {
	return "knobs", m.FilterNote("knobs", m.Shown.Algorithm())
}

const railFoot = 5 // lines below the list: a rule, the knob's doc and the answer

// window returns the first visible row of the list and the number of rows.
func (r *Rail) window(m *panel.Host, in cell.Rect) (first, n int) {
	knobs := r.Knobs(m)
	n = min(len(knobs), max(1, in.H-railFoot))
	return min(max(0, r.index(knobs)-n/2), len(knobs)-n), n
}

// point selects the knob under the mouse.
func (r *Rail) point(m *panel.Host, in cell.Rect, _, y int) {
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
	first, n := r.window(m, in)
	at := r.index(knobs)
	for i := range n {
		r.row(m, g, cell.Rect{X: in.X, Y: in.Y + i, W: in.W, H: 1}, knobs[first+i], first+i == at)
	}
	if first > 0 {
		g.Set(in.X+in.W-1, in.Y, '↑', cell.Faint)
	}
	if first+n < len(knobs) {
		g.Set(in.X+in.W-1, in.Y+n-1, '↓', cell.Faint)
	}
	if hidden := r.hiddenCount(m); hidden > 0 && first+n == len(knobs) && in.H-n > railFoot {
		g.Text(in.X+3, in.Y+n, in.W-4, cell.Faint, hiddenText(hidden))
	}
	if foot := in.H - n; foot >= 2 {
		_, rest := in.Top(in.H - min(foot, railFoot))
		r.foot(m, g, rest, knobs[at])
	}
}

// hiddenText returns the line in place of n knobs that have no effect.
func hiddenText(n int) string {
	if n == 1 {
		return "1 without effect: i shows it"
	}
	return fmt.Sprintf("%d without effect: i shows them", n)
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
	if chosen && r.Typing != nil {
		panel.DrawInput(m, g, x, in.Y, w, cell.Staged, r.Typing)
		return
	}
	if expr, ok := r.StagedExpr(k.Name); ok {
		if m.Knobs == nil || !strings.Contains(expr, ":") {
			g.Text(x, in.Y, w, cell.Staged, "→ "+expr+"*")
			return
		}
		r.spark(m, g, x, in.Y, w, k, m.Knobs.With(k.Name, expr), expr+"*", cell.Staged)
		return
	}
	if m.Knobs == nil {
		return
	}
	if e, ok := m.Knobs.Pending(k.Name); ok {
		g.Text(x, in.Y, w, cell.Good, "→ "+e.Expr+" @"+textfmt.Grouped(e.First()))
		return
	}
	if expr, moving := m.Knobs.Expr(k.Name); moving {
		form, _, _ := strings.Cut(expr, ":")
		r.spark(m, g, x, in.Y, w, k, m.Knobs, form, cell.Median)
		return
	}
	wide := w
	if len(k.Choices) == 0 {
		wide = min(w, 14)
	}
	panel.DrawGauge(g, x+1, in.Y, wide-1, k, m.KnobValue(k), cell.Median, m.Opt.ASCII)
}

// spark draws a schedule over the run in six columns, with a word after it.
func (r *Rail) spark(m *panel.Host, g *cell.Grid, x, y, w int, k optim.Knob, knobs *view.Knobs, word string,
	role cell.Role) {
	lo, hi := r.Horizon(m)
	c := chart.Of(knobs.Curve(k, lo, hi, 6))
	chart.Spark(g, x, y, c, nil, chart.FitAxis(k.Scale == optim.Log, c), role)
	if role == cell.Median {
		role = cell.Faint
	}
	g.Text(x+7, y, w-7, role, word)
}

// inEffect returns the current value of a knob. Before the first plan there is no population size.
func inEffect(m *panel.Host, k optim.Knob) string {
	if k.Name == view.MembersKnob && m.Shown.Plan == nil {
		return "–"
	}
	return panel.KnobText(k, m.KnobValue(k))
}

// foot describes the selected knob and the result of the last change.
func (r *Rail) foot(m *panel.Host, g *cell.Grid, in cell.Rect, k optim.Knob) {
	for x := in.X + 1; x < in.X+in.W-1; x++ {
		g.Set(x, in.Y, '╌', cell.Border)
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
		role, lines = cell.Staged, append(r.stagedSchedule(k, in.W-2), r.stagedLine(m))
	}
	own := len(lines) // without another message the doc of the knob follows
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

// stagedSchedule returns the whole staged schedule of a knob if its row truncates it.
func (r *Rail) stagedSchedule(k optim.Knob, width int) []string {
	if expr, ok := r.StagedExpr(k.Name); ok && strings.Contains(expr, ":") {
		return textfmt.Wrap(expr, width)
	}
	return nil
}

// Horizon returns the rounds over which schedules are drawn: to the end or the limit, and without a limit to twice
// the current round.
func (r *Rail) Horizon(m *panel.Host) (lo, hi uint64) {
	v := m.Shown
	switch {
	case v.Over():
		return 0, max(v.Progress.Rounds, 1)
	case v.Limit.Rounds > 0:
		return 0, max(v.Limit.Rounds, v.Progress.Rounds)
	}
	hi = max(2*v.Progress.Rounds, 10)
	if v.Limit.Epochs > 0 && v.Progress.Epochs > 0 {
		hi = max(v.Progress.Rounds, uint64(v.Limit.Epochs/v.Progress.Epochs*float64(v.Progress.Rounds)))
	}
	for _, s := range r.Staged { // draw staged schedules to their end
		if m.Knobs != nil && v.Limit.Epochs == 0 {
			hi = max(hi, m.Knobs.With(s.Knob, s.Expr).Ends(s.Knob))
		}
	}
	return 0, hi
}
