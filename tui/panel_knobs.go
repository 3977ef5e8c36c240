package tui

import (
	"cmp"
	"fmt"
	"slices"

	"brood/optim"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

func (r *rail) schedulesTitle(m *model) (string, string) {
	_, hi := r.horizon(m)
	return "knobs and schedules", m.filterNote("knobs", "rounds 0–"+round(hi))
}

// drawSchedules draws a row for each knob: name, current value, curve over the run with a line at the present,
// expression.
func (r *rail) drawSchedules(m *model, g *cell.Grid, in cell.Rect) {
	knobs := r.knobs(m)
	if len(knobs) == 0 {
		explain(g, in, m.nothing("knobs", "knob"))
		return
	}
	at := r.index(knobs)
	name := 12
	for _, k := range knobs {
		name = max(name, min(cell.Width(m.label(k)), 19))
	}
	now := 3 + name + 10 // right end of the values
	w := max(8, (in.W-now-3)/2)
	over, by := now+3, now+5+w
	g.Text(in.X+3, in.Y, name, cell.Faint, "knob")
	g.Right(in.X+now, in.Y, 9, cell.Faint, "now")
	g.Text(in.X+over, in.Y, w, cell.Faint, "over the run")
	g.Text(in.X+by, in.Y, in.W-1-by, cell.Faint, "governed by")
	tall := min(4, max(1, (in.H-1)/len(knobs)))
	n := (in.H - 1) / tall
	if hidden := r.folded(m); hidden > 0 && n*tall < in.H-1 && n >= len(knobs) {
		g.Text(in.X+3, in.Y+1+len(knobs)*tall, in.W-4, cell.Faint, foldedText(hidden))
	}
	first := min(max(0, at-n/2), max(0, len(knobs)-n))
	lo, hi := r.horizon(m)
	for i := 0; i < n && first+i < len(knobs); i++ {
		k, y := knobs[first+i], in.Y+1+i*tall
		role := cell.Plain
		if first+i == at {
			role = cell.FocusTitle
			g.Set(in.X+1, y, '▸', role)
		}
		g.Text(in.X+3, y, name, role, m.label(k))
		g.Right(in.X+now, y, 9, role, m.inEffect(k))
		r.scheduleRow(m, g, cell.Rect{X: in.X + over, Y: y, W: w, H: max(1, tall-1)}, k, lo, hi)
		r.governed(m, g, cell.Rect{X: in.X + by, Y: y, W: in.W - 1 - by, H: 1}, k, first+i == at)
	}
}

// scheduleRow draws a knob's curve over the run, with a line at the present.
func (r *rail) scheduleRow(m *model, g *cell.Grid, in cell.Rect, k optim.Knob, lo, hi uint64) {
	if k.Name == view.MembersKnob && m.shown.Plan == nil {
		return
	}
	if k.Name == view.MembersKnob {
		gauge(g, in.X, in.Y, in.W, k, m.current(k), cell.Median, m.opt.ASCII)
		return
	}
	if m.knobs == nil {
		return
	}
	if _, staged := r.of(k.Name); !staged && still(m.knobs.Curve(k, lo, hi, in.W)) {
		gauge(g, in.X, in.Y, in.W, k, m.current(k), cell.Median, m.opt.ASCII)
		return
	}
	now := in.X + min(in.W-1, int(float64(in.W)*float64(m.shown.Progress.Rounds-min(lo,
		m.shown.Progress.Rounds))/float64(max(1, hi-lo))))
	layers := r.curves(m, k, lo, hi, 2*in.W)
	axis := chart.Fit(k.Scale == optim.Log, columns(layers)...)
	for y := in.Y; y < in.Y+in.H; y++ {
		g.Set(now, y, '│', cell.Focus)
	}
	if in.H > 1 {
		chart.Curve(g, in, axis, m.opt.ASCII, layers...)
		return
	}
	last := r.curves(m, k, lo, hi, in.W)[len(layers)-1]
	chart.Spark(g, in.X, in.Y, last.Columns, nil, axis, last.Role)
	g.Set(now, in.Y, '│', cell.Focus)
}

// curves returns the curve of a knob over the run, and behind it the curve with the staged edit from now on.
func (r *rail) curves(m *model, k optim.Knob, lo, hi uint64, n int) []chart.Layer {
	out := []chart.Layer{{Columns: chart.Of(m.knobs.Curve(k, lo, hi, n)), Role: cell.Median, Style: chart.Thin}}
	if expr, ok := r.of(k.Name); ok {
		out = append(out, chart.Layer{
			Columns: chart.Of(m.knobs.With(k.Name, expr).Curve(k, lo, hi, n)),
			Role:    cell.Staged,
			Style:   chart.Thin,
			Glyph:   'o',
		})
	}
	return out
}

func columns(layers []chart.Layer) (out [][]view.Bucket) {
	for _, l := range layers {
		out = append(out, l.Columns)
	}
	return out
}

// governed draws where the value of a knob comes from.
func (r *rail) governed(m *model, g *cell.Grid, in cell.Rect, k optim.Knob, chosen bool) {
	if chosen && r.typing != nil {
		r.drawTyping(m, g, in.X, in.Y, in.W)
		return
	}
	if expr, ok := r.of(k.Name); ok {
		g.Text(in.X, in.Y, in.W, cell.Staged, "→ "+expr+"*")
		return
	}
	if m.knobs == nil || k.Name == view.MembersKnob {
		return
	}
	if e, ok := m.knobs.Pending(k.Name); ok {
		g.Text(in.X, in.Y, in.W, cell.Good, "→ "+e.Expr+" from round "+round(e.First()))
		return
	}
	h := m.knobs.History(k.Name)
	if len(h) == 0 {
		g.Text(in.X, in.Y, in.W, cell.Faint, "default")
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
	g.Text(in.X, in.Y, in.W, cell.Faint, expr)
}

func (r *rail) knobTitle(m *model) (string, string) {
	k := r.chosen(m)
	return m.label(k), m.about(k)
}

// drawKnob draws all details of the selected knob.
func (r *rail) drawKnob(m *model, g *cell.Grid, in cell.Rect) {
	k := r.chosen(m)
	y := in.Y
	put := func(role cell.Role, s string) {
		if y < in.Y+in.H {
			g.Text(in.X+1, y, in.W-2, role, s)
			y++
		}
	}
	for _, l := range wrap(k.Doc, in.W-2) {
		put(cell.Plain, l)
	}
	bounds := "bounds" + limits(k)
	if k.Name != view.MembersKnob { // its default is the current size
		bounds += ", default " + k.Initial()
	}
	put(cell.Faint, bounds)
	note := r.footnote(m, k)
	answer, role := note.text, note.role
	if answer == "" && len(r.staged) > 0 {
		for _, l := range r.stagedSchedule(k, in.W-2) {
			put(cell.Staged, l)
		}
		answer, role = r.stagedLine(m), cell.Staged
	}
	for _, l := range wrap(answer, in.W-2) {
		put(role, l)
	}
	rest := in.Y + in.H - y
	if m.knobs == nil || k.Name == view.MembersKnob || rest < 6 {
		return
	}
	y++
	lo, hi := r.horizon(m)
	area := cell.Rect{X: in.X, Y: y, W: in.W - 1, H: rest - 1}
	layers := r.curves(m, k, lo, hi, 2*chart.Plot(area).W)
	chart.Draw(g, area, chart.Chart{
		From:   lo,
		To:     hi + 1,
		Axis:   chart.Fit(k.Scale == optim.Log, columns(layers)...),
		Now:    &m.shown.Progress.Rounds,
		ASCII:  m.opt.ASCII,
		Layers: layers,
	})
}

// turned is a change of a knob or of the population size.
type turned struct {
	round          uint64
	knob, text, by string
}

// history returns the changes of the algorithm's knobs, the newest first.
func (m *model) history() (out []turned) {
	for _, e := range m.shown.Edits {
		if e.Algorithm != m.shown.Algorithm() {
			continue
		}
		t := turned{e.First(), e.Knob, e.Expr, e.Whose()}
		if e.Old != "" {
			t.text = e.Old + " → " + e.Expr
		}
		if e.Void {
			t.by += ", before the swap"
		}
		out = append(out, t)
	}
	for _, k := range m.shown.Marks {
		if k.Before != k.After {
			t := turned{round: k.Round, knob: view.MembersKnob, text: fmt.Sprintf("%d → %d", k.Before, k.After)}
			if k.Alert {
				t.by = "lost"
			}
			out = append(out, t)
		}
	}
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b turned) int { return cmp.Compare(b.round, a.round) })
	return out
}

func historyTitle(m *model) (string, string) { return "edits", "newest first" }

// drawHistory lists all changes of the knobs and highlights those of the selected one.
func (r *rail) drawHistory(m *model, g *cell.Grid, in cell.Rect) {
	chosen, y := r.chosen(m).Name, in.Y
	for _, e := range m.history() {
		if y == in.Y+in.H {
			return
		}
		role := cell.Faint
		if e.knob == chosen {
			role = cell.Plain
			g.Set(in.X+1, y, '▸', cell.Focus)
		}
		g.Right(in.X+10, y, 8, cell.Faint, round(e.round))
		x := g.Text(in.X+12, y, in.W-13, role, m.labelOf(e.knob)+"  "+e.text)
		g.Text(x+2, y, in.X+in.W-x-3, cell.Faint, e.by)
		y++
	}
	if y == in.Y {
		explain(g, in, "no knob was changed: all have their defaults")
	}
}
