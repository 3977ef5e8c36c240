package tui

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/tui/panel"
)

const (
	hoverEvery = 33 * time.Millisecond // least time between frames for the motion of the mouse
	hoverFor   = 5 * time.Second       // a mouse at rest hides the newest values no longer than this
)

// hover is the round under the mouse over a chart. While it is on, frames show it as the cursor of all charts. It
// changes no cursor.
type hover struct {
	at      panel.Cursor
	x, y    int  // last position of the mouse
	pending bool // a hoverMsg is due
	until   time.Time
}

// hoverMsg asks for the round under the mouse. Terminals report each cell that the mouse crosses, which would be more
// frames than a display shows.
type hoverMsg struct{}

// motion stores the position of the mouse and requests a hoverMsg, unless one is due.
func (m *model) motion(x, y int) tea.Cmd {
	m.hover.x, m.hover.y = x, y
	if m.hover.pending {
		return nil
	}
	m.hover.pending = true
	ctx := m.Ctx
	return m.Job(func() tea.Msg {
		t := time.NewTimer(hoverEvery)
		defer t.Stop()
		select {
		case <-t.C:
			return hoverMsg{}
		case <-ctx.Done():
			return nil
		}
	})
}

// lookUnder updates the round under the mouse. It reports whether it changed.
func (m *model) lookUnder() bool {
	h := &m.hover
	before := h.at
	h.at, h.pending, h.until = panel.Cursor{}, false, m.Opt.Clock().Add(hoverFor)
	for _, p := range slices.Backward(m.Placed) {
		if !p.Area.Has(h.x, h.y) {
			continue
		}
		if plot := m.panel(p.Panel).Plot; plot != nil && m.Popup == nil {
			cursor, under := m.Cursor, m.Under
			m.Under = 0
			m.PointIn(plot(m.Host, p.Area.Inset(), h.x, h.y), h.x, h.y)
			h.at = panel.Cursor{On: m.Under > 0, Round: m.Under}
			m.Cursor, m.Under = cursor, under
		}
		break
	}
	return h.at != before
}

// endHover removes the round under the mouse once the mouse rests.
func (m *model) endHover() {
	if m.hover.at.On && m.Opt.Clock().After(m.hover.until) {
		m.hover.at = panel.Cursor{}
	}
}
