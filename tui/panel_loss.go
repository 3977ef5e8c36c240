package tui

import (
	"fmt"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"brood/optim"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

// mainSeries returns the series that the algorithm measures for the training of each member. Fitness is excluded,
// since it has its own panel.
func (m *model) mainSeries() string {
	if m.alg != nil {
		for _, s := range m.alg.Series {
			if s.Name != view.Fitness && s.Kind != optim.PairEdges {
				return s.Name
			}
		}
	}
	return "loss"
}

const lossPanel panelID = "loss"

// newLoss returns the chart of the training objective, the main panel of the Live screen.
func newLoss(exam *exam, stage *stage) panel {
	show := func(m *model) tea.Cmd {
		if m.shown.Config.Environment() != "" {
			return stage.show(m)
		}
		return exam.show(m)
	}
	place := func(m *model, b cell.Rect) []placement {
		if stage.open {
			return []placement{{episodePanel, b}}
		}
		return exam.place(m, b)
	}
	return panel{id: lossPanel, title: lossTitle, draw: drawLoss, export: lossRows, point: pointRound,
		group: "the loss (on Live)", keys: []binding{{keys: []string{"w"}, title: "what the model gets wrong", do: show}},
		screen: &screen{digit: 1, name: "Live", charts: true, place: place, instead: "Mistakes", show: show}}
}

// lossSeries returns the series to draw on the axis of the centre's loss, with title and unit of the axis: the main
// series; nil for an objective, and for a model whose main series is no loss.
func (m *model) lossSeries() (s *view.Series, title, unit string) {
	title = "loss"
	if m.alg != nil {
		for _, x := range m.alg.Series {
			if x.Name == m.mainSeries() {
				title, unit = x.Title, x.Unit
			}
		}
	}
	if m.shown.Config.Maximises() {
		return nil, m.shown.Config.Fitness() + " of the centre", ""
	}
	if m.shown.Config != nil && m.shown.Config.Data != "" && m.alg != nil && unit != optim.SeriesLoss.Unit {
		return nil, "loss of the centre", m.shown.Config.Unit(optim.SeriesLoss.Unit)
	}
	return m.shown.Find(m.mainSeries()), title, m.shown.Config.Unit(unit)
}

func lossTitle(m *model) (string, string) {
	s, title, unit := m.lossSeries()
	if unit != "" {
		unit = "  " + unit
	}
	scale := "linear y"
	if m.logAxis && !m.shown.Config.Maximises() {
		scale = "log y"
	}
	return title + unit, scale + " · " + m.smoothNote(s) + m.windowNote()
}

// explain shows in an empty panel why it is empty.
func explain(g *cell.Grid, r cell.Rect, text string) {
	lines := wrap(text, r.W-4)
	for i, l := range lines {
		g.Text(r.X+2, r.Y+max(0, (r.H-len(lines))/2)+i, r.W-4, cell.Faint, l)
	}
}

func (m *model) waiting(what string) string {
	switch {
	case m.feed.err != nil || m.feed.lost != nil && !m.feed.loaded:
		return "the run cannot be reached"
	case !m.feed.loaded:
		return "reading the run"
	case m.preparing():
		return m.working()
	case m.shown.Plan == nil:
		return "waiting for workers" + m.awaited
	case m.shown.Over() || m.killed():
		return "the run ended before " + what
	}
	text := what + " appears with the first rounds"
	if now := m.working(); now != "" && m.running() && m.sinceRecord() >= longRound {
		text += " · " + now
	}
	return text
}

// marks returns the marks on the axis of the chart. The mark of an edit starts with the label of its knob, and ends
// with its author, if that is another user, and its reason.
func (m *model) marks() (out []chart.Mark) {
	for _, k := range m.shown.Marks {
		role := cell.Marks
		if k.Alert {
			role = cell.Alert
		}
		text := k.Text
		if name, rest, edit := strings.Cut(text, " "); edit {
			text = m.labelOf(name) + " " + rest
		}
		if k.Who != m.opt.By && k.Who != "" {
			text += " " + k.Who
		}
		out = append(out, chart.Mark{Round: k.Round, Text: text, Role: role})
	}
	return append(out, m.noteMarks()...)
}

func drawLoss(m *model, g *cell.Grid, r cell.Rect) {
	s, _, _ := m.lossSeries()
	centre := m.shown.Find(view.CentreLoss)
	if s == nil && centre == nil || r.H < 4 {
		explain(g, r, m.waiting("the loss"))
		return
	}
	area, legend := r.Top(r.H - 1)
	area, _ = area.Left(area.W - 1)
	n := 2 * chart.Plot(area).W
	edges := m.edges(n)
	var c curves
	if s != nil {
		c.behind = append(c.behind, chart.Layer{
			Columns: s.Band(edges),
			Void:    s.Unmeasured(edges),
			Role:    cell.Band,
			Style:   chart.Fill,
		})
		c.add(m, s, s.Median, n, cell.Median, chart.Thin)
		if len(s.Members) > 1 {
			c.add(m, s, columnsOf(s, m.member), n, cell.Member, chart.Dots)
		}
	}
	if centre != nil {
		c.add(m, centre, m.centreOf(centre), n, cell.Centre, chart.Line)
	}
	layers := c.layers()
	glyphs(layers)
	chart.Draw(g, area, m.scaled(chart.Chart{Layers: layers, Marks: m.marks(),
		Axis: c.axis(m, m.logAxis && !m.shown.Config.Maximises())}))
	m.lossLegend(g, legend, s, centre)
}

// centreOf returns the values of the centre, which are losses. For an objective they are negated to the fitness that
// the user defined.
func (m *model) centreOf(s *view.Series) func(edges []uint64) []view.Bucket {
	of := columnsOf(s, view.Whole)
	if !m.shown.Config.Maximises() {
		return of
	}
	return func(edges []uint64) []view.Bucket { return minus(of(edges)) }
}

// minus returns the columns with negated values.
func minus(cols []view.Bucket) []view.Bucket {
	for i, b := range cols {
		if !b.Empty() {
			cols[i] = view.Bucket{Min: -b.Max, Max: -b.Min, Sum: -b.Sum, Count: b.Count}
		}
	}
	return cols
}

// plainGlyph returns the ASCII character of a role's curve.
func plainGlyph(role cell.Role) rune {
	switch role {
	case cell.Centre:
		return '*'
	case cell.Member:
		return 'o'
	case cell.Band:
		return ':'
	case cell.Raw:
		return '.'
	}
	return '-'
}

func glyphs(layers []chart.Layer) {
	for i := range layers {
		layers[i].Glyph = plainGlyph(layers[i].Role)
	}
}

// entry is a part of a legend: a glyph, a name and a value of constant width.
type entry struct {
	glyph, name, value string
	role               cell.Role
}

func (m *model) legendLine(g *cell.Grid, r cell.Rect, entries []entry) {
	x := r.X + 1
	for _, e := range entries {
		if m.opt.ASCII && e.glyph != "" && e.glyph[0] >= utf8.RuneSelf {
			e.glyph = string(plainGlyph(e.role))
		}
		need := cell.Width(e.glyph) + cell.Width(e.name) + cell.Width(e.value) + 2
		if e.glyph == "" {
			need--
		}
		if x+need > r.X+r.W {
			break
		}
		if e.glyph != "" {
			x = g.Text(x, r.Y, r.W, e.role, e.glyph) + 1
		}
		x = g.Text(x, r.Y, r.W, cell.Faint, e.name) + 1
		x = g.Text(x, r.Y, r.W, cell.Plain, e.value) + 2
	}
}

func (m *model) lossLegend(g *cell.Grid, r cell.Rect, s, centre *view.Series) {
	var out []entry
	v := m.shown
	if x, ok := m.last(centre, view.Whole); ok && !m.dropped(centre) {
		if v.Config.Maximises() {
			x = 0 - x
		}
		out = append(out, entry{"━━", "centre val", m.dated(centre, lead(Number(x), 6)), cell.Centre})
	}
	if !m.dropped(s) {
		l := m.ranked(s)
		if x, ok := m.last(s, m.member); ok && len(l) > 1 {
			out = append(out, entry{"╌╌", fmt.Sprintf("m%d", m.member), m.dated(s, lead(Number(x), 6)), cell.Member})
		}
		if len(l) > 0 {
			out = append(out, entry{"──", "median", m.dated(s, lead(Number(middle(l)), 6)), cell.Median},
				entry{"▒", fmt.Sprintf("all %d", len(l)), m.dated(s, lead(Number(l[len(l)-1].X), 6)+"–"+Number(l[0].X)), cell.Band})
		} else if x, ok := m.last(s, view.Whole); ok {
			out = append(out, entry{"──", "population", m.dated(s, lead(Number(x), 6)), cell.Median})
		}
	}
	switch {
	case v.Evaluation == nil:
	case m.cursor.on:
		out = append(out, entry{"", "test", m.testedThen(), cell.Plain})
	default:
		out = append(out, entry{"", "test", m.tested(), cell.Plain})
	}
	m.legendLine(g, r, out)
}
