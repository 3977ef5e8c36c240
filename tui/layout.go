package tui

import (
	"slices"

	"brood/tui/cell"
	"brood/tui/panel"
)

// PlacePanels recomputes the areas of the panels. They depend on the size, the screen, what is expanded and which parts
// a run has (links, a test set), never on values.
func (m *model) PlacePanels() {
	body := cell.Rect{X: 0, Y: 2, W: m.W, H: m.H - 3}
	if m.showsTimeline() {
		body.H--
	}
	switch {
	case m.W < panel.MinW || m.H < panel.MinH:
		m.Placed = nil
	case m.W < panel.PanelsW && m.railOpen && m.Focus == panel.Knobs: // also on screens without a place for it
		m.Placed = []panel.Placement{{Panel: panel.Knobs, Area: body}}
	case m.W < panel.PanelsW || m.Expanded:
		m.Placed = []panel.Placement{{Panel: m.focusAmong(m.allPanels()), Area: body}}
	default:
		m.Placed = m.placeIn(body)
		if m.railOpen {
			w := min(panel.RailW, body.W)
			m.Placed = append(m.Placed, panel.Placement{Panel: panel.Knobs,
				Area: cell.Rect{X: body.X + body.W - w, Y: body.Y, W: w, H: body.H}})
		}
	}
}

// allPanels returns the panels of the screen in a size where all are placed.
func (m *model) allPanels() []panel.Placement {
	return m.placeIn(cell.Rect{X: 0, Y: 2, W: panel.WideW, H: 40})
}

// placeIn returns the layout of the open screen in body.
func (m *model) placeIn(body cell.Rect) []panel.Placement {
	s := m.screens()[m.screen]
	if s.Place == nil {
		return []panel.Placement{{Panel: s.Lead, Area: body}}
	}
	return s.Place(m.Host, body)
}

// focusAmong returns the focused panel if the screen has it, else the first one.
func (m *model) focusAmong(all []panel.Placement) panel.ID {
	for _, p := range all {
		if p.Panel == m.Focus {
			return m.Focus
		}
	}
	return all[0].Panel
}

// HasPanel reports whether a panel belongs to the open screen, at any size.
func (m *model) HasPanel(id panel.ID) bool {
	return slices.Contains(panel.PanelIDs(m.allPanels()), id)
}
