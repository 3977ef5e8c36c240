package panel

import (
	"cmp"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
	"brood/tui/textfmt"
)

// Popup is drawn above the panels and receives all keys while it is open. The wheel sends up and down, a click outside
// sends esc.
type Popup interface {
	Key(m *Host, name, text string) tea.Cmd
	Draw(m *Host, g *cell.Grid) (inside cell.Rect)
	Point(m *Host, inside cell.Rect, x, y int) tea.Cmd // a click within its frame
}

// Dialog clears a centred area of w x h cells, draws its border and returns the inside.
func Dialog(g *cell.Grid, w, h int, title, note string) cell.Rect {
	r := cell.Rect{X: (g.W - w) / 2, Y: (g.H - h) / 2, W: w, H: h}
	g.Clear(r)
	return g.Box(r, cell.Focus, title, note)
}

// Question is a dialog that asks for confirmation.
type Question struct {
	Text, Yes string
	No        string // title of key n; "": cancel
	Do        func(*Host) tea.Cmd
}

func (q *Question) noText() string { return "n " + cmp.Or(q.No, "cancel") }

func (q *Question) yesText() string { return "y " + q.Yes }

func (q *Question) Key(m *Host, name, _ string) tea.Cmd {
	switch name {
	case "y", "Y":
		m.Popup = nil
		return q.Do(m)
	case "n", "N", "esc", "q":
		m.Popup = nil
	}
	return nil
}

func (q *Question) Draw(_ *Host, g *cell.Grid) cell.Rect {
	lines := textfmt.Wrap(q.Text, 50)
	in := Dialog(g, min(g.W, 56), min(g.H, len(lines)+4), "sure?", "")
	for i, l := range lines {
		g.Text(in.X+1, in.Y+i, in.W-2, cell.Plain, l)
	}
	x := g.Text(in.X+1, in.Y+len(lines)+1, in.W-2, cell.Alert, q.yesText())
	g.Text(x+4, in.Y+len(lines)+1, in.W-2, cell.Key, q.noText())
	return in
}

// Point handles a click on one of the two answers.
func (q *Question) Point(m *Host, in cell.Rect, x, y int) tea.Cmd {
	yes := cell.Rect{X: in.X + 1, Y: in.Y + len(textfmt.Wrap(q.Text, 50)) + 1, W: cell.Width(q.yesText()), H: 1}
	no := cell.Rect{X: yes.X + yes.W + 4, Y: yes.Y, W: cell.Width(q.noText()), H: 1}
	switch {
	case yes.Has(x, y):
		return q.Key(m, "y", "")
	case no.Has(x, y):
		return q.Key(m, "n", "")
	}
	return nil
}
