package knobs

import (
	"slices"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/timeline"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// The editor is shown while a value is typed: the input, and the preview of what it requests.
const (
	editorH    = 11 // most lines of the editor
	editorList = 2  // least lines of the list above it
)

// editor draws the value being typed at the bottom of a panel, and returns the area above it.
func (r *Rail) editor(m *panel.Host, g *cell.Grid, in cell.Rect, k optim.Knob) cell.Rect {
	rest, low := in.Top(max(min(editorList, in.H-3), in.H-editorH))
	for x := low.X + 1; x < low.X+low.W-1; x++ {
		g.Set(x, low.Y, '╌', cell.Border)
	}
	x := g.Text(low.X+1, low.Y+1, low.W-2, cell.Plain, m.KnobLabel(k)+" = ")
	panel.DrawInput(m, g, x, low.Y+1, low.X+low.W-1-x, cell.Staged, r.Typing)
	_, below := low.Top(2)
	r.DrawPreview(m, g, cell.Rect{X: below.X + 1, Y: below.Y, W: below.W - 2, H: below.H}, k, r.Typing.Text())
	return rest
}

// DrawPreview draws the effect of a typed value of a knob: its curve over the run with the present round, in front of
// the present one; its values now, after another tenth of the run, and at the end; and what happens to a schedule. For
// an invalid value it draws the present curve and values, and the reason.
func (r *Rail) DrawPreview(m *panel.Host, g *cell.Grid, in cell.Rect, k optim.Knob, text string) {
	expr, err := r.Evaluate(m, k, text)
	if err == nil {
		err = r.check(m, k, expr)
	}
	effect, role := r.effect(m, k, expr), cell.Staged
	if err != nil {
		if expr, effect, role = "", err.Error(), cell.Faint; r.Answer.Bad && r.Typing != nil { // enter was pressed
			role = cell.Alert
		}
	}
	lines := textfmt.Wrap(effect, in.W)
	if n := max(1, in.H-2); len(lines) > n {
		lines = lines[:n]
		lines[n-1] += "…"
	}
	area, low := in.Top(max(0, in.H-len(lines)-1))
	for i, l := range lines {
		g.Text(low.X, low.Y+1+i, low.W, role, l)
	}
	if m.Knobs == nil || k.Name == view.MembersKnob || len(k.Choices) > 0 {
		return
	}
	var more []event.Setting
	if expr != "" {
		more = []event.Setting{{Knob: k.Name, Expr: expr}}
	}
	lo, hi := r.horizon(m, more...)
	g.Text(low.X, low.Y, low.W, cell.Plain, valuesText(m, k, expr, lo, hi))
	r.drawCurves(m, g, area, k, expr, lo, hi)
}

// PreviewLines returns the number of lines that DrawPreview needs: a curve only for schedules.
func (r *Rail) PreviewLines(m *panel.Host, k optim.Knob, text string) int {
	if r.moves(m, k) || timeline.Moves(text) {
		return 6
	}
	return 2
}

// valuesText returns the values of a knob in the next round, a tenth of the run later and at its end; with an edit if
// expr is not empty.
func valuesText(m *panel.Host, k optim.Knob, expr string, lo, hi uint64) string {
	now, with := m.Shown.Progress.Rounds, m.Knobs
	if expr != "" {
		with = with.With(k.Name, expr)
	}
	at := func(round uint64) string { return panel.KnobText(k, with.At(k, round)) }
	return "now " + at(now) + "   +10 % " + at(max(now, min(hi, now+(hi-lo)/10))) + "   end " + at(max(now, hi))
}

// effect describes what an edit does to the schedule that its knob follows.
func (r *Rail) effect(m *panel.Host, k optim.Knob, expr string) string {
	was, moving := r.schedule(m, k)
	switch {
	case !moving && timeline.Moves(expr):
		return "starts a schedule"
	case !moving:
		return ""
	case timeline.Scales(expr):
		return "scales the schedule " + was + " " + timeline.Readable(expr)
	case timeline.Moves(expr):
		return "replaces the schedule " + was
	}
	return "ends the schedule " + was + " (*0.5 scales it)"
}

// drawCurves draws the curve of a knob over the run, with an edit in front, and the present round.
func (r *Rail) drawCurves(m *panel.Host, g *cell.Grid, in cell.Rect, k optim.Knob, expr string, lo, hi uint64) {
	if in.H < 1 || in.W < 1 {
		return
	}
	now := m.Shown.Progress.Rounds
	x := in.X + min(in.W-1, int(float64(in.W)*float64(now-min(lo, now))/float64(max(1, hi-lo))))
	for y := in.Y; y < in.Y+in.H; y++ {
		g.Set(x, y, '│', cell.Focus)
	}
	layers := r.curves(m, k, expr, lo, hi, 2*in.W)
	axis := chart.FitAxis(k.Scale == optim.Log, columns(layers)...)
	if in.H > 1 {
		chart.Curve(g, in, axis, m.Opt.ASCII, layers...)
		return
	}
	last := r.curves(m, k, expr, lo, hi, in.W)[len(layers)-1]
	chart.Spark(g, in.X, in.Y, last.Columns, nil, axis, last.Role)
	g.Set(x, in.Y, '│', cell.Focus)
}

// curves returns the curve of a knob over the run and, if expr is not empty, behind it the curve with that edit.
func (r *Rail) curves(m *panel.Host, k optim.Knob, expr string, lo, hi uint64, n int) []chart.Layer {
	out := []chart.Layer{{Columns: chart.Of(m.Knobs.Curve(k, lo, hi, n)), Role: cell.Median, Style: chart.Thin}}
	if expr != "" {
		out = append(out, chart.Layer{
			Columns: chart.Of(m.Knobs.With(k.Name, expr).Curve(k, lo, hi, n)),
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

// Horizon returns the rounds over which schedules are drawn: to the end or the limit, and without a limit to twice
// the current round.
func (r *Rail) Horizon(m *panel.Host) (lo, hi uint64) { return r.horizon(m) }

// horizon is Horizon with further edits, such as one that is being typed.
func (r *Rail) horizon(m *panel.Host, more ...event.Setting) (lo, hi uint64) {
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
	for _, s := range append(slices.Clone(r.Staged), more...) { // draw staged schedules to their end
		if m.Knobs != nil && v.Limit.Epochs == 0 {
			hi = max(hi, m.Knobs.With(s.Knob, s.Expr).Ends(s.Knob))
		}
	}
	return 0, hi
}
