package runs

import (
	"fmt"
	"slices"
	"strings"
	"time"

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
	entries := &panel.List{Name: "runs", Entries: "runs", Stays: true}
	return []panel.Panel{
		{
			ID: panel.Runs, Title: r.title, Draw: r.draw, Group: "runs (on their screen)", Keys: r.keys(), Hints: r.hints,
			Screen: &panel.Screen{Digit: 9, Name: "Runs", Place: r.place, Home: true}, Point: r.point, Back: r.back,
			List: entries, Poll: r.Poll, Branched: r.overlayBranch,
		},
		{ID: panel.Overlay, Title: r.overlayTitle, Draw: r.drawOverlay, Group: "runs (on their screen)", Keys: r.keys(),
			Hints: r.hints, Back: r.back, Point: r.pointAt, List: entries, Export: r.overlayRows},
		{ID: panel.Figures, Title: r.figuresTitle, Draw: r.drawFigures, Group: "runs (on their screen)", Keys: r.keys(),
			Hints: r.hints, Back: r.closeTable, List: entries, Export: r.figureTable},
	}
}

// place lays out the Runs screen: the rail and, to its right or below, the overlay of runs.
func (r *Runs) place(m *panel.Host, b cell.Rect) []panel.Placement {
	if m.Focus == panel.Launch { // the launcher fills the screen until it is left
		return []panel.Placement{{Panel: panel.Launch, Area: b}}
	}
	if b.W < panel.FullW {
		top, low := b.Top((b.H*4 + 6) / 7) // the list gets the larger part
		return []panel.Placement{{Panel: panel.Runs, Area: top}, {Panel: panel.Overlay, Area: low}}
	}
	rail, right := b.Left(b.W * 9 / 20)
	lines := 4 + max(1, len(r.Marks))        // with the border, the heading and the line of other differences
	if r.Overlay.Seeds && len(r.Marks) > 1 { // with the means over seeds
		lines += 1 + len(r.Marks)/4
	}
	charts, figures := right.Top(right.H - min(lines, right.H*2/5))
	return []panel.Placement{{Panel: panel.Runs, Area: rail}, {Panel: panel.Overlay, Area: charts},
		{Panel: panel.Figures, Area: figures}}
}

func (r *Runs) hints(m *panel.Host) [][2]string {
	if len(r.SortedRows(m)) == 0 && m.Filters.Text["runs"] != "" {
		return [][2]string{{"/", "another filter"}, {"esc", "clear it"}, {"?", "help"}}
	}
	open := "open"
	if e, why := r.chosenEntry(m); why == "" {
		switch {
		case e.Folder != "" && r.expanded(e, r.wanted):
			open = "close"
		case e.Folder == "" && (e.Running || e.Asked):
			open = "attach"
		case e.Folder == "":
			open = "replay"
		}
	}
	out := [][2]string{{"enter", open}, {"space", "mark"}, {"N", "new"}, {"/", "filter"}, {"r", "resume"},
		{"w", "model file"},
		{"s", "sort"}, {"t", "tag"}, {"v", "figures"}, {"a", "axis"}, {"h l", "cursor"}, {"d", "delete"}, {"?", "help"}}
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
	note := fmt.Sprintf("%s · %d of %d", Sortings[r.Sort], shown, runs)
	if n := len(r.Reader.todo); n > 0 && r.Reader.summing {
		note = fmt.Sprintf("%s · %d of %d, %d to read", Sortings[r.Sort], shown, runs, n)
	}
	return "runs", m.FilterNote("runs", note)
}

// runCell is a row of the list with the summary of its run.
type runCell struct {
	runRow
	k   *loadedSummary
	now time.Time
}

// unknown reports whether the row is a host that has not answered, or not recently.
func (c runCell) unknown() bool { return c.Asked && c.k != nil && c.k.Err != "" }

// columnText returns the text of a column for a run: "–" if the run has no such value or its host does not answer, ""
// for folders and for runs that are not read yet.
func columnText(text func(k *loadedSummary) string) func(runCell) string {
	return func(c runCell) string {
		if c.k == nil || c.Folder != "" {
			return ""
		}
		if s := text(c.k); s != "" && !c.unknown() {
			return s
		}
		return "–"
	}
}

func runColumns() []panel.Column[runCell] {
	return []panel.Column[runCell]{
		{Title: "state", Width: 8, Weight: 20, Text: stateText, Role: stateRole},
		{Title: "", Width: archive.CurvePoints, Weight: 16, Text: func(c runCell) string {
			if c.k == nil {
				return ""
			}
			return c.k.spark
		}},
		{Title: "loss", Width: 7, Weight: 17, Right: true, Text: columnText(func(k *loadedSummary) string {
			if len(k.Curve) == 0 || k.Objective != "" { // an objective has its result in the column test
				return ""
			}
			return textfmt.Number(k.Loss)
		})},
		{Title: "test", Width: 9, Weight: 19, Right: true, Text: columnText(func(k *loadedSummary) string {
			if k.Score == nil {
				return ""
			}
			text := textfmt.ScoreText(k.Score.Value, k.Score.Percent)
			if k.TestRound != k.Round {
				text += " @" // the line below the list has the round
			}
			return text
		})},
		{Title: "round", Width: 7, Weight: 14, Right: true,
			Text: columnText(func(k *loadedSummary) string { return textfmt.Grouped(k.Round) })},
		{Title: "written", Width: 7, Weight: 15, Right: true, Text: func(c runCell) string {
			switch {
			case c.Running:
				return "now"
			case c.Written.IsZero():
				return "–"
			}
			return ageText(c.Age(c.now))
		}},
		{Title: "algorithm", Width: 10, Weight: 13,
			Text: columnText(func(k *loadedSummary) string { return k.Algorithm })},
		{Title: "model", Width: 10, Weight: 11, Text: columnText(func(k *loadedSummary) string { return k.Model })},
		{Title: "data", Width: 8, Weight: 10,
			Text: columnText(func(k *loadedSummary) string { return textfmt.FileCut(k.Data, 8) })},
		{
			Title:  "tags",
			Width:  12,
			Weight: 9,
			Text:   columnText(func(k *loadedSummary) string { return strings.Join(k.About.Tags, " ") }),
		},
		{Title: "fork of", Width: 12, Weight: 8, Text: columnText(func(k *loadedSummary) string { return k.Parent })},
	}
}

// ageText formats an age in at most seven cells.
func ageText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// stateText returns the state of a run as a word.
func stateText(c runCell) string {
	switch {
	case c.k == nil && c.Running:
		return "running"
	case c.k == nil:
		return ""
	case c.unknown() && c.Written.IsZero():
		return "asked"
	case c.unknown():
		return "silent"
	case c.Folder != "":
		return textfmt.Count(c.k.Runs, "run")
	}
	return panel.SessionState(c.k.Info)
}

func stateRole(c runCell) cell.Role {
	_, role := stateGlyph(c)
	return role
}

// stateGlyph returns the state of a run as a character and a colour role.
func stateGlyph(c runCell) (rune, cell.Role) {
	switch {
	case c.unknown() && c.Written.IsZero():
		return '·', cell.Faint
	case c.unknown():
		return '✗', cell.Alert
	case c.Folder != "":
		return ' ', cell.Plain
	case c.k == nil && c.Running:
		return '●', cell.Good
	case c.k == nil:
		return '·', cell.Faint
	}
	switch panel.SessionState(c.k.Info) {
	case "broken", "killed":
		return '✗', cell.Alert
	case "empty":
		return '·', cell.Faint
	}
	glyph, _, role := panel.PhaseStyle(c.k.Phase)
	if c.k.Phase == event.Finished {
		role = cell.Plain // the usual state has no colour
	}
	return []rune(glyph)[0], role
}

const (
	runsName = 18 // least cells of a run's name
	runsMost = 40
	runsLeft = 6 // cells of the cursor, the mark, the sign of the shown run and the state
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
	case len(rows) == 0:
		panel.Explain(g, in, m.NoMatchText("runs", "run")+"; a run must contain all words of the filter, in any order")
		return
	}
	at := r.chosenIndex(m)
	cols, name := panel.FitColumns(runColumns(), in.W-runsLeft-1, runsName, runsMost)
	g.Text(in.X+runsLeft, in.Y, name, cell.Faint, "run")
	panel.DrawTableHead(g, in.X+runsLeft+name+2, in.Y, cols)
	about, role := r.about(rows[at], in)
	foot := len(about) + 1
	first, n := panel.TableWindow(in, len(rows), at, foot)
	r.first, r.height = first, n
	now := m.Opt.Clock()
	for i, x := range rows[first : first+n] {
		c := runCell{x, r.summary(x.Entry), now}
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
		glyph, of := stateGlyph(c)
		g.Set(in.X+4, y, glyph, of)
		left := in.X + runsLeft
		if x.Folder != "" {
			fold := '+'
			if r.expanded(x.Entry, r.wanted) {
				fold = '-'
			}
			g.Set(in.X+4, y, fold, cell.Key)
		}
		g.Text(left+x.depth, y, name-x.depth, role, r.RowLabel(x))
		panel.DrawTableRow(g, left+name+2, y, cols, role, c)
	}
	panel.DrawTableMore(g, in, in.X+3, first, n, len(rows))
	if in.H >= n+1+foot {
		for i, line := range about {
			g.Text(in.X+1, in.Y+in.H-foot+i, in.W-2, role, line)
		}
		r.legend(m, g, in, rows[at], more(first, len(rows)-first-n))
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

// about returns the details of the chosen run that have no column in one line, or the whole error if it cannot be read.
func (r *Runs) about(x runRow, in cell.Rect) (lines []string, role cell.Role) {
	k := r.summary(x.Entry)
	switch {
	case k != nil && k.Err != "":
		lines = textfmt.Wrap(k.Err, max(1, in.W-2))
		return lines[:min(len(lines), max(1, in.H/2))], cell.Alert
	case k == nil || x.Folder != "":
		return []string{x.Dir}, cell.Faint
	}
	parts := []string{fmt.Sprintf("seed %d", k.Seed)}
	if !x.Asked { // else only its owner knows the size
		parts = append(parts, textfmt.Size(float64(k.Size)))
	}
	if k.Members > 0 {
		parts = append(parts, textfmt.Count(k.Members, "member"))
	}
	if k.Score != nil && (k.TestRound != k.Round || !k.Score.Percent) {
		parts = append(parts, fmt.Sprintf("%s %s @%s", strings.TrimSuffix(k.Score.Title, " error"),
			textfmt.ScoreText(k.Score.Value, k.Score.Percent), textfmt.Grouped(k.TestRound)))
	}
	if k.Parent != "" {
		parts = append(parts, "fork of "+k.Parent)
	}
	if len(k.About.Tags) > 0 {
		parts = append(parts, "tagged "+strings.Join(k.About.Tags, " "))
	}
	if r.name(x.Entry) != x.Name {
		parts = append(parts, x.Name)
	}
	return []string{strings.Join(parts, "  ")}, cell.Faint
}

// more formats how many rows are hidden above and below; "" for none.
func more(above, below int) string {
	var out []string
	if above > 0 {
		out = append(out, "↑ "+textfmt.Grouped(uint64(above)))
	}
	if below > 0 {
		out = append(out, "↓ "+textfmt.Grouped(uint64(below)))
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "  ") + " more"
}

// legend draws the note of the selected run, the meaning of the signs of the list, and how many rows are hidden.
func (r *Runs) legend(m *panel.Host, g *cell.Grid, in cell.Rect, x runRow, more string) {
	legend := "◇ open   " + r.lettered() + " marked, in the charts"
	if len(r.Marks) == 0 {
		legend = "◇ open   space marks runs, to overlay them"
	}
	if m.Opt.Source == nil {
		_, legend, _ = strings.Cut(legend, "   ")
	}
	if k := r.summary(x.Entry); k != nil && k.About.Note != "" {
		legend = k.About.Note + "   " + legend
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

// point selects the run under the mouse.
func (r *Runs) point(m *panel.Host, in cell.Rect, _, y int) {
	rows, at := r.SortedRows(m), r.chosenIndex(m)
	if at < 0 {
		return
	}
	about, _ := r.about(rows[at], in)
	if i, ok := panel.TableRowAt(in, y, len(rows), at, len(about)+1); ok {
		r.choose(rows[i].Dir)
	}
}
