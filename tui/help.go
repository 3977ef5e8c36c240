package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
	"brood/tui/panel"
)

// help is the help dialog, generated from the key tables. Groups of the open screen come first. Panels of one group
// show the keys of the first of them.
type help struct {
	m       *model
	scroll  int
	finding bool // the user types a search text
	panel.TextInput
}

// helpLine is a row of help: the name of a group, or a key with its action.
type helpLine struct{ group, key, title string }

// helpGroup is a group of keys.
type helpGroup struct {
	name  string
	lines []helpLine
	here  bool // a panel of the group is visible
}

// exampleKey is the text in the place of the key in the row of an example.
const exampleKey = "example"

func newHelpGroup(name string, keys []panel.Binding, here bool) helpGroup {
	g := helpGroup{name: name, here: here}
	for _, b := range keys {
		g.lines = append(g.lines, helpLine{key: b.Label(), title: b.Title})
	}
	return g
}

func helpGroups(m *model) (out []helpGroup) {
	m.PlacePanels()                  // which panels are seen
	taken := func(key string) bool { // by the panel that has the focus
		return slices.ContainsFunc(m.panel(m.Focus).Keys,
			func(b panel.Binding) bool { return slices.Contains(b.Keys, key) })
	}
	own := func(group string, here bool) {
		keys := slices.DeleteFunc(m.ownKeys(), func(b panel.Binding) bool {
			return b.Group != group || len(b.Keys) > 0 && !slices.ContainsFunc(b.Keys,
				func(k string) bool { return !taken(k) })
		})
		out = append(out, newHelpGroup(group, keys, here))
	}
	lead := m.panel(m.Focus).Group
	if lead == "" {
		lead = m.panel(m.screens()[m.screen].Lead).Group
	}
	own(groupView, true)
	own(groupRun, false)
	for i, p := range m.panels {
		if p.Group != "" && !slices.ContainsFunc(m.panels[:i], func(q panel.Panel) bool { return q.Group == p.Group }) {
			here := slices.ContainsFunc(m.panels, func(q panel.Panel) bool {
				return q.Group == p.Group &&
					m.visible(q.ID)
			})
			g := newHelpGroup(p.Group, p.Keys, here)
			if p.Example != "" {
				g.lines = slices.Insert(g.lines, 0, helpLine{key: exampleKey, title: p.Example})
			}
			out = append(out, g)
		}
	}
	own(groupTimeline, m.movesInTime())
	if m.Replay != nil {
		own(groupRecording, false)
	}
	own(groupLeave, false)
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

// visible reports whether a panel is placed with a border; a panel of one line shows no keys.
func (m *model) visible(id panel.ID) bool {
	return slices.ContainsFunc(m.Placed, func(p panel.Placement) bool {
		return p.Panel == id &&
			p.Area.H >= leastPanelH
	})
}

func helpLines(groups []helpGroup) (out []helpLine) {
	for _, g := range groups {
		out = append(append(out, helpLine{group: g.name}), g.lines...)
	}
	return out
}

// lines returns the rows: groups of the open screen, then the others. With a search text it returns the matching keys
// and commands.
func (h *help) lines(m *model) []helpLine {
	var groups []helpGroup
	for _, here := range []bool{true, false} {
		for _, g := range helpGroups(m) {
			if g.here == here {
				groups = append(groups, g)
			}
		}
	}
	words := strings.Fields(strings.ToLower(h.Text()))
	if len(words) == 0 {
		return helpLines(groups)
	}
	command := helpGroup{name: "command line"}
	for _, c := range m.commands() {
		command.lines = append(command.lines, helpLine{key: ":" + c.Name, title: c.Title})
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

func (h *help) Key(_ *panel.Host, name, text string) tea.Cmd {
	switch {
	case name == "down" || name == "pgdown" || !h.finding && (name == "j" || name == "space"):
		h.scroll++
	case name == "up" || name == "pgup" || !h.finding && name == "k":
		h.scroll = max(0, h.scroll-1)
	case !h.finding && name == "/":
		h.finding = true
	case h.finding && name == "esc":
		h.finding, h.scroll = false, 0
		h.SetText("")
	case h.finding && name != "enter":
		h.TextInput.Key(name, text)
		h.scroll = 0
	default:
		h.m.Popup = nil
	}
	return nil
}

func (h *help) Draw(_ *panel.Host, g *cell.Grid) cell.Rect {
	lines := h.lines(h.m)
	cols := 1
	if g.W >= 104 {
		cols = 2
	}
	rows := (len(lines) + cols - 1) / cols
	w := min(g.W, 50*cols+2)
	title, note := "help", "/ searches, any other key closes"
	if h.finding {
		title, note = "help  /"+h.Text()+"_", "esc all, enter closes"
	}
	in := panel.Dialog(g, w, min(g.H, max(rows, 1)+2), title, note)
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
		g.Text(in.X+1, in.Y, in.W-2, cell.Faint, "no key or command matches")
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

func (h *help) Point(*panel.Host, cell.Rect, int, int) tea.Cmd { return nil }
