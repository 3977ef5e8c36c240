package runs

import (
	"fmt"
	"slices"
	"strings"

	"brood/runtime/archive"
	"brood/runtime/event"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// Panels returns the rail, the main panel of the Runs screen, and the overlay panels. Opening another session does
// not change them.
func (r *Runs) Panels() []panel.Panel {
	entries := &panel.List{Name: "runs", Entries: "runs", Stays: true, Complete: r.complete}
	return []panel.Panel{
		{
			ID: panel.Runs, Title: r.title, Draw: r.draw, Group: "runs (on their screen)",
			Example: "/ eta<0.1 enter: filter the runs", Keys: r.keys(), Hints: r.hints,
			Screen: &panel.Screen{Digit: 9, Name: "Runs", Place: r.place, Home: true}, Point: r.point, Back: r.back,
			Export: r.listTable, List: entries, Poll: r.Poll, Branched: r.overlayBranch,
			Commands: []panel.Command{r.openCommand()},
		},
		{ID: panel.Overlay, Title: r.overlayTitle, Draw: r.drawOverlay, Group: "runs (on their screen)", Keys: r.keys(),
			Hints: r.hints, Back: r.back, Point: r.pointAt, List: entries, Export: r.overlayRows},
		{ID: panel.Figures, Title: r.figuresTitle, Draw: r.drawFigures, Group: "runs (on their screen)", Keys: r.keys(),
			Hints: r.hints, Back: r.closeTable, List: entries, Export: r.figureTable},
	}
}

// complete returns the completions of the last word of a filter.
func (r *Runs) complete(_ *panel.Host, text string) []string {
	var rows []archive.Row
	for _, list := range r.Found {
		for _, e := range list {
			rows = append(rows, r.row(e))
		}
	}
	return archive.Complete(rows, text)
}

// place lays out the Runs screen: the list above the overlay of curves and the details of the chosen run or the
// comparison of the marked ones.
func (r *Runs) place(m *panel.Host, b cell.Rect) []panel.Placement {
	if m.Focus == panel.Launch { // the launcher fills the screen until it is left
		return []panel.Placement{{Panel: panel.Launch, Area: b}}
	}
	all := 0
	for dir, list := range r.Found {
		if dir == "" || r.Open[dir] {
			all += len(list)
		}
	}
	const leastList = 12
	most := (b.H*4 + 6) / 7 // the list gets the larger part if it needs it
	// whatever the filter, so that the layout does not jump
	top, low := b.Top(min(max(all+runsFrame, min(leastList, b.H*3/7)), most))
	if b.W < panel.PanelsW || b.W < panel.FullW && len(r.Marks) > 1 {
		return []panel.Placement{{Panel: panel.Runs, Area: top}, {Panel: panel.Overlay, Area: low}}
	}
	charts, figures := low.Left(b.W * 11 / 20)
	return []panel.Placement{{Panel: panel.Runs, Area: top}, {Panel: panel.Overlay, Area: charts},
		{Panel: panel.Figures, Area: figures}}
}

func (r *Runs) hints(m *panel.Host) [][2]string {
	if len(r.SortedRows(m)) == 0 && m.Filters.Text["runs"] != "" {
		return [][2]string{{"/", "another filter"}, {"esc", "clear it"}, {"?", "help"}}
	}
	open := "open"
	if e, why := r.chosenEntry(m); why == "" {
		switch {
		case e.Folder != "" && r.expanded(e):
			open = "close"
		case e.Folder == "" && (e.Running || e.Asked):
			open = "attach"
		case e.Folder == "":
			open = "replay"
		}
	}
	out := [][2]string{{"enter", open}, {"space", "mark"}, {"N", "new"}, {"/", "filter"}, {"r", "resume"},
		{"w", "model file"},
		{"s", "sort"}, {"c", "columns"}, {"t", "tag"}, {"v", "figures"}, {"a", "axis"}, {"h l", "cursor"}, {"d", "delete"},
		{"?", "help"}}
	if len(r.Marks) > 0 { // marked runs are compared
		at := slices.Index(out, [2]string{"v", "figures"})
		out = slices.Insert(slices.Delete(out, at, at+1), 2, [2]string{"v", "figures"})
	}
	return out
}

func (r *Runs) title(m *panel.Host) (string, string) {
	runs, shown := 0, 0
	for _, list := range r.Found {
		for _, e := range list {
			if e.Folder == "" {
				runs++
			}
		}
	}
	for _, x := range r.SortedRows(m) {
		if x.Folder == "" {
			shown++
		}
	}
	note := fmt.Sprintf("%s · %d of %d", r.orderText(m), shown, runs)
	if n := len(r.Reader.todo); n > 0 && r.Reader.summing {
		note += fmt.Sprintf(", %d to read", n)
	}
	return "runs", m.FilterNote("runs", note)
}

func stateRole(x archive.Row) cell.Role {
	_, role := stateGlyph(x)
	return role
}

// stateGlyph returns the state of a run as a character and a colour role.
func stateGlyph(x archive.Row) (rune, cell.Role) {
	switch {
	case x.Unknown() && x.Written.IsZero():
		return '·', cell.Faint
	case x.Unknown():
		return '✗', cell.Alert
	case x.Folder != "":
		return ' ', cell.Plain
	case x.Summary == nil && x.Running:
		return '●', cell.Good
	case x.Summary == nil:
		return '·', cell.Faint
	}
	switch x.State() {
	case "broken", "killed":
		return '✗', cell.Alert
	case "empty":
		return '·', cell.Faint
	}
	glyph, _, role := panel.PhaseStyle(x.Phase)
	if x.Phase == event.Finished {
		role = cell.Plain // the usual state has no colour
	}
	return []rune(glyph)[0], role
}

const (
	runsName  = 18 // least cells of a run's name, if it is longer
	runsFrame = 5  // lines of the list besides its rows
	runsLeft  = 6  // cells of the cursor, the mark, the sign of the shown run and the state
)

func (r *Runs) draw(m *panel.Host, g *cell.Grid, in cell.Rect) {
	rows := r.SortedRows(m)
	switch {
	case !r.Loaded && r.err == nil:
		panel.Explain(g, in, "looking for runs")
		return
	case r.err != nil && len(rows) == 0:
		panel.Explain(g, in, r.err.Error())
		return
	case len(r.Found[""]) == 0:
		panel.Explain(g, in, "no runs yet: N starts one, and it appears here")
		return
	case r.QueryErr != nil:
		panel.Explain(g, in, r.QueryErr.Error())
		return
	case len(rows) == 0 && r.anyUnread():
		panel.Explain(g, in, "reading the runs, none of them matches so far")
		return
	case len(rows) == 0:
		panel.Explain(g, in, m.NoMatchText("runs", "run"))
		return
	}
	at := r.chosenIndex(m)
	r.setColumns(m.Opt.Settings.Runs, at)
	room := in.W - runsLeft - 1
	cols, name := panel.FitColumns(r.columns, room, min(r.widest, max(runsName, room*2/5)), r.widest)
	about := r.about(rows[at], in)
	foot := len(about) + 1
	first, n := panel.TableWindow(in, len(rows), at, foot)
	r.first, r.height = first, n
	r.drawHead(m, g, in.X+runsLeft, in.Y, name, cols)
	labels, deepest := make([]string, n), 0
	for i, x := range rows[first : first+n] {
		labels[i], deepest = r.RowLabel(x), max(deepest, x.depth)
	}
	names, inner := panel.Distinct(labels, name), panel.Distinct(labels, name-deepest)
	for i, x := range rows[first : first+n] {
		row := r.row(x.Entry)
		y, role := in.Y+1+i, cell.Plain
		if first+i == at {
			role = cell.FocusTitle
			g.Set(in.X, y, '▸', role)
		}
		if letter, of := r.letter(x.Dir); letter != 0 {
			g.Set(in.X+1, y, letter, of)
		}
		if x.Dir == m.Opt.Session {
			g.Set(in.X+2, y, '◇', cell.Centre)
		}
		glyph, of := stateGlyph(row)
		g.Set(in.X+4, y, glyph, of)
		left := in.X + runsLeft
		if x.Folder != "" {
			fold := '+'
			if r.expanded(x.Entry) {
				fold = '-'
			}
			g.Set(in.X+4, y, fold, cell.Key)
		}
		label := names[i]
		if x.depth > 0 {
			label = inner[i]
		}
		g.Text(left+x.depth, y, name-x.depth, role, label)
		panel.DrawTableRow(g, left+name+2, y, cols, role, row)
	}
	panel.DrawMore(g, in.X+3, in.Y+1, first, n, len(rows))
	if in.H >= n+1+foot {
		for i, line := range about {
			g.Text(in.X+1, in.Y+in.H-foot+i, in.W-2, cell.Alert, line)
		}
		r.legend(m, g, in, more(first, len(rows)-first-n))
	}
}

// RowLabel returns the label of a row: a folder ends in a slash, and a run that is not listed below its host begins
// with the name of that host.
func (r *Runs) RowLabel(x runRow) string {
	switch name := r.name(x.Entry); {
	case x.Folder != "":
		return name + "/"
	case x.Host != "" && !x.Asked && x.depth == 0:
		return x.Host + "/" + name
	default:
		return name
	}
}

// drawHead draws the headings of the table and stores where they are.
func (r *Runs) drawHead(m *panel.Host, g *cell.Grid, x, y, name int, cols []panel.Column[archive.Row]) {
	title := "run"
	if l := m.Opt.Settings.Runs; l.Sort == archive.TitleColumn {
		title += sortSign(l)
	}
	g.Text(x, y, name, cell.Faint, title)
	r.heads = append(r.heads[:0], head{archive.TitleColumn, x, name})
	x += name + 2
	panel.DrawTableHead(g, x, y, cols)
	for _, c := range cols {
		if c.Name != archive.CurveColumn {
			r.heads = append(r.heads, head{c.Name, x, c.Width})
		}
		x += c.Width + 2
	}
}

// about returns the error of a run that cannot be read, in lines; none for other runs.
func (r *Runs) about(x runRow, in cell.Rect) []string {
	k := r.summary(x.Entry)
	if k == nil || k.Err == "" {
		return nil
	}
	lines := textfmt.Wrap(k.Err, max(1, in.W-2))
	return lines[:min(len(lines), max(1, in.H/2))]
}

// more formats how many rows are hidden above and below; "" for none.
func more(above, below int) string {
	var out []string
	if above > 0 {
		out = append(out, "↑ "+textfmt.Grouped(above))
	}
	if below > 0 {
		out = append(out, "↓ "+textfmt.Grouped(below))
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "  ") + " more"
}

// legend draws the meaning of the signs of the list, and how many rows are hidden.
func (r *Runs) legend(m *panel.Host, g *cell.Grid, in cell.Rect, more string) {
	legend := "◇ open   " + r.lettered() + " marked, in the charts"
	if len(r.Marks) == 0 {
		legend = "◇ open   space marks runs, to overlay them"
	}
	if m.Opt.Source == nil {
		_, legend, _ = strings.Cut(legend, "   ")
	}
	room := in.W - 2
	if more != "" {
		g.Right(in.X+in.W-1, in.Y+in.H-1, room, cell.Plain, more)
		room -= cell.Width(more) + 2
	}
	g.Text(in.X+1, in.Y+in.H-1, room, cell.Faint, legend)
}

// lettered returns the range of letters of the marked runs.
func (r *Runs) lettered() string {
	switch len(r.Marks) {
	case 0:
		return ""
	case 1:
		return "a:"
	case 2:
		return "a, b:"
	}
	last, _ := chart.KindLetter(len(r.Marks) - 1)
	return "a to " + string(last) + ":"
}

// point selects the run under the mouse, or sorts by the column whose heading is there.
func (r *Runs) point(m *panel.Host, in cell.Rect, x, y int) {
	rows, at := r.SortedRows(m), r.chosenIndex(m)
	if at < 0 {
		return
	}
	if y == in.Y {
		for _, h := range r.heads {
			if x >= h.x && x < h.x+h.w {
				r.sortBy(m, h.name)
			}
		}
		return
	}
	if i, ok := panel.TableRowAt(in, y, len(rows), at, len(r.about(rows[at], in))+1); ok {
		r.follow = false
		r.choose(rows[i].Dir)
	}
}
