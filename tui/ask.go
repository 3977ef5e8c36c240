package tui

import (
	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
)

// ask asks for a line of text.
type ask struct {
	line
	title, about string
	do           func(m *model, text string) (tea.Cmd, error)
	err          string
}

func (e *ask) key(m *model, name, text string) tea.Cmd {
	e.err = ""
	switch name {
	case "esc":
		m.popup = nil
	case "enter":
		m.popup = nil
		cmd, err := e.do(m, e.text())
		if err != nil {
			m.popup, e.err = e, err.Error()
		}
		return cmd
	default:
		e.line.key(name, text)
	}
	return nil
}

func (e *ask) point(*model, cell.Rect, int, int) tea.Cmd { return nil }

func (e *ask) draw(m *model, g *cell.Grid) cell.Rect {
	w := min(g.W, 64)
	about := wrap(e.about, w-4)
	if e.err != "" {
		about = wrap(e.err, w-4)
	}
	in := dialog(g, w, min(g.H, len(about)+5), e.title, "enter keeps, esc leaves")
	from := min(max(0, e.at-max(1, in.W-4)), len(e.runes))
	g.Text(in.X+1, in.Y, in.W-2, cell.Plain, string(e.runes[from:]))
	x := in.X + 1 + e.at - from
	c := g.At(x, in.Y)
	if g.Set(x, in.Y, c.R, cell.Chosen); m.opt.NoColor && c.R == ' ' {
		g.Set(x, in.Y, '_', cell.Chosen)
	}
	role := cell.Faint
	if e.err != "" {
		role = cell.Alert
	}
	for i, l := range about {
		g.Text(in.X+1, in.Y+2+i, in.W-2, role, l)
	}
	return in
}
