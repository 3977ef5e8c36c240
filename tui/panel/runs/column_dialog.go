package runs

import (
	"brood/runtime/archive"
	"brood/tui/cell"
	"brood/tui/panel"
	"slices"

	tea "charm.land/bubbletea/v2"
)

// columnDialog lets the user choose and order the columns of the list.
type columnDialog struct {
	runs  *Runs
	names []string // all columns: the chosen ones in their order, then the others
	on    map[string]bool
	at    int
}

func (r *Runs) chooseColumns(m *panel.Host) tea.Cmd {
	d := &columnDialog{runs: r}
	d.set(m.Opt.Settings.Runs.Columns)
	m.Popup = d
	return nil
}

// set shows a choice; nil: the usual one.
func (d *columnDialog) set(chosen []string) {
	if chosen == nil {
		chosen = archive.UsualColumns()
	}
	d.names, d.on = nil, map[string]bool{}
	for _, name := range chosen {
		if _, err := archive.Lookup(name); err == nil || name == archive.KnobColumns {
			d.names, d.on[name] = append(d.names, name), true
		}
	}
	for _, c := range archive.Columns {
		if !d.on[c.Name] && c.Name != archive.TitleColumn { // every row begins with its name
			d.names = append(d.names, c.Name)
		}
	}
}

// apply shows the list with the choice and saves it.
func (d *columnDialog) apply(m *panel.Host) {
	l := m.Opt.Settings.Runs
	l.Columns = nil
	for _, name := range d.names {
		if d.on[name] {
			l.Columns = append(l.Columns, name)
		}
	}
	if slices.Equal(l.Columns, archive.UsualColumns()) {
		l.Columns = nil
	}
	d.runs.setOrder(m, l)
}

func (d *columnDialog) Key(m *panel.Host, name, _ string) tea.Cmd {
	last := len(d.names) - 1
	swap := func(to int) {
		if to >= 0 && to <= last {
			d.names[d.at], d.names[to] = d.names[to], d.names[d.at]
			d.at = to
		}
	}
	switch name {
	case "j", "down":
		d.at = min(d.at+1, last)
		return nil
	case "k", "up":
		d.at = max(d.at-1, 0)
		return nil
	case "esc", "q", "c", "enter":
		m.Popup = nil
		return nil
	case "s":
		if at := d.names[d.at]; at != archive.KnobColumns && at != archive.CurveColumn {
			d.runs.sortBy(m, at)
		}
		return nil
	case "space", "x":
		d.on[d.names[d.at]] = !d.on[d.names[d.at]]
	case "(":
		swap(d.at - 1)
	case ")":
		swap(d.at + 1)
	case "D":
		d.set(nil)
	default:
		return nil
	}
	d.apply(m)
	return nil
}

func (d *columnDialog) Draw(m *panel.Host, g *cell.Grid) cell.Rect {
	in := panel.Dialog(g, min(g.W, 66), min(g.H, len(d.names)+4), "columns", "esc closes")
	first, n := d.window(in)
	for i, name := range d.names[first : first+n] {
		title, doc, role := name, "", cell.Faint
		for _, c := range archive.Columns {
			if c.Name == name {
				title, doc = c.Title, c.Doc
			}
		}
		y, mark := in.Y+i, ' '
		if d.on[name] {
			mark, role = '✓', cell.Plain
		}
		if first+i == d.at {
			g.Set(in.X, y, '▸', cell.FocusTitle)
			role = cell.FocusTitle
		}
		g.Set(in.X+2, y, mark, cell.Good)
		if l := m.Opt.Settings.Runs; l.Sort == name {
			title += sortSign(l)
		}
		g.Text(in.X+4, y, 11, role, title)
		g.Text(in.X+16, y, in.W-17, cell.Faint, doc)
	}
	panel.DrawHints(g, in.X+1, in.Y+in.H-1, in.X+in.W, [][2]string{{"space", "show"}, {"( )", "move"}, {"s", "sort"},
		{"D", "usual columns"}})
	return in
}

// window returns the first drawn column and the number of drawn columns.
func (d *columnDialog) window(in cell.Rect) (first, n int) {
	n = min(len(d.names), max(0, in.H-2))
	return min(max(0, d.at-n/2), len(d.names)-n), n
}

// Point toggles the column under the mouse.
func (d *columnDialog) Point(m *panel.Host, in cell.Rect, _, y int) tea.Cmd {
	first, n := d.window(in)
	if i := y - in.Y; i >= 0 && i < n {
		d.at = first + i
		return d.Key(m, "space", "")
	}
	return nil
}
