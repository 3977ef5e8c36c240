package tui

import (
	"fmt"
	"math"
	"strings"

	"brood/optim"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

func (r *rail) title(m *model) (string, string) {
	return "knobs", m.filterNote("knobs", m.shown.Algorithm())
}

const railFoot = 5 // lines below the list: a rule, the knob's doc and the answer

// window returns the first visible row of the list and the number of rows.
func (r *rail) window(m *model, in cell.Rect) (first, n int) {
	knobs := r.knobs(m)
	n = min(len(knobs), max(1, in.H-railFoot))
	return min(max(0, r.index(knobs)-n/2), len(knobs)-n), n
}

// point selects the knob under the mouse.
func (r *rail) point(m *model, in cell.Rect, _, y int) {
	first, n := r.window(m, in)
	if i := y - in.Y; i >= 0 && i < n {
		r.selected = r.knobs(m)[first+i].Name
	}
}

func (r *rail) draw(m *model, g *cell.Grid, in cell.Rect) {
	knobs := r.knobs(m)
	if len(knobs) == 0 {
		explain(g, in, m.nothing("knobs", "knob"))
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
	if hidden := r.folded(m); hidden > 0 && first+n == len(knobs) && in.H-n > railFoot {
		g.Text(in.X+3, in.Y+n, in.W-4, cell.Faint, foldedText(hidden))
	}
	if foot := in.H - n; foot >= 2 {
		_, rest := in.Top(in.H - min(foot, railFoot))
		r.foot(m, g, rest, knobs[at])
	}
}

// foldedText returns the line in place of n knobs that have no effect.
func foldedText(n int) string {
	if n == 1 {
		return "1 without effect: i shows it"
	}
	return fmt.Sprintf("%d without effect: i shows them", n)
}

// row draws a knob: its name, its value in effect and, at the right, the staged or pending value or its schedule.
func (r *rail) row(m *model, g *cell.Grid, in cell.Rect, k optim.Knob, chosen bool) {
	role := cell.Plain
	if chosen && m.focus == knobsPanel {
		role = cell.FocusTitle
	}
	if chosen {
		g.Set(in.X+1, in.Y, '▸', role)
	}
	label, value := m.label(k), m.inEffect(k)
	end := max(23, 3+cell.Width(label)+1+min(9, cell.Width(value))) // a long label shifts the columns after it
	g.Text(in.X+3, in.Y, in.W-4, role, label)
	g.Right(in.X+end, in.Y, 9, role, value)
	x, w := in.X+end+1, in.W-end-2
	if chosen && r.typing != nil {
		r.drawTyping(m, g, x, in.Y, w)
		return
	}
	if expr, ok := r.of(k.Name); ok {
		if m.knobs == nil || !strings.Contains(expr, ":") {
			g.Text(x, in.Y, w, cell.Staged, "→ "+expr+"*")
			return
		}
		r.spark(m, g, x, in.Y, w, k, m.knobs.With(k.Name, expr), expr+"*", cell.Staged)
		return
	}
	if m.knobs == nil {
		return
	}
	if e, ok := m.knobs.Pending(k.Name); ok {
		g.Text(x, in.Y, w, cell.Good, "→ "+e.Expr+" @"+round(e.First()))
		return
	}
	if expr, moving := m.knobs.Expr(k.Name); moving {
		form, _, _ := strings.Cut(expr, ":")
		r.spark(m, g, x, in.Y, w, k, m.knobs, form, cell.Median)
		return
	}
	wide := w
	if len(k.Choices) == 0 {
		wide = min(w, 14)
	}
	gauge(g, x+1, in.Y, wide-1, k, m.current(k), cell.Median, m.opt.ASCII)
}

// spark draws a schedule over the run in six columns, with a word after it.
func (r *rail) spark(m *model, g *cell.Grid, x, y, w int, k optim.Knob, knobs *view.Knobs, word string,
	role cell.Role) {
	lo, hi := r.horizon(m)
	c := chart.Of(knobs.Curve(k, lo, hi, 6))
	chart.Spark(g, x, y, c, nil, chart.Fit(k.Scale == optim.Log, c), role)
	if role == cell.Median {
		role = cell.Faint
	}
	g.Text(x+7, y, w-7, role, word)
}

func (r *rail) drawTyping(m *model, g *cell.Grid, x, y, w int) { drawTyped(m, g, x, y, w, r.typing) }

// inEffect returns the current value of a knob. Before the first plan there is no population size.
func (m *model) inEffect(k optim.Knob) string {
	if k.Name == view.MembersKnob && m.shown.Plan == nil {
		return "–"
	}
	return short(k, m.current(k))
}

// short formats a value in at most nine characters.
func short(k optim.Knob, x float64) string {
	if len(k.Choices) > 0 {
		return k.Format(x)
	}
	if k.Integer && math.Abs(x) < 1e8 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

// foot describes the selected knob and the result of the last change.
func (r *rail) foot(m *model, g *cell.Grid, in cell.Rect, k optim.Knob) {
	for x := in.X + 1; x < in.X+in.W-1; x++ {
		g.Set(x, in.Y, '╌', cell.Border)
	}
	y, end := in.Y+1, in.Y+in.H-1
	about := []string{m.about(k) + limits(k)}
	if cell.Width(about[0]) > in.W-2 {
		about = wrap(about[0], in.W-2)
	}
	for _, l := range about {
		if y < end {
			g.Text(in.X+1, y, in.W-2, cell.Faint, l)
			y++
		}
	}
	note := r.footnote(m, k)
	lines, role := wrap(note.text, in.W-2), note.role
	if len(r.staged) > 0 && note.text == "" {
		role, lines = cell.Staged, append(r.stagedSchedule(k, in.W-2), r.stagedLine(m))
	}
	own := len(lines) // without another message the doc of the knob follows
	if own == 0 || note.past {
		lines = append(lines, wrap(k.Doc, in.W-2)...)
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

func limits(k optim.Knob) string {
	unit := ""
	if k.Unit != "" {
		unit = " " + k.Unit
	}
	if len(k.Choices) > 0 {
		return ": " + strings.Join(k.Choices, ", ")
	}
	return fmt.Sprintf("  %s–%s%s", short(k, k.Min), short(k, k.Max), unit)
}

// stagedSchedule returns the whole staged schedule of a knob if its row truncates it.
func (r *rail) stagedSchedule(k optim.Knob, width int) []string {
	if expr, ok := r.of(k.Name); ok && strings.Contains(expr, ":") {
		return wrap(expr, width)
	}
	return nil
}

// horizon returns the rounds over which schedules are drawn: to the end or the limit, and without a limit to twice
// the current round.
func (r *rail) horizon(m *model) (lo, hi uint64) {
	v := m.shown
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
	for _, s := range r.staged { // draw staged schedules to their end
		if m.knobs != nil && v.Limit.Epochs == 0 {
			hi = max(hi, m.knobs.With(s.Knob, s.Expr).Ends(s.Knob))
		}
	}
	return 0, hi
}
