package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
	"brood/tui/panel"
)

// drag is a mouse drag: over a chart, which selects a range of rounds, or along the timeline.
type drag struct {
	time   bool // along the timeline
	panel  panel.ID
	x, y   int
	from   uint64       // round under the press; 0: not on a chart
	before panel.Cursor // chart cursor before the press
}

// press handles a click, which may start a drag.
func (m *model) press(x, y int) tea.Cmd {
	if m.Popup == nil && m.timelineAt.Has(x, y) {
		m.drag = drag{time: true}
		return m.scrub(x)
	}
	m.drag = drag{x: x, y: y, before: m.Cursor}
	return m.click(x, y)
}

// scrub moves to the round under the mouse during a drag along the timeline.
func (m *model) scrub(x int) tea.Cmd {
	if !m.drag.time || m.timelineAt.W == 0 {
		return nil
	}
	return m.moveTo(m.timeScaleOf(m.timelineAt.W).round(x - m.timelineAt.X))
}

// release ends a drag in a chart and shows the range of rounds that it covered. A move of one cell or less is a click,
// which moves a recording to its round, as it has set the cursor of a live run.
func (m *model) release(x int) tea.Cmd {
	d := m.drag
	m.drag = drag{}
	if d.from == 0 || m.Popup != nil {
		return nil
	}
	if x-d.x >= -1 && x-d.x <= 1 {
		if m.Replay == nil {
			return nil
		}
		return m.moveTo(d.from)
	}
	m.Cursor = d.before
	m.PlacePanels() // as at the press: the cursor has a timeline
	i := slices.IndexFunc(m.Placed, func(p panel.Placement) bool { return p.Panel == d.panel && p.Area.Has(x, d.y) })
	if i < 0 {
		return nil
	}
	to := m.roundUnder(m.Placed[i], x, d.y)
	if to == 0 {
		return nil
	}
	first, end := m.Extent()
	lo, hi := min(d.from, to), max(d.from, to)+1
	span := min(max(hi-lo, m.MinWindow()), end-first)
	m.ShowRounds(min(max(lo, first), end-span), span)
	return nil
}

func (m *model) click(x, y int) tea.Cmd {
	if m.Popup != nil {
		frame := cell.Rect{X: m.popupInside.X - 1, Y: m.popupInside.Y - 1, W: m.popupInside.W + 2,
			H: m.popupInside.H + 2}
		if !frame.Has(x, y) {
			return m.Popup.Key(m.Host, "esc", "")
		}
		if !m.popupInside.Has(x, y) { // on the frame there is nothing to do
			return nil
		}
		return m.Popup.Point(m.Host, m.popupInside, x, y)
	}
	if i := slices.IndexFunc(m.tabs, func(at cell.Rect) bool { return at.Has(x, y) }); i >= 0 {
		return m.OpenScreen(i)
	}
	p, ok := m.focusAt(x, y)
	if !ok {
		return nil
	}
	m.drag.panel, m.drag.from = p.Panel, m.roundUnder(p, x, y)
	if m.drag.from > 0 && m.Replay == nil {
		m.Cursor = panel.Cursor{On: true, Round: m.drag.from}
	}
	if point := m.panel(p.Panel).Point; point != nil {
		point(m.Host, p.Area.Inset(), x, y)
	}
	return nil
}

// placedAt returns the placement of the panel at x, y; ok is false if there is none.
func (m *model) placedAt(x, y int) (p panel.Placement, ok bool) {
	for _, p := range slices.Backward(m.Placed) {
		if p.Area.Has(x, y) {
			return p, true
		}
	}
	return panel.Placement{}, false
}

// focusAt is placedAt, and moves the focus to the panel.
func (m *model) focusAt(x, y int) (p panel.Placement, ok bool) {
	if p, ok = m.placedAt(x, y); ok {
		m.Focus = p.Panel
		m.railOpen = m.railOpen && m.Focus == panel.Knobs
	}
	return p, ok
}

// wheel moves by one entry in the list under the mouse, or zooms the chart there at the round under the mouse.
func (m *model) wheel(msg tea.MouseWheelMsg) tea.Cmd {
	key := "down"
	switch msg.Button {
	case tea.MouseWheelUp:
		key = "up"
	case tea.MouseWheelDown:
	default: // sideways
		return nil
	}
	if m.Popup != nil {
		return m.Popup.Key(m.Host, key, "")
	}
	p, ok := m.focusAt(msg.X, msg.Y)
	if !ok {
		return nil
	}
	if m.panel(p.Panel).List != nil {
		return m.key(key, "")
	}
	if round := m.roundUnder(p, msg.X, msg.Y); round > 0 {
		return m.ZoomAt(round, key == "up")
	}
	return nil
}
