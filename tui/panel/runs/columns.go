package runs

import (
	"cmp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/archive"
	"brood/tui/cell"
	"brood/tui/panel"
)

// head is the heading of a column in the last frame: its name and its cells.
type head struct {
	name string
	x, w int
}

// setOrder sets the columns and the order of the list. They are saved at the next tick of the clock.
func (r *Runs) setOrder(m *panel.Host, l panel.RunList) {
	m.Opt.Settings.Runs, r.Stale, r.unsaved = l, true, true
}

// sortBy sorts by a column; if the list is sorted by it, in reverse, and then in the usual order again.
func (r *Runs) sortBy(m *panel.Host, name string) {
	l := m.Opt.Settings.Runs
	switch {
	case l.Sort != name:
		l.Sort, l.Reverse = name, false
	case !l.Reverse:
		l.Reverse = true
	default:
		l.Sort, l.Reverse = "", false
	}
	r.setOrder(m, l)
}

// sortNext sorts by the next column on the screen, after the last one in the usual order.
func (r *Runs) sortNext(m *panel.Host) tea.Cmd {
	l := m.Opt.Settings.Runs
	i := 1 + slices.IndexFunc(r.heads, func(h head) bool { return h.name == l.Sort })
	if l.Sort, l.Reverse = "", false; i < len(r.heads) {
		l.Sort = r.heads[i].name
	}
	r.setOrder(m, l)
	return nil
}

func whyNotReverse(m *panel.Host) string {
	if m.Opt.Settings.Runs.Sort == "" {
		return "running runs come first, then the last written: s sorts by a column, whose order i reverses"
	}
	return ""
}

func (r *Runs) reverse(m *panel.Host) tea.Cmd {
	l := m.Opt.Settings.Runs
	l.Reverse = !l.Reverse
	r.setOrder(m, l)
	return nil
}

func (r *Runs) followNewest(m *panel.Host) tea.Cmd {
	r.follow, r.Stale = !r.follow, true
	if r.follow {
		m.Say(cell.Plain, "the newest run stays chosen, until you choose another one")
	}
	return r.Poll(m)
}

// orderText describes the order of the list.
func (r *Runs) orderText(m *panel.Host) string {
	l, text := m.Opt.Settings.Runs, "live, then last written"
	if c, err := archive.Lookup(l.Sort); err == nil {
		text = "by " + c.Title
	}
	if l.Reverse {
		text += ", reversed"
	}
	if r.follow {
		text = "follows the newest · " + text
	}
	return text
}

// measuredRows is the number of rows before and after the chosen one for which columns are computed, so that the time
// does not depend on the length of the list.
const measuredRows = 500

// setColumns computes the columns of the table and the width of its labels for the rows around the row at, unless they
// are known.
func (r *Runs) setColumns(order panel.RunList, at int) {
	if d := at - r.around; r.columns != nil && max(d, -d) < measuredRows/2 {
		return
	}
	r.around = at
	near := r.rows[max(0, at-measuredRows):min(len(r.rows), at+measuredRows)]
	rows := make([]archive.Row, len(near))
	r.widest = cell.Width("run ")
	for i, x := range near {
		rows[i] = r.row(x.Entry)
		r.widest = max(r.widest, x.depth+cell.Width(r.RowLabel(x)))
	}
	columns := archive.Chosen(order.Columns, rows)
	for i := range columns {
		switch c := &columns[i]; c.Name {
		case archive.CurveColumn:
			c.Text = func(x archive.Row) string { return r.summaries[x.Dir].spark }
		case archive.TitleColumn: // the label is the name
			c.Text = func(archive.Row) string { return "" }
		}
	}
	r.columns = panel.RunColumns(columns, rows, r.tableW)
	for i, c := range r.columns {
		if c.Name == archive.StateColumn {
			r.columns[i].Role, r.columns[i].Weight = stateRole, stateWeight
		}
		if c.Name == order.Sort {
			r.columns[i].Title += sortSign(order)
			r.columns[i].Width = max(c.Width, cell.Width(r.columns[i].Title))
		}
	}
}

// stateWeight is the weight of the column of states, which the sign before the name shows too.
const stateWeight = 62

// sortSign marks the heading of the column by which the list is sorted.
func sortSign(order panel.RunList) string {
	if order.Reverse {
		return "↑"
	}
	return "↓"
}

// order returns entries in the order of the list. Scans are already sorted by time. Folders come last, unless the list
// is sorted by name.
func (r *Runs) order(order panel.RunList, entries []archive.Entry) []archive.Entry {
	c, err := archive.Lookup(order.Sort)
	if err != nil {
		return entries
	}
	rows := make([]archive.Row, len(entries))
	for i, e := range entries {
		rows[i] = r.row(e)
	}
	slices.SortStableFunc(rows, func(a, b archive.Row) int {
		if a.Folder != b.Folder && (a.Folder == "" || b.Folder == "") && c.Name != archive.TitleColumn {
			return cmp.Compare(a.Folder, b.Folder)
		}
		if c.Name == archive.TitleColumn {
			x, y := strings.ToLower(r.name(a.Entry)), strings.ToLower(r.name(b.Entry))
			if order.Reverse {
				x, y = y, x
			}
			return cmp.Compare(x, y)
		}
		return c.Compare(a, b, order.Reverse)
	})
	out := make([]archive.Entry, len(rows))
	for i, x := range rows {
		out[i] = x.Entry
	}
	return out
}
