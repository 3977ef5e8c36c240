package tui

import (
	"brood/optim"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

func schedulesTitle(m *model) (string, string) {
	_, hi := m.horizon()
	return "knobs and schedules", m.filterNote("knobs", "rounds 0–"+round(hi))
}

// drawSchedules is a row for each knob: name, value now, the curve over the run with a line at the present, expression.
func drawSchedules(m *model, g *cell.Grid, r cell.Rect) {
	knobs := m.railKnobs()
	if len(knobs) == 0 {
		explain(g, r, m.nothing("knobs", "knob"))
		return
	}
	m.rail.cursor = min(m.rail.cursor, len(knobs)-1)
	g.Text(r.X+3, r.Y, 12, cell.Faint, "knob")
	g.Right(r.X+25, r.Y, 9, cell.Faint, "now")
	w := max(8, (r.W-28)/2)
	g.Text(r.X+28, r.Y, w, cell.Faint, "over the run")
	g.Text(r.X+30+w, r.Y, r.W-31-w, cell.Faint, "governed by")
	tall := min(4, max(1, (r.H-1)/len(knobs)))
	n := (r.H - 1) / tall
	first := min(max(0, m.rail.cursor-n/2), max(0, len(knobs)-n))
	lo, hi := m.horizon()
	for i := 0; i < n && first+i < len(knobs); i++ {
		k, y := knobs[first+i], r.Y+1+i*tall
		role := cell.Plain
		if first+i == m.rail.cursor {
			role = cell.FocusTitle
			g.Set(r.X+1, y, '▸', role)
		}
		g.Text(r.X+3, y, 12, role, k.Name)
		g.Right(r.X+25, y, 9, role, short(k, m.current(k)))
		m.scheduleRow(g, cell.Rect{X: r.X + 28, Y: y, W: w, H: max(1, tall-1)}, k, lo, hi)
		m.governed(g, cell.Rect{X: r.X + 30 + w, Y: y, W: r.W - 31 - w, H: 1}, k, first+i == m.rail.cursor)
	}
}

// scheduleRow draws a knob's curve over the run, with a line at the present.
func (m *model) scheduleRow(g *cell.Grid, r cell.Rect, k optim.Knob, lo, hi uint64) {
	if m.knobs == nil || k.Name == view.MembersKnob {
		return
	}
	now := r.X + min(r.W-1, int(float64(r.W)*float64(m.shown.Progress.Rounds-min(lo, m.shown.Progress.Rounds))/float64(max(1, hi-lo))))
	layers := m.curves(k, lo, hi, 2*r.W)
	axis := chart.Fit(k.Scale == optim.Log, columns(layers)...)
	for y := r.Y; y < r.Y+r.H; y++ {
		g.Set(now, y, '│', cell.Focus)
	}
	if r.H > 1 {
		chart.Curve(g, r, axis, m.opt.ASCII, layers...)
		return
	}
	last := m.curves(k, lo, hi, r.W)[len(layers)-1]
	chart.Spark(g, r.X, r.Y, last.Columns, nil, axis, last.Role)
	g.Set(now, r.Y, '│', cell.Focus)
}

// curves are a knob over the run as it is, and behind it as what is staged would make it from now on.
func (m *model) curves(k optim.Knob, lo, hi uint64, n int) []chart.Layer {
	out := []chart.Layer{{Columns: chart.Of(m.knobs.Curve(k, lo, hi, n)), Role: cell.Median, Style: chart.Thin}}
	if expr, ok := m.rail.of(k.Name); ok {
		out = append(out, chart.Layer{Columns: chart.Of(m.knobs.With(k.Name, expr).Curve(k, lo, hi, n)), Role: cell.Staged, Style: chart.Thin, Glyph: 'o'})
	}
	return out
}

func columns(layers []chart.Layer) (out [][]view.Bucket) {
	for _, l := range layers {
		out = append(out, l.Columns)
	}
	return out
}

// governed says where a knob's value comes from.
func (m *model) governed(g *cell.Grid, r cell.Rect, k optim.Knob, chosen bool) {
	if chosen && m.rail.typing != nil {
		m.drawTyping(g, r.X, r.Y, r.W)
		return
	}
	if expr, ok := m.rail.of(k.Name); ok {
		g.Text(r.X, r.Y, r.W, cell.Staged, "→ "+expr+"*")
		return
	}
	if m.knobs == nil || k.Name == view.MembersKnob {
		return
	}
	if e, ok := m.knobs.Pending(k.Name); ok {
		g.Text(r.X, r.Y, r.W, cell.Good, "→ "+e.Expr+" from round "+round(e.First()))
		return
	}
	h := m.knobs.History(k.Name)
	if len(h) == 0 {
		g.Text(r.X, r.Y, r.W, cell.Faint, "default")
		return
	}
	expr, moving := m.knobs.Expr(k.Name)
	if !moving {
		expr = "set"
	}
	by := h[len(h)-1].By
	if by != "" {
		expr += "  " + by
	}
	g.Text(r.X, r.Y, r.W, cell.Faint, expr)
}

func knobTitle(m *model) (string, string) {
	k := m.rail.chosen(m)
	return k.Name, k.Title
}

// drawKnob is all there is to know of the chosen knob.
func drawKnob(m *model, g *cell.Grid, r cell.Rect) {
	k := m.rail.chosen(m)
	y := r.Y
	put := func(role cell.Role, s string) {
		if y < r.Y+r.H {
			g.Text(r.X+1, y, r.W-2, role, s)
			y++
		}
	}
	for _, l := range wrap(k.Doc, r.W-2) {
		put(cell.Plain, l)
	}
	put(cell.Faint, "bounds"+limits(k)+", default "+k.Format(k.Default))
	answer, role := m.rail.answer.text, cell.Good
	if m.rail.answer.bad {
		role = cell.Alert
	}
	if answer == "" && len(m.rail.staged) > 0 {
		for _, l := range m.stagedSchedule(k, r.W-2) {
			put(cell.Staged, l)
		}
		answer, role = m.stagedLine(), cell.Staged
	}
	for _, l := range wrap(answer, r.W-2) {
		put(role, l)
	}
	rest := r.Y + r.H - y
	if m.knobs == nil || k.Name == view.MembersKnob || rest < 6 {
		return
	}
	y++
	lo, hi := m.horizon()
	area := cell.Rect{X: r.X, Y: y, W: r.W - 1, H: rest - 1}
	layers := m.curves(k, lo, hi, 2*chart.Plot(area).W)
	chart.Draw(g, area, chart.Chart{From: lo, To: hi + 1, Axis: chart.Fit(k.Scale == optim.Log, columns(layers)...), Now: &m.shown.Progress.Rounds, ASCII: m.opt.ASCII,
		Layers: layers})
}

func historyTitle(m *model) (string, string) { return "edits", "newest first" }

// drawHistory lists all edits of the algorithm; those of the chosen knob stand out.
func drawHistory(m *model, g *cell.Grid, r cell.Rect) {
	chosen, y := m.rail.chosen(m).Name, r.Y
	for i := len(m.shown.Edits) - 1; i >= 0 && y < r.Y+r.H; i-- {
		e := m.shown.Edits[i]
		if e.Algorithm != m.shown.Algorithm() {
			continue
		}
		role, text := cell.Faint, e.Knob+"  "+e.Expr
		if e.Old != "" {
			text = e.Knob + "  " + e.Old + " → " + e.Expr
		}
		if e.Knob == chosen {
			role = cell.Plain
			g.Set(r.X+1, y, '▸', cell.Focus)
		}
		g.Right(r.X+10, y, 8, cell.Faint, round(e.First()))
		x := g.Text(r.X+12, y, r.W-13, role, text)
		by := e.By
		if e.Void {
			by += ", before the swap"
		}
		g.Text(x+2, y, r.X+r.W-x-3, cell.Faint, by)
		y++
	}
	if y == r.Y {
		explain(g, r, "no knob was changed: all have their defaults")
	}
}
