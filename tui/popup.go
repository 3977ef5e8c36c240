package tui

import (
	"cmp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
)

// popup is drawn above the panels and takes all keys while it is open. The wheel is its keys up and down, and a click
// beside it esc.
type popup interface {
	key(m *model, name, text string) tea.Cmd
	draw(m *model, g *cell.Grid) (inside cell.Rect)
	point(m *model, inside cell.Rect, x, y int) tea.Cmd // a click within its frame
}

func (h *help) point(*model, cell.Rect, int, int) tea.Cmd { return nil }

// help is generated from the key tables: a group of panels is shown as the first of them has it, and those of the
// present screen come first.
type help struct {
	scroll  int
	finding bool // what is typed is looked for
	line
}

// helpLine is a row of help: a group's name, or a key and what it does.
type helpLine struct{ group, key, title string }

// helpGroup is a group with the lines of its keys.
type helpGroup struct {
	name  string
	lines []helpLine
	here  bool // its keys are of a panel that is seen
}

func helpGroups(m *model) (out []helpGroup) {
	m.layout() // which panels are seen
	put := func(group string, keys []binding, here bool) {
		g := helpGroup{name: group, here: here}
		for _, b := range keys {
			g.lines = append(g.lines, helpLine{key: b.label(), title: b.title})
		}
		out = append(out, g)
	}
	taken := func(key string) bool { // by the panel that has the focus
		return slices.ContainsFunc(m.panel(m.focus).keys, func(b binding) bool { return slices.Contains(b.keys, key) })
	}
	own := func(group string, here bool) {
		put(group, slices.DeleteFunc(extraKeys(), func(b binding) bool {
			return b.group != group || !slices.ContainsFunc(b.keys, func(k string) bool { return !taken(k) })
		}), here)
	}
	lead := m.panel(m.focus).group
	if lead == "" {
		lead = m.panel(m.screens()[m.screen].lead).group
	}
	own(looking, true)
	own(running, false)
	for i, p := range m.panels {
		if p.group != "" && !slices.ContainsFunc(m.panels[:i], func(q panel) bool { return q.group == p.group }) {
			put(p.group, p.keys, slices.ContainsFunc(m.panels,
				func(q panel) bool { return q.group == p.group && m.visible(q.id) }))
		}
	}
	if m.replay != nil {
		own(playing, false)
	}
	own(leavings, false)
	first := func(g helpGroup) bool { return g.here && g.name == lead }
	slices.SortStableFunc(out, func(a, b helpGroup) int {
		switch {
		case first(a) && !first(b):
			return -1
		case first(b) && !first(a):
			return 1
		}
		return 0
	})
	return out
}

// visible says whether a panel has a place now; one that is a line alone has none where keys could go.
func (m *model) visible(id panelID) bool {
	return slices.ContainsFunc(m.placed, func(p placement) bool { return p.panel == id && p.at.H >= leastPanelH })
}

func helpLines(groups []helpGroup) (out []helpLine) {
	for _, g := range groups {
		out = append(append(out, helpLine{group: g.name}), g.lines...)
	}
	return out
}

// lines are the groups of the present screen and then the others, or of all, commands too, what holds the typed words.
func (h *help) lines(m *model) []helpLine {
	var groups []helpGroup
	for _, here := range []bool{true, false} {
		for _, g := range helpGroups(m) {
			if g.here == here {
				groups = append(groups, g)
			}
		}
	}
	words := strings.Fields(strings.ToLower(h.text()))
	if len(words) == 0 {
		return helpLines(groups)
	}
	command := helpGroup{name: "command line"}
	for _, c := range m.commands() {
		command.lines = append(command.lines, helpLine{key: ":" + c.name, title: c.title})
	}
	var found []helpGroup
	for _, g := range append(groups, command) {
		g.lines = slices.DeleteFunc(g.lines, func(l helpLine) bool {
			text := strings.ToLower(g.name + " " + l.key + " " + l.title)
			return slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
		})
		if len(g.lines) > 0 {
			found = append(found, g)
		}
	}
	return helpLines(found)
}

func (h *help) key(m *model, name, text string) tea.Cmd {
	switch {
	case name == "down" || name == "pgdown" || !h.finding && (name == "j" || name == "space"):
		h.scroll++
	case name == "up" || name == "pgup" || !h.finding && name == "k":
		h.scroll = max(0, h.scroll-1)
	case !h.finding && name == "/":
		h.finding = true
	case h.finding && name == "esc":
		h.finding, h.scroll = false, 0
		h.set("")
	case h.finding && name != "enter":
		h.line.key(name, text)
		h.scroll = 0
	default:
		m.popup = nil
	}
	return nil
}

func (h *help) draw(m *model, g *cell.Grid) cell.Rect {
	lines := h.lines(m)
	cols := 1
	if g.W >= 104 {
		cols = 2
	}
	rows := (len(lines) + cols - 1) / cols
	w := min(g.W, 50*cols+2)
	title, note := "help", "/ finds, any other key closes"
	if h.finding {
		title, note = "help  /"+h.text()+"_", "esc all, enter closes"
	}
	in := dialog(g, w, min(g.H, max(rows, 1)+2), title, note)
	h.scroll = min(h.scroll, max(0, rows-in.H))
	for i, l := range lines {
		x, y := in.X+i/rows*50, in.Y+i%rows-h.scroll
		if y < in.Y || y >= in.Y+in.H {
			continue
		}
		if l.group != "" {
			g.Text(x+1, y, 48, cell.Title, l.group)
			continue
		}
		g.Right(x+14, y, 13, cell.Key, l.key)
		g.Text(x+16, y, min(33, in.W-17), cell.Plain, l.title)
	}
	if len(lines) == 0 {
		g.Text(in.X+1, in.Y, in.W-2, cell.Faint, "no key or command is told by these words")
	}
	if rows > in.H {
		scroll := " j k scroll "
		if h.finding {
			scroll = " up down scroll "
		}
		g.Right(in.X+in.W-1, in.Y+in.H, 20, cell.Faint, scroll)
	}
	return in
}

// dialog clears an area in the middle and frames it.
func dialog(g *cell.Grid, w, h int, title, note string) cell.Rect {
	r := cell.Rect{X: (g.W - w) / 2, Y: (g.H - h) / 2, W: w, H: h}
	g.Clear(r)
	return g.Box(r, cell.Focus, title, note)
}

// question asks before something that cannot be undone.
type question struct {
	text, yes string
	no        string // what becomes of it otherwise, "" where it goes on
	do        func(*model) tea.Cmd
}

func (q *question) key(m *model, name, _ string) tea.Cmd {
	switch name {
	case "y", "Y":
		m.popup = nil
		return q.do(m)
	case "n", "N", "esc", "q":
		m.popup = nil
	}
	return nil
}

func (q *question) noText() string { return "n " + cmp.Or(q.no, "go on") }

func (q *question) yesText() string { return "y " + q.yes }

func (q *question) draw(_ *model, g *cell.Grid) cell.Rect {
	lines := wrap(q.text, 50)
	in := dialog(g, min(g.W, 56), min(g.H, len(lines)+4), "sure?", "")
	for i, l := range lines {
		g.Text(in.X+1, in.Y+i, in.W-2, cell.Plain, l)
	}
	x := g.Text(in.X+1, in.Y+len(lines)+1, in.W-2, cell.Alert, q.yesText())
	g.Text(x+4, in.Y+len(lines)+1, in.W-2, cell.Key, q.noText())
	return in
}

// point takes a click on one of the two answers.
func (q *question) point(m *model, in cell.Rect, x, y int) tea.Cmd {
	yes := cell.Rect{X: in.X + 1, Y: in.Y + len(wrap(q.text, 50)) + 1, W: cell.Width(q.yesText()), H: 1}
	no := cell.Rect{X: yes.X + yes.W + 4, Y: yes.Y, W: cell.Width(q.noText()), H: 1}
	switch {
	case yes.Has(x, y):
		return q.key(m, "y", "")
	case no.Has(x, y):
		return q.key(m, "n", "")
	}
	return nil
}
