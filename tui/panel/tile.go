package panel

import (
	"strings"

	"brood/models/engine"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

// Tile is a small chart with a title line instead of a legend.
type Tile struct {
	Title  string               // name, then after two blanks the unit, which a narrow tile omits
	Value  string               // value at the cursor, or now
	Axis   func(float64) string // formats a value of the y axis in at most six characters; nil: as a number
	Curves []Curve
	log    bool // logarithmic y axis, unless the user chose linear axes
	Near   uint // how often the y axis was narrowed, see TileAxis
	Floor  bool // the y axis starts at 0
}

// Curve is a line of a tile, or a band.
type Curve struct {
	series  *view.Series
	columns func(edges []uint64) []view.Bucket // aggregates the series over the given edges
	role    cell.Role
	Style   chart.Style
	band    bool // a filled band of the measured values, behind the lines
}

// MemberCurve returns the curve of a member's values; [view.Whole] selects the value of a series without members.
func MemberCurve(s *view.Series, id engine.Member, role cell.Role) Curve {
	return Curve{series: s, columns: MemberColumns(s, id), role: role, Style: chart.Thin}
}

// Least sizes of a tile in cells, and the largest numbers of columns and rows.
const (
	TileW, TileH     = 39, 9
	LowTileH         = 5
	mostCols, mostRs = 4, 3
)

// FitTiles returns how many of n tiles fit into r, each at least `least` lines high, and in how many columns.
func FitTiles(r cell.Rect, n, least int) (shown, cols int) {
	cols = min(max(1, r.W/TileW), mostCols)
	rows := min(max(1, r.H/least), mostRs)
	shown = min(n, rows*cols)
	if shown == 0 {
		return 0, 1
	}
	rows = (shown + cols - 1) / cols
	return shown, (shown + rows - 1) / rows
}

// LayoutTiles returns the areas of `shown` tiles in `cols` columns. They fill r: the tiles of a shorter last row are
// wider.
func LayoutTiles(r cell.Rect, shown, cols int) (out []cell.Rect) {
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

// TilePlot returns the plot of the tile at x, y, empty if there is none.
func TilePlot(places []cell.Rect, x, y int) cell.Rect {
	for _, at := range places {
		if at.Has(x, y) {
			_, in := at.Top(1)
			in, _ = in.Left(in.W - 1)
			return chart.Plot(in)
		}
	}
	return cell.Rect{}
}

// DrawTile draws a tile; a chosen one has a marker.
func (m *Host) DrawTile(g *cell.Grid, r cell.Rect, t Tile, chosen bool) {
	head, in := r.Top(1)
	role := cell.Strong
	if chosen {
		role = cell.FocusTitle
		g.Set(head.X, head.Y, '▸', role)
	}
	g.Right(head.X+head.W-1, head.Y, head.W-3, cell.Plain, t.Value)
	title, room := t.Title, max(0, head.W-4-cell.Width(t.Value))
	if cell.Width(title) > room {
		title, _, _ = strings.Cut(title, "  ") // without the unit
	}
	g.Text(head.X+1, head.Y, room, role, title)
	if in.H < 3 || in.W < 14 {
		return
	}
	in, _ = in.Left(in.W - 1)
	n := 2 * chart.Plot(in).W
	edges := m.Edges(n)
	var c Curves
	for _, x := range t.Curves {
		if x.band {
			c.Under = append(c.Under, chart.Layer{
				Columns: x.columns(edges),
				Void:    x.series.Unmeasured(edges),
				Role:    x.role,
				Style:   chart.Fill,
			})
			continue
		}
		c.Add(m, x.series, x.columns, n, x.role, x.Style)
	}
	layers := c.Layers()
	chart.Draw(g, in, m.WithAxis(chart.Chart{Layers: layers, Marks: m.UnlabelledMarks(), Axis: m.TileAxis(t, layers),
		Value: t.Axis}))
}

// TileAxis returns the y axis of a tile. A narrowed axis covers only the last columns: each step of Near halves them.
func (m *Host) TileAxis(t Tile, layers []chart.Layer) chart.Axis {
	var held, sets [][]view.Bucket
	for _, l := range layers {
		cols := Trimmed(l.Columns)
		if end := len(cols); t.Near > 0 {
			cols = cols[max(0, end-max(2, end>>t.Near)):]
		}
		if l.Role == cell.Centre {
			held = append(held, cols)
		} else {
			sets = append(sets, cols)
		}
	}
	log := t.log && m.LogAxis
	a := m.FitAxis(log, held, sets...)
	if t.Floor && !a.Log && t.Near == 0 && a.Lo > 0 {
		a = chart.Span(false, 0, a.Hi)
	}
	return a
}
