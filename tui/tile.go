package tui

import (
	"brood/models/engine"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

// tile is a small chart among others, below a line that says what a legend would.
type tile struct {
	title  string               // what it shows
	value  string               // at the cursor, or now
	axis   func(float64) string // writes a value of the y axis in at most six characters; nil: as a number
	curves []curve
	log    bool // y axis, where a person wants such axes
	near   uint // how often the y axis was halved to what the last of the columns hold
	floor  bool // the y axis has 0: shares and amounts
}

// curve is a line of a tile, or the band of all members.
type curve struct {
	series *view.Series
	of     func(edges []uint64) []view.Bucket
	role   cell.Role
	style  chart.Style
	band   bool // as measured, behind the lines
}

// lineOf is the curve of one member's values; [view.Whole] is a scalar's.
func lineOf(s *view.Series, id engine.Member, role cell.Role) curve {
	return curve{series: s, of: columnsOf(s, id), role: role, style: chart.Thin}
}

// What tiles take at least, and how many there are at most.
const (
	tileW, tileH     = 39, 9
	lowTileH         = 5
	mostCols, mostRs = 4, 3
)

// tiling is how many of n tiles fit into an area, in how many columns, where each has so many rows at least.
func tiling(r cell.Rect, n, least int) (shown, cols int) {
	cols = min(max(1, r.W/tileW), mostCols)
	rows := min(max(1, r.H/least), mostRs)
	shown = min(n, rows*cols)
	if shown == 0 {
		return 0, 1
	}
	rows = (shown + cols - 1) / cols
	return shown, (shown + rows - 1) / rows
}

// tiled are the places of so many tiles in so many columns: they fill the area, and those of the last row are wider
// where there are fewer.
func tiled(r cell.Rect, shown, cols int) (out []cell.Rect) {
	if shown == 0 {
		return nil
	}
	rows := (shown + cols - 1) / cols
	for y := range rows {
		var row cell.Rect
		row, r = r.Top(r.H / (rows - y))
		n := min(cols, shown-y*cols)
		for x := range n {
			var one cell.Rect
			one, row = row.Left(row.W / (n - x))
			out = append(out, one)
		}
	}
	return out
}

// pointTile puts the cursor at the round under the mouse, and says which of the tiles is there; -1 for none.
func (m *model) pointTile(places []cell.Rect, x, y int) int {
	for i, at := range places {
		if at.Has(x, y) {
			_, in := at.Top(1)
			in, _ = in.Left(in.W - 1)
			m.pointIn(chart.Plot(in), x, y)
			return i
		}
	}
	return -1
}

// drawTile draws one; one that is chosen is marked.
func (m *model) drawTile(g *cell.Grid, r cell.Rect, t tile, chosen bool) {
	head, in := r.Top(1)
	role := cell.Strong
	if chosen {
		role = cell.FocusTitle
		g.Set(head.X, head.Y, '▸', role)
	}
	g.Right(head.X+head.W-1, head.Y, head.W-3, cell.Plain, t.value)
	g.Text(head.X+1, head.Y, max(0, head.W-4-cell.Width(t.value)), role, t.title)
	if in.H < 3 || in.W < 14 {
		return
	}
	in, _ = in.Left(in.W - 1)
	n := 2 * chart.Plot(in).W
	edges := m.edges(n)
	var c curves
	for _, x := range t.curves {
		if x.band {
			c.behind = append(c.behind, chart.Layer{
				Columns: x.of(edges),
				Void:    x.series.Unmeasured(edges),
				Role:    x.role,
				Style:   chart.Fill,
			})
			continue
		}
		c.add(m, x.series, x.of, n, x.role, x.style)
	}
	layers := c.layers()
	glyphs(layers)
	chart.Draw(g, in, m.scaled(chart.Chart{Layers: layers, Marks: m.unlabelledMarks(), Axis: m.tileAxis(t, layers), Value: t.axis}))
}

// tileAxis holds what is drawn; zoomed, what the last half of the columns hold, or a half of those, and so on.
func (m *model) tileAxis(t tile, layers []chart.Layer) chart.Axis {
	var held, sets [][]view.Bucket
	for _, l := range layers {
		first, end := 0, len(l.Columns)
		for end > 0 && l.Columns[end-1].Empty() {
			end--
		}
		if t.near > 0 {
			first = end - max(2, end>>t.near)
		}
		if cols := l.Columns[max(0, first):end]; l.Role == cell.Centre {
			held = append(held, cols)
		} else {
			sets = append(sets, cols)
		}
	}
	log := t.log && m.logAxis
	a := m.fit(log, held, sets...)
	if t.floor && !a.Log && t.near == 0 && a.Lo > 0 {
		a = chart.Span(false, 0, a.Hi)
	}
	return a
}
