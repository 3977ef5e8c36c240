package tui

import (
	"slices"

	"brood/tui/cell"
	"brood/tui/panel"
)

// Layout decides where panels are; it changes with the size, the screen, what is expanded, and with what a run has at
// all (links, a test set), never with values.
func (m *model) Layout() {
	body := cell.Rect{X: 0, Y: 2, W: m.W, H: m.H - 3}
	if m.Replay != nil {
		body.H--
	}
	switch {
	case m.W < panel.LeastW || m.H < panel.LeastH:
		m.Placed = nil
	case m.W < panel.PanelsW || m.Expanded:
		m.Placed = []panel.Placement{{Panel: m.focusIn(m.everyPanel()), At: body}}
	default:
		m.Placed = m.place(body)
		if m.drawer {
			w := min(panel.RailW, body.W)
			m.Placed = append(m.Placed, panel.Placement{Panel: panel.Knobs, At: cell.Rect{X: body.X + body.W - w, Y: body.Y, W: w, H: body.H}})
		}
	}
}

// everyPanel is the panels of the screen where all have a place.
func (m *model) everyPanel() []panel.Placement {
	return m.place(cell.Rect{X: 0, Y: 2, W: panel.WideW, H: 40})
}

// place lays the screen's panels out.
func (m *model) place(body cell.Rect) []panel.Placement {
	s := m.screens()[m.screen]
	if s.Place == nil {
		return []panel.Placement{{Panel: s.Lead, At: body}}
	}
	return s.Place(m.Host, body)
}

// focusIn is the focused panel when the screen has it, else its first.
func (m *model) focusIn(all []panel.Placement) panel.ID {
	for _, p := range all {
		if p.Panel == m.Focus {
			return m.Focus
		}
	}
	return all[0].Panel
}

// Has says whether a panel stands on the screen, whatever its size.
func (m *model) Has(id panel.ID) bool { return slices.Contains(panel.Ids(m.everyPanel()), id) }
