package panel

import (
	"fmt"
	"unicode/utf8"

	"brood/models/engine"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/textfmt"
)

// Explain draws the reason why a panel is empty into its middle.
func Explain(g *cell.Grid, r cell.Rect, text string) {
	lines := textfmt.Wrap(text, r.W-4)
	for i, l := range lines {
		g.Text(r.X+2, r.Y+max(0, (r.H-len(lines))/2)+i, r.W-4, cell.Faint, l)
	}
}

// Negate negates the values of columns in place and returns them.
func Negate(cols []view.Bucket) []view.Bucket {
	for i, b := range cols {
		if !b.Empty() {
			cols[i] = view.Bucket{Min: -b.Max, Max: -b.Min, Sum: -b.Sum, Count: b.Count}
		}
	}
	return cols
}

// Trimmed returns columns without the empty ones at the end.
func Trimmed(cols []view.Bucket) []view.Bucket {
	n := len(cols)
	for n > 0 && cols[n-1].Empty() {
		n--
	}
	return cols[:n]
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

// Entry is a part of a legend: a glyph, a name and a value of constant width.
type Entry struct {
	Glyph, Name, Value string
	Role               cell.Role
}

// ValueEntry returns the part of a legend for a value of a series, with its round if it is not of the shown one.
func (m *Host) ValueEntry(s *view.Series, glyph, name string, x float64, role cell.Role) Entry {
	return Entry{Glyph: glyph, Name: name, Value: m.WithRound(s, textfmt.PadLeft(textfmt.Number(x), 6)), Role: role}
}

// LegendLine draws the entries that fit into the first line of r.
func (m *Host) LegendLine(g *cell.Grid, r cell.Rect, entries []Entry) {
	x := r.X + 1
	for _, e := range entries {
		if m.Opt.ASCII && e.Name != "" && e.Glyph != "" && e.Glyph[0] >= utf8.RuneSelf {
			e.Glyph = string(plainGlyph(e.Role))
		}
		need := cell.Width(e.Glyph) + cell.Width(e.Name) + cell.Width(e.Value) + 2
		if e.Glyph == "" || e.Name == "" {
			need--
		}
		if x+need > r.X+r.W {
			break
		}
		if e.Glyph != "" {
			x = g.Text(x, r.Y, r.W, e.Role, e.Glyph) + 1
		}
		if e.Name != "" {
			x = g.Text(x, r.Y, r.W, cell.Faint, e.Name) + 1
		}
		x = g.Text(x, r.Y, r.W, cell.Plain, e.Value) + 2
	}
	chart.TintShades(g, cell.Rect{X: r.X, Y: r.Y, W: r.W, H: 1})
}

// DrawHints draws as many keys with their actions as fit before the column end.
func DrawHints(g *cell.Grid, x, y, end int, keys [][2]string) {
	for _, k := range keys {
		if x+cell.Width(k[0])+1+cell.Width(k[1]) >= end {
			break
		}
		x = g.Text(x, y, end-x, cell.Key, k[0])
		x = g.Text(x+1, y, end-x, cell.Faint, k[1]) + 2
	}
}

// Median returns the median of values.
func Median(l []view.Value) float64 {
	x := make([]float64, len(l))
	for i, v := range l {
		x[i] = v.X
	}
	return view.Median(x)
}

// DrawInput draws a text input and its cursor in w cells.
func DrawInput(m *Host, g *cell.Grid, x, y, w int, role cell.Role, l *TextInput) {
	if w <= 0 {
		return
	}
	from := max(0, l.Cursor-w+1)
	g.Text(x, y, w, role, string(l.Runes[from:min(len(l.Runes), from+w)]))
	c := g.At(x+l.Cursor-from, y)
	g.Set(x+l.Cursor-from, y, c.R, cell.Chosen)
	if m.Opt.NoColor && c.R == ' ' {
		g.Set(x+l.Cursor-from, y, '_', cell.Chosen)
	}
}

// MemberRange formats a range of members: m3, or m3-7.
func MemberRange(ids []engine.Member) string {
	name := fmt.Sprintf("m%d", ids[0])
	if n := len(ids); n > 1 {
		name += fmt.Sprintf("-%d", ids[n-1])
	}
	return name
}
