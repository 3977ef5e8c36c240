package panel

import (
	"maps"
	"slices"
	"strings"

	"brood/runtime/archive"
	"brood/tui/cell"
)

// widestCell returns the greatest width of a column in a table of width cells. Longer texts are shortened to what
// distinguishes them.
func widestCell(width int) int {
	if width < FullW {
		return 12
	}
	return 18
}

// uniform is subtracted from the weight of a column whose texts are all equal.
const uniform = 100

// RunColumns returns columns of runs for a table of these rows, of tableW cells: as wide as their texts, so that no
// cell is cut. It drops columns that no row has a value for, and gives those little weight in which all rows look
// equal.
func RunColumns(columns []archive.Column, rows []archive.Row, tableW int) (out []Column[archive.Row]) {
	most := widestCell(tableW)
	for _, c := range columns {
		width, some := cell.Width(c.Title), false
		texts, looks := map[string]bool{}, map[string]bool{} // of all rows; of runs that are read, as drawn
		for _, r := range rows {
			s := c.Cell(r)
			texts[s] = true
			if r.Folder == "" && r.Summary != nil {
				looks[s] = true
			}
			some = some || r.Folder == "" && s != "" && s != "–"
			width = max(width, cell.Width(s))
		}
		if !some && c.Name != archive.StateColumn {
			continue
		}
		col := Column[archive.Row]{Name: c.Name, Title: c.Title, Weight: c.Priority, Right: c.Right, Text: c.Cell}
		if col.Width = width; width > most && !c.Right && c.Prefix == nil { // texts and knobs, no figures or dates
			col.Width = cell.Width(c.Title)
			long := slices.Sorted(maps.Keys(texts))
			short, shape := map[string]string{}, make([]string, len(long))
			for i, s := range long {
				shape[i] = scheduleShape(lastChange(s, most), most)
			}
			for i, s := range Distinct(shape, most) {
				short[long[i]], col.Width = s, max(col.Width, cell.Width(s))
			}
			drawn := map[string]bool{}
			for s := range looks {
				drawn[short[s]] = true
			}
			looks = drawn
			col.Text = func(r archive.Row) string { return short[c.Cell(r)] }
		}
		if len(looks) == 1 && len(rows) > 1 && c.Name != archive.StateColumn {
			col.Weight -= uniform
		}
		out = append(out, col)
	}
	return out
}

// lastChange shortens the values that a knob had one after the other to the last one, such as → 0.05 @1331. It returns
// texts of at most `most` cells unchanged.
func lastChange(s string, most int) string {
	if at := strings.LastIndex(s, "→ "); at >= 0 && cell.Width(s) > most {
		return s[at:]
	}
	return s
}

// scheduleShape shortens a schedule to its kind and values, without times and rates: cosine:0.1..0.001… for
// cosine:0.1..0.001@+200. If that is too long, only the kind remains. It returns other texts, and those of
// at most `most` cells, unchanged.
func scheduleShape(s string, most int) string {
	if cell.Width(s) <= most || !strings.Contains(s, "..") {
		return s
	}
	parts := strings.Split(s, "..")
	for i, p := range parts {
		if at := strings.IndexAny(p, "@*"); at >= 0 {
			parts[i] = p[:at]
		}
	}
	shape := strings.Join(parts, "..") + "…"
	if kind, _, ok := strings.Cut(s, ":"); ok && cell.Width(shape) > most {
		return kind + ":…"
	}
	return shape
}
