package tui

import (
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
	if p, ok := m.placedAt(h.x, h.y); ok && m.Popup == nil {
		round := m.roundUnder(p, h.x, h.y)
		h.at = panel.Cursor{On: round > 0, Round: round}
	}
	return h.at != before
}

// roundUnder returns the round under the mouse in a chart of a placed panel; 0 if there is none.
func (m *model) roundUnder(p panel.Placement, x, y int) uint64 {
	if plot := m.panel(p.Panel).Plot; plot != nil {
		return m.RoundUnder(plot(m.Host, p.Area.Inset(), x, y), x, y)
	}
	return 0
}

// endHover removes the round under the mouse once the mouse rests.
func (m *model) endHover() {
	if m.hover.at.On && m.Opt.Clock().After(m.hover.until) {
		m.hover.at = panel.Cursor{}
	}
}
