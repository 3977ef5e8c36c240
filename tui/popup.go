package tui

import (
	"slices"

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

// help is generated from the key tables: a group of panels is shown as the first of them has it.
type help struct{ scroll int }

// helpLine is a row of help: a group's name, or a key and what it does.
type helpLine struct{ group, key, title string }

func helpLines(m *model) (out []helpLine) {
	put := func(group string, keys []binding) {
		out = append(out, helpLine{group: group})
		for _, b := range keys {
			out = append(out, helpLine{key: b.label(), title: b.title})
		}
	}
	own := func(group string) {
		put(group, slices.DeleteFunc(extraKeys(), func(b binding) bool { return b.group != group }))
	}
	own(looking)
	own(running)
	for i, p := range m.panels {
		if p.group != "" && !slices.ContainsFunc(m.panels[:i], func(q panel) bool { return q.group == p.group }) {
			put(p.group, p.keys)
		}
	}
	if m.replay != nil {
		own(playing)
	}
	own(leavings)
	return out
}

func (h *help) key(m *model, name, _ string) tea.Cmd {
	switch name {
	case "j", "down", "space", "pgdown":
		h.scroll++
	case "k", "up", "pgup":
		h.scroll = max(0, h.scroll-1)
	default:
		m.popup = nil
	}
	return nil
}

func (h *help) draw(m *model, g *cell.Grid) cell.Rect {
	lines := helpLines(m)
	cols := 1
	if g.W >= 104 {
		cols = 2
	}
	rows := (len(lines) + cols - 1) / cols
	w := min(g.W, 50*cols+2)
	hgt := min(g.H, rows+2)
	in := dialog(g, w, hgt, "help", "any other key closes")
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
	if rows > in.H {
		g.Right(in.X+in.W-1, in.Y+in.H, 20, cell.Faint, " j k scroll ")
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

const noText = "n go on"

func (q *question) yesText() string { return "y " + q.yes }

func (q *question) draw(_ *model, g *cell.Grid) cell.Rect {
	lines := wrap(q.text, 50)
	in := dialog(g, min(g.W, 56), min(g.H, len(lines)+4), "sure?", "")
	for i, l := range lines {
		g.Text(in.X+1, in.Y+i, in.W-2, cell.Plain, l)
	}
	x := g.Text(in.X+1, in.Y+len(lines)+1, in.W-2, cell.Alert, q.yesText())
	g.Text(x+4, in.Y+len(lines)+1, in.W-2, cell.Key, noText)
	return in
}

// point takes a click on one of the two answers.
func (q *question) point(m *model, in cell.Rect, x, y int) tea.Cmd {
	yes := cell.Rect{X: in.X + 1, Y: in.Y + len(wrap(q.text, 50)) + 1, W: cell.Width(q.yesText()), H: 1}
	no := cell.Rect{X: yes.X + yes.W + 4, Y: yes.Y, W: cell.Width(noText), H: 1}
	switch {
	case yes.Has(x, y):
		return q.key(m, "y", "")
	case no.Has(x, y):
		return q.key(m, "n", "")
	}
	return nil
}
