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

func railTitle(m *model) (string, string) {
	return "knobs", m.filterNote("knobs", m.shown.Algorithm())
}

const railFoot = 5 // lines below the list: a rule, the knob's doc and the answer

// railWindow is the first row of the list and how many there are.
func (m *model) railWindow(r cell.Rect) (first, n int) {
	total := len(m.railKnobs())
	n = min(total, max(1, r.H-railFoot))
	return min(max(0, m.rail.cursor-n/2), total-n), n
}

// point chooses the knob under the mouse.
func (r *rail) point(m *model, in cell.Rect, _, y int) {
	first, n := m.railWindow(in)
	if i := y - in.Y; i >= 0 && i < n {
		r.cursor = first + i
	}
}

func drawRail(m *model, g *cell.Grid, r cell.Rect) {
	knobs := m.railKnobs()
	if len(knobs) == 0 {
		explain(g, r, m.nothing("knobs", "knob"))
		return
	}
	first, n := m.railWindow(r)
	m.rail.cursor = min(m.rail.cursor, len(knobs)-1)
	for i := range n {
		m.railRow(g, cell.Rect{X: r.X, Y: r.Y + i, W: r.W, H: 1}, knobs[first+i], first+i == m.rail.cursor)
	}
	if first > 0 {
		g.Set(r.X+r.W-1, r.Y, '↑', cell.Faint)
	}
	if first+n < len(knobs) {
		g.Set(r.X+r.W-1, r.Y+n-1, '↓', cell.Faint)
	}
	if foot := r.H - n; foot >= 2 {
		_, rest := r.Top(r.H - min(foot, railFoot))
		m.railFoot(g, rest, knobs[m.rail.cursor])
	}
}

// railRow is a knob: name, value in effect, and to the right what is staged, pending or how it moves.
func (m *model) railRow(g *cell.Grid, r cell.Rect, k optim.Knob, chosen bool) {
	role := cell.Plain
	if chosen && m.focus == knobsPanel {
		role = cell.FocusTitle
	}
	if chosen {
		g.Set(r.X+1, r.Y, '▸', role)
	}
	g.Text(r.X+3, r.Y, 11, role, k.Name)
	g.Right(r.X+23, r.Y, 9, role, short(k, m.current(k)))
	x, w := r.X+24, r.W-25
	if chosen && m.rail.typing != nil {
		m.drawTyping(g, x, r.Y, w)
		return
	}
	if expr, ok := m.rail.of(k.Name); ok {
		if m.knobs == nil || !strings.Contains(expr, ":") {
			g.Text(x, r.Y, w, cell.Staged, "→ "+expr+"*")
			return
		}
		m.railSpark(g, x, r.Y, w, k, m.knobs.With(k.Name, expr), expr+"*", cell.Staged)
		return
	}
	if m.knobs == nil {
		return
	}
	if e, ok := m.knobs.Pending(k.Name); ok {
		g.Text(x, r.Y, w, cell.Good, "→ "+e.Expr+" @"+round(e.First()))
		return
	}
	if expr, moving := m.knobs.Expr(k.Name); moving {
		form, _, _ := strings.Cut(expr, ":")
		m.railSpark(g, x, r.Y, w, k, m.knobs, form, cell.Median)
	}
}

// railSpark is a schedule over the run in six columns, with a word behind it.
func (m *model) railSpark(g *cell.Grid, x, y, w int, k optim.Knob, knobs *view.Knobs, word string, role cell.Role) {
	lo, hi := m.horizon()
	c := chart.Of(knobs.Curve(k, lo, hi, 6))
	chart.Spark(g, x, y, c, nil, chart.Fit(k.Scale == optim.Log, c), role)
	if role == cell.Median {
		role = cell.Faint
	}
	g.Text(x+7, y, w-7, role, word)
}

func (m *model) drawTyping(g *cell.Grid, x, y, w int) {
	l := m.rail.typing
	from := max(0, l.at-w+1)
	g.Text(x, y, w, cell.Staged, string(l.runes[from:min(len(l.runes), from+w)]))
	c := g.At(x+l.at-from, y)
	g.Set(x+l.at-from, y, c.R, cell.Chosen)
	if m.opt.NoColor && c.R == ' ' {
		g.Set(x+l.at-from, y, '_', cell.Chosen)
	}
}

// short is a value within nine characters.
func short(k optim.Knob, x float64) string {
	if len(k.Choices) > 0 {
		return k.Format(x)
	}
	if k.Integer && math.Abs(x) < 1e8 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

// railFoot explains the chosen knob and tells what became of the last change.
func (m *model) railFoot(g *cell.Grid, r cell.Rect, k optim.Knob) {
	for x := r.X + 1; x < r.X+r.W-1; x++ {
		g.Set(x, r.Y, '╌', cell.Border)
	}
	y, end := r.Y+1, r.Y+r.H-1
	if y < end {
		g.Text(r.X+1, y, r.W-2, cell.Faint, k.Title+limits(k))
		y++
	}
	answer, role := m.rail.answer.text, cell.Good
	if m.rail.answer.bad {
		role = cell.Alert
	}
	lines := wrap(answer, r.W-2)
	if n := len(m.rail.staged); n > 0 && answer == "" {
		role, lines = cell.Staged, append(m.stagedSchedule(k, r.W-2), m.stagedLine())
	}
	if answer == "" && len(m.rail.staged) == 0 {
		role, lines = cell.Faint, wrap(k.Doc, r.W-2)
	}
	for i, l := range lines {
		if y+i > end {
			break
		}
		if y+i == end && i < len(lines)-1 {
			l += "…"
		}
		g.Text(r.X+1, y+i, r.W-2, role, l)
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

// stagedSchedule is what is staged for a knob, whole, where its row cuts it.
func (m *model) stagedSchedule(k optim.Knob, width int) []string {
	if expr, ok := m.rail.of(k.Name); ok && strings.Contains(expr, ":") {
		return wrap(expr, width)
	}
	return nil
}

// horizon is the rounds over which schedules are drawn: to the end or the limit, and without one twice as far as the run is.
func (m *model) horizon() (lo, hi uint64) {
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
	for _, s := range m.rail.staged { // what is staged is drawn to its end
		if m.knobs != nil && v.Limit.Epochs == 0 {
			hi = max(hi, m.knobs.With(s.Knob, s.Expr).Ends(s.Knob))
		}
	}
	return 0, hi
}
