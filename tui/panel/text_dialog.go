package panel

import (
	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
	"brood/tui/textfmt"
)

// TextDialog is a dialog that asks for a line of text. Do receives the text; on an error the dialog stays open and
// shows it.
type TextDialog struct {
	TextInput
	Title, About string
	Do           func(m *Host, text string) (tea.Cmd, error)
	Err          string
}

func (e *TextDialog) Key(m *Host, name, text string) tea.Cmd {
	e.Err = ""
	switch name {
	case "esc":
		m.Popup = nil
	case "enter":
		m.Popup = nil
		cmd, err := e.Do(m, e.Text())
		if err != nil {
			m.Popup, e.Err = e, err.Error()
		}
		return cmd
	default:
		e.TextInput.Key(name, text)
	}
	return nil
}

func (e *TextDialog) Point(*Host, cell.Rect, int, int) tea.Cmd { return nil }

func (e *TextDialog) Draw(m *Host, g *cell.Grid) cell.Rect {
	w := min(g.W, 64)
	about := textfmt.Wrap(e.About, w-4)
	if e.Err != "" {
		about = textfmt.Wrap(e.Err, w-4)
	}
	in := Dialog(g, w, min(g.H, len(about)+5), e.Title, "enter saves, esc cancels")
	DrawInput(m, g, in.X+1, in.Y, in.W-2, cell.Plain, &e.TextInput)
	role := cell.Faint
	if e.Err != "" {
		role = cell.Alert
	}
	for i, l := range about {
		g.Text(in.X+1, in.Y+2+i, in.W-2, role, l)
	}
	return in
}
