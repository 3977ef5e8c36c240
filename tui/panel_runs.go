package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"brood/runtime/archive"

	"brood/runtime/event"
	"brood/tui/cell"
	"brood/tui/chart"
)

const (
	runsPanel    panelID = "runs"
	overlayPanel panelID = "overlay"
	figuresPanel panelID = "figures"
)

// panels returns the rail, the main panel of the Runs screen, and the overlay panels. Opening another session does
// not change them.
func (r *runs) panels() []panel {
	entries := &list{name: "runs", entries: "runs", stays: true}
	return []panel{
		{
			id: runsPanel, title: r.title, draw: r.draw, group: "runs (on their screen)", keys: r.keys(), hints: r.hints,
			screen: &screen{digit: 9, name: "Runs", place: r.place, home: true}, point: r.point, back: r.back,
			list: entries, poll: r.poll, branched: r.overlayBranch,
		},
		{id: overlayPanel, title: r.overlayTitle, draw: r.drawOverlay, group: "runs (on their screen)", keys: r.keys(),
			hints: r.hints, back: r.back, point: r.pointAt, list: entries, export: r.overlayRows},
		{id: figuresPanel, title: r.figuresTitle, draw: r.drawFigures, group: "runs (on their screen)", keys: r.keys(),
			hints: r.hints, back: r.closeTable, list: entries, export: r.figureTable},
	}
}

// place lays out the Runs screen: the rail and, to its right or below, the overlay of runs.
func (r *runs) place(m *model, b cell.Rect) []placement {
	if m.focus == launchPanel { // the launcher fills the screen until it is left
		return []placement{{launchPanel, b}}
	}
	if b.W < fullW {
		top, low := b.Top((b.H*4 + 6) / 7) // the list gets the larger part
		return []placement{{runsPanel, top}, {overlayPanel, low}}
	}
	rail, right := b.Left(b.W * 9 / 20)
	lines := 4 + max(1, len(r.marks))        // with the border, the heading and the line of other differences
	if r.overlay.seeds && len(r.marks) > 1 { // with the means over seeds
		lines += 1 + len(r.marks)/4
	}
	charts, figures := right.Top(right.H - min(lines, right.H*2/5))
	return []placement{{runsPanel, rail}, {overlayPanel, charts}, {figuresPanel, figures}}
}

func (r *runs) hints(m *model) [][2]string {
	if len(r.sorted(m)) == 0 && m.filters.text["runs"] != "" {
		return [][2]string{{"/", "another filter"}, {"esc", "clear it"}, {"?", "help"}}
	}
	open := "open"
	if e, why := r.on(m); why == "" {
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
	if len(r.marks) > 0 { // marked runs are compared
		at := slices.Index(out, [2]string{"v", "figures"})
		out = slices.Insert(slices.Delete(out, at, at+1), 2, [2]string{"v", "figures"})
	}
	return out
}

func (r *runs) title(m *model) (string, string) {
	runs, shown := 0, 0
	for _, list := range r.found {
		for _, e := range list {
			if e.Folder == "" {
				runs++
			}
		}
	}
	for _, x := range r.sorted(m) {
		if x.Folder == "" {
			shown++
		}
	}
	note := fmt.Sprintf("%s · %d of %d", sortings[r.sort], shown, runs)
	if n := len(r.reader.todo); n > 0 && r.reader.summing {
		note = fmt.Sprintf("%s · %d of %d, %d to read", sortings[r.sort], shown, runs, n)
	}
	return "runs", m.filterNote("runs", note)
}

// runCell is a line of the rail with what is known of its run.
type runCell struct {
	runRow
	k   *known
	now time.Time
}

// unknown reports whether the line is a host that has not answered, or not recently.
func (c runCell) unknown() bool { return c.Asked && c.k != nil && c.k.Err != "" }

// columnText returns the text of a column for a run: "–" if the run has no such value or its host does not answer, ""
// for folders and for runs that are not read yet.
func columnText(text func(k *known) string) func(runCell) string {
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

func runColumns() []column[runCell] {
	return []column[runCell]{
		{head: "state", width: 8, weight: 20, text: standingOf, role: standingRole},
		{head: "", width: archive.CurvePoints, weight: 16, text: func(c runCell) string {
			if c.k == nil {
				return ""
			}
			return c.k.spark
		}},
		{head: "loss", width: 7, weight: 17, right: true, text: columnText(func(k *known) string {
			if len(k.Curve) == 0 || k.Objective != "" { // of an objective, whose test says what it came to
				return ""
			}
			return Number(k.Loss)
		})},
		{head: "test", width: 9, weight: 19, right: true, text: columnText(func(k *known) string {
			if k.Score == nil {
				return ""
			}
			text := ScoreText(k.Score.Value, k.Score.Percent)
			if k.TestRound != k.Round {
				text += " @" // the foot says of which round
			}
			return text
		})},
		{head: "round", width: 7, weight: 14, right: true, text: columnText(func(k *known) string { return round(k.Round) })},
		{head: "written", width: 7, weight: 15, right: true, text: func(c runCell) string {
			switch {
			case c.Running:
				return "now"
			case c.Written.IsZero():
				return "–"
			}
			return ago(c.Age(c.now))
		}},
		{head: "algorithm", width: 10, weight: 13, text: columnText(func(k *known) string { return k.Algorithm })},
		{head: "model", width: 10, weight: 11, text: columnText(func(k *known) string { return k.Model })},
		{head: "data", width: 8, weight: 10, text: columnText(func(k *known) string { return FileCut(k.Data, 8) })},
		{
			head:   "tags",
			width:  12,
			weight: 9,
			text:   columnText(func(k *known) string { return strings.Join(k.About.Tags, " ") }),
		},
		{head: "fork of", width: 12, weight: 8, text: columnText(func(k *known) string { return k.Parent })},
	}
}

// ago formats an age in at most seven cells.
func ago(d time.Duration) string {
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

func standingOf(c runCell) string {
	switch {
	case c.k == nil && c.Running:
		return "runs"
	case c.k == nil:
		return ""
	case c.unknown() && c.Written.IsZero():
		return "asked"
	case c.unknown():
		return "silent"
	case c.Folder != "":
		return count(c.k.Runs, "run")
	}
	return Standing(c.k.Info)
}

func standingRole(c runCell) cell.Role {
	_, role := standingGlyph(c)
	return role
}

// standingGlyph is a run's state as a character, which says the same without a colour.
func standingGlyph(c runCell) (rune, cell.Role) {
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
	switch Standing(c.k.Info) {
	case "broken", "killed":
		return '✗', cell.Alert
	case "empty":
		return '·', cell.Faint
	}
	glyph, _, role := phase(c.k.Phase)
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

func (r *runs) draw(m *model, g *cell.Grid, in cell.Rect) {
	rows := r.sorted(m)
	switch {
	case !r.loaded && r.err == nil:
		explain(g, in, "looking for runs")
		return
	case r.err != nil && len(rows) == 0:
		explain(g, in, r.err.Error())
		return
	case len(r.found[""]) == 0:
		explain(g, in, "nothing is recorded yet: N begins a run, and one appears here as soon as it begins")
		return
	case len(rows) == 0:
		explain(g, in, m.nothing("runs", "run")+"; of several words a run must hold all, in any order")
		return
	}
	at := r.at(m)
	cols, name := fitColumns(runColumns(), in.W-runsLeft-1, runsName, runsMost)
	g.Text(in.X+runsLeft, in.Y, name, cell.Faint, "run")
	tableHead(g, in.X+runsLeft+name+2, in.Y, cols)
	about, role := r.about(rows[at], in)
	foot := len(about) + 1
	first, n := tableWindow(in, len(rows), at, foot)
	r.first, r.height = first, n
	now := m.opt.Clock()
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
		if x.Dir == m.opt.Session {
			g.Set(in.X+2, y, '◇', cell.Centre)
		}
		glyph, of := standingGlyph(c)
		g.Set(in.X+4, y, glyph, of)
		left := in.X + runsLeft
		if x.Folder != "" {
			fold := '+'
			if r.expanded(x.Entry, r.wanted) {
				fold = '-'
			}
			g.Set(in.X+4, y, fold, cell.Key)
		}
		g.Text(left+x.depth, y, name-x.depth, role, r.called(x))
		tableRow(g, left+name+2, y, cols, role, c)
	}
	tableMore(g, in, in.X+3, first, n, len(rows))
	if in.H >= n+1+foot {
		for i, line := range about {
			g.Text(in.X+1, in.Y+in.H-foot+i, in.W-2, role, line)
		}
		r.legend(m, g, in, rows[at], more(first, len(rows)-first-n))
	}
}

// called returns the label of a line: a folder ends in a slash, and a run that is not listed below its machine begins
// with the name of that machine.
func (r *runs) called(x runRow) string {
	switch name := r.name(x.Entry); {
	case x.Folder != "":
		return name + "/"
	case x.Host != "" && !x.Asked && x.depth == 0:
		return x.Host + "/" + name
	default:
		return name
	}
}

// about says of the chosen run what has no column: in a line, or why it cannot be read to the last word.
func (r *runs) about(x runRow, in cell.Rect) (lines []string, role cell.Role) {
	k := r.summary(x.Entry)
	switch {
	case k != nil && k.Err != "":
		lines = wrap(k.Err, max(1, in.W-2))
		return lines[:min(len(lines), max(1, in.H/2))], cell.Alert
	case k == nil || x.Folder != "":
		return []string{x.Dir}, cell.Faint
	}
	parts := []string{fmt.Sprintf("seed %d", k.Seed)}
	if !x.Asked { // else only its owner knows the size
		parts = append(parts, Size(float64(k.Size)))
	}
	if k.Members > 0 {
		parts = append(parts, count(k.Members, "member"))
	}
	if k.Score != nil && (k.TestRound != k.Round || !k.Score.Percent) {
		parts = append(parts, fmt.Sprintf("%s %s @%s", strings.TrimSuffix(k.Score.Title, " error"),
			ScoreText(k.Score.Value, k.Score.Percent), round(k.TestRound)))
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
		out = append(out, "↑ "+round(uint64(above)))
	}
	if below > 0 {
		out = append(out, "↓ "+round(uint64(below)))
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "  ") + " more"
}

// legend draws the note of the selected run, the meaning of the signs of the list, and how many rows are hidden.
func (r *runs) legend(m *model, g *cell.Grid, in cell.Rect, x runRow, more string) {
	legend := "◇ in view   " + r.lettered() + " marked, in the charts"
	if len(r.marks) == 0 {
		legend = "◇ in view   space marks runs, to overlay them"
	}
	if m.opt.Source == nil {
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
func (r *runs) lettered() string {
	switch len(r.marks) {
	case 0:
		return ""
	case 1:
		return "a:"
	case 2:
		return "a, b:"
	}
	last, _ := chart.Letter(len(r.marks) - 1)
	return "a to " + string(last) + ":"
}

// point selects the run under the mouse.
func (r *runs) point(m *model, in cell.Rect, _, y int) {
	rows, at := r.sorted(m), r.at(m)
	if at < 0 {
		return
	}
	about, _ := r.about(rows[at], in)
	if i, ok := tableAt(in, y, len(rows), at, len(about)+1); ok {
		r.choose(rows[i].Dir)
	}
}
