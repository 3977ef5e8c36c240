package knobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"brood/optim"
	"brood/runtime/timeline"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

func (r *Rail) schedulesTitle(m *panel.Host) (string, string) {
	_, hi := r.Horizon(m)
	note := "rounds 0–" + textfmt.Grouped(hi)
	if hidden := r.hiddenText(m); hidden != "" {
		note = hidden + " · " + note
	}
	return "knobs and schedules", m.FilterNote("knobs", note)
}

// Widths on the Knobs screen: of the sources at least, if the curves keep theirs.
const (
	sourceW   = 24
	minCurveW = 12
)

// drawSchedules draws a row for each knob: name, current value, curve over the run with a line at the present,
// expression.
func (r *Rail) drawSchedules(m *panel.Host, g *cell.Grid, in cell.Rect) {
	knobs := r.Knobs(m)
	if len(knobs) == 0 {
		panel.Explain(g, in, m.NoMatchText("knobs", "knob"))
		return
	}
	at := r.index(knobs)
	if r.Typing != nil {
		in = r.editor(m, g, in, knobs[at])
	}
	name, value := 12, 9
	for _, k := range knobs {
		name = max(name, min(cell.Width(m.KnobLabel(k)), 19))
		value = max(value, min(cell.Width(inEffect(m, k)), 12))
	}
	now := 3 + name + 1 + value // right end of the values
	sources := sourceW
	for _, k := range knobs {
		text, _ := r.source(m, k)
		sources = max(sources, cell.Width(text))
	}
	w := max(minCurveW, in.W-now-6-sources)
	over, by := now+3, now+5+w
	g.Text(in.X+3, in.Y, name, cell.Faint, "knob")
	g.Right(in.X+now, in.Y, value, cell.Faint, "now")
	g.Text(in.X+over, in.Y, w, cell.Faint, "over the run")
	g.Text(in.X+by, in.Y, in.W-1-by, cell.Faint, "source")
	tall := min(4, max(1, (in.H-1)/len(knobs)))
	n := (in.H - 1) / tall
	first := min(max(0, at-n/2), max(0, len(knobs)-n))
	lo, hi := r.Horizon(m)
	for i := 0; i < n && first+i < len(knobs); i++ {
		k, y := knobs[first+i], in.Y+1+i*tall
		role := cell.Plain
		if first+i == at {
			role = cell.FocusTitle
			g.Set(in.X+1, y, '▸', role)
		}
		g.Text(in.X+3, y, name, role, m.KnobLabel(k))
		g.Right(in.X+now, y, value, role, inEffect(m, k))
		r.scheduleRow(m, g, cell.Rect{X: in.X + over, Y: y, W: w, H: max(1, tall-1)}, k, lo, hi)
		text, role := r.source(m, k)
		g.Text(in.X+by, y, in.W-1-by, role, text)
	}
}

// scheduleRow draws a knob's curve over the run, with a line at the present.
func (r *Rail) scheduleRow(m *panel.Host, g *cell.Grid, in cell.Rect, k optim.Knob, lo, hi uint64) {
	if k.Name == view.MembersKnob && m.Shown.Plan == nil {
		return
	}
	if k.Name == view.MembersKnob {
		panel.DrawGauge(g, in.X, in.Y, in.W, k, m.KnobValue(k), cell.Median, m.Opt.ASCII)
		return
	}
	if m.Knobs == nil {
		return
	}
	expr, staged := r.StagedExpr(k.Name)
	if !staged && panel.IsConstant(m.Knobs.Curve(k, lo, hi, in.W)) {
		panel.DrawGauge(g, in.X, in.Y, in.W, k, m.KnobValue(k), cell.Median, m.Opt.ASCII)
		return
	}
	r.drawCurves(m, g, in, k, expr, lo, hi)
}

// source returns where the value of a knob comes from, and its colour role.
func (r *Rail) source(m *panel.Host, k optim.Knob) (string, cell.Role) {
	if expr, ok := r.StagedExpr(k.Name); ok {
		return "→ " + timeline.Readable(expr) + "*", cell.Staged
	}
	if m.Knobs == nil || k.Name == view.MembersKnob {
		return "", cell.Faint
	}
	if e, ok := m.Knobs.Pending(k.Name); ok {
		return "→ " + timeline.Text(e) + " from round " + textfmt.Grouped(e.First()), cell.Good
	}
	h := m.Knobs.History(k.Name)
	if len(h) == 0 {
		return "default", cell.Faint
	}
	expr, moving := m.Knobs.Schedule(k.Name)
	if !moving {
		expr = "set"
	}
	by := h[len(h)-1].By
	if by != "" {
		expr += "  " + by
	}
	return expr, cell.Faint
}

func (r *Rail) knobTitle(m *panel.Host) (string, string) {
	if len(r.Knobs(m)) == 0 {
		return "knob", ""
	}
	k := r.SelectedKnob(m)
	return m.KnobLabel(k), m.KnobTitle(k)
}

// drawKnob draws all details of the selected knob.
func (r *Rail) drawKnob(m *panel.Host, g *cell.Grid, in cell.Rect) {
	if len(r.Knobs(m)) == 0 {
		panel.Explain(g, in, "no knob matches")
		return
	}
	k := r.SelectedKnob(m)
	y := in.Y
	put := func(role cell.Role, s string) {
		if y < in.Y+in.H {
			g.Text(in.X+1, y, in.W-2, role, s)
			y++
		}
	}
	for _, l := range textfmt.Wrap(k.Doc, in.W-2) {
		put(cell.Plain, l)
	}
	bounds := "bounds" + strings.Replace(panel.BoundsText(k), "  ", " ", 1)
	if k.Name != view.MembersKnob { // its default is the current size
		bounds += ", default " + k.Initial()
	}
	for _, l := range textfmt.Wrap(bounds, in.W-2) {
		put(cell.Faint, l)
	}
	note := r.Footnote(m, k)
	for _, l := range r.scheduleLines(m, k, note, in.W-2) {
		put(cell.Median, l)
	}
	answer, role := note.Text, note.role
	if answer == "" && len(r.Staged) > 0 {
		for _, l := range r.stagedEffect(m, k, in.W-2) {
			put(cell.Staged, l)
		}
		answer, role = r.stagedLine(m), cell.Staged
	}
	for _, l := range textfmt.Wrap(answer, in.W-2) {
		put(role, l)
	}
	rest := in.Y + in.H - y
	if m.Knobs == nil || len(k.Choices) > 0 || rest < 6 {
		return
	}
	y++
	lo, hi := r.Horizon(m)
	area := cell.Rect{X: in.X, Y: y, W: in.W - 1, H: rest - 1}
	n := 2 * chart.Plot(area).W
	var layers []chart.Layer
	if k.Name == view.MembersKnob {
		layers = []chart.Layer{{Columns: chart.Of(sizes(m.Shown, lo, hi, n)), Role: cell.Median, Style: chart.Thin}}
	} else {
		expr, _ := r.StagedExpr(k.Name)
		layers = r.curves(m, k, expr, lo, hi, n)
	}
	chart.Draw(g, area, chart.Chart{
		From:   lo,
		To:     hi + 1,
		Axis:   chart.FitAxis(k.Scale == optim.Log, columns(layers)...),
		Now:    &m.Shown.Progress.Rounds,
		ASCII:  m.Opt.ASCII,
		Layers: layers,
	})
}

// sizes returns the population size at n rounds from lo to hi.
func sizes(v *view.View, lo, hi uint64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		round, size := lo+uint64(i)*(hi-lo)/uint64(n), len(v.Members().Members)
		for _, k := range slices.Backward(v.Marks) {
			if k.Before != k.After && k.Round > round {
				size = k.Before
			}
		}
		out[i] = float64(size)
	}
	return out
}

// knobChange is a change of a knob or of the population size.
type knobChange struct {
	Round          uint64
	Knob, Text, by string
}

// History returns the changes of the algorithm's knobs, the newest first.
func History(m *panel.Host) (out []knobChange) {
	for _, e := range m.Shown.Edits {
		if e.Algorithm != m.Shown.Algorithm() {
			continue
		}
		t := knobChange{e.First(), e.Knob, strings.ReplaceAll(timeline.Change(e.Edit, e.Old), "→", " → "), e.Whose()}
		if e.Void {
			t.by += ", before the swap"
		}
		out = append(out, t)
	}
	for _, k := range m.Shown.Marks {
		if k.Before != k.After {
			t := knobChange{Round: k.Round, Knob: view.MembersKnob, Text: fmt.Sprintf("%d → %d", k.Before, k.After)}
			if k.Alert {
				t.by = "lost"
			}
			out = append(out, t)
		}
	}
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b knobChange) int { return cmp.Compare(b.Round, a.Round) })
	return out
}

func historyTitle(m *panel.Host) (string, string) { return "edits", "newest first" }

// drawHistory lists all changes of the knobs and highlights those of the selected one.
func (r *Rail) drawHistory(m *panel.Host, g *cell.Grid, in cell.Rect) {
	chosen, y := r.SelectedKnob(m).Name, in.Y
	for _, e := range History(m) {
		if y == in.Y+in.H {
			return
		}
		role := cell.Faint
		if e.Knob == chosen {
			role = cell.Plain
			g.Set(in.X+1, y, '▸', cell.Focus)
		}
		g.Right(in.X+10, y, 8, cell.Faint, textfmt.Grouped(e.Round))
		x := g.Text(in.X+12, y, in.W-13, role, m.KnobLabelByName(e.Knob)+"  "+e.Text)
		g.Text(x+2, y, in.X+in.W-x-3, cell.Faint, e.by)
		y++
	}
	if y == in.Y {
		panel.Explain(g, in, "no knob was changed: all have their default values")
	}
}

func editRows(v *view.View) panel.Rows {
	out := panel.Rows{{"time", "round", "algorithm", "knob", "before", "after", "by"}}
	for _, e := range v.Edits {
		out = append(out, []string{time.Unix(0, e.When).UTC().Format(time.RFC3339Nano), textfmt.Uint(e.First()),
			e.Algorithm, e.Knob,
			e.Old, e.Expr, e.By})
	}
	return out
}

// placeKnobs lays out the Knobs screen.
func placeKnobs(_ *panel.Host, b cell.Rect) []panel.Placement {
	if b.W < panel.FullW {
		top, low := b.Top((b.H*3 + 4) / 5)
		doc, history := low.Left(low.W / 2)
		return []panel.Placement{{Panel: panel.Schedules, Area: top}, {Panel: panel.Knob, Area: doc},
			{Panel: panel.EditHistory, Area: history}}
	}
	main, right := b.Left(b.W - max(panel.RailW, b.W/3))
	doc, history := right.Top(right.H * 3 / 5)
	return []panel.Placement{{Panel: panel.Schedules, Area: main}, {Panel: panel.Knob, Area: doc},
		{Panel: panel.EditHistory, Area: history}}
}
