package tui

import (
	"slices"

	"brood/tui/cell"
	"brood/tui/panel"
)

// PlacePanels decides where panels are; it changes with the size, the screen, what is expanded, and with what a run has at
// all (links, a test set), never with values.
func (m *model) PlacePanels() {
	body := cell.Rect{X: 0, Y: 2, W: m.W, H: m.H - 3}
	if m.Replay != nil {
		body.H--
	}
	switch {
	case m.W < panel.MinW || m.H < panel.MinH:
		m.Placed = nil
	case m.W < panel.PanelsW || m.Expanded:
		m.Placed = []panel.Placement{{Panel: m.focusAmong(m.allPanels()), Area: body}}
	default:
		m.Placed = m.placeIn(body)
		if m.railOpen {
			w := min(panel.RailW, body.W)
			m.Placed = append(m.Placed, panel.Placement{Panel: panel.Knobs, Area: cell.Rect{X: body.X + body.W - w, Y: body.Y, W: w, H: body.H}})
		}
	}
}

// allPanels is the panels of the screen where all have a place.
func (m *model) allPanels() []panel.Placement {
	return m.placeIn(cell.Rect{X: 0, Y: 2, W: panel.WideW, H: 40})
}

// placeIn lays the screen's panels out.
func (m *model) placeIn(body cell.Rect) []panel.Placement {
	s := m.screens()[m.screen]
	if s.Place == nil {
		return []panel.Placement{{Panel: s.Lead, Area: body}}
	}
	return s.Place(m.Host, body)
}

// focusAmong is the focused panel when the screen has it, else its first.
func (m *model) focusAmong(all []panel.Placement) panel.ID {
	for _, p := range all {
		if p.Panel == m.Focus {
			return m.Focus
		}
	}
	return all[0].Panel
}

// HasPanel says whether a panel stands on the screen, whatever its size.
func (m *model) HasPanel(id panel.ID) bool {
	return slices.Contains(panel.PanelIDs(m.allPanels()), id)
}
