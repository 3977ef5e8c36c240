package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
)

func (m *model) pauseOrResume() tea.Cmd {
	if m.live.State.Phase == event.Paused {
		return m.run("resume")
	}
	return m.run("pause")
}

func (m *model) freeze() tea.Cmd {
	if m.frozen() {
		m.shown = m.live
		m.refresh()
		m.say(cell.Plain, "the display moves again")
		return nil
	}
	m.shown = m.live.Clone()
	m.say(cell.Plain, "frozen at round "+round(m.shown.Progress.Rounds)+": training goes on, f to follow it again")
	return nil
}

// expand gives the focused panel the whole screen, or takes that back.
func (m *model) expand() tea.Cmd {
	m.expanded = !m.expanded
	m.moveFocus(0)
	return nil
}

// back closes whatever is open, one thing at a time.
func (m *model) back() tea.Cmd {
	switch {
	case m.branching != nil:
		m.branching.cancel()
	case m.filters.text[m.list()] != "":
		m.setFilter(m.list(), "")
	case m.panel(m.focus).back != nil && m.panel(m.focus).back(m):
	case m.cursor.on && m.screens()[m.screen].charts:
		m.cursor = cursor{}
	case m.expanded:
		m.expand()
	case m.drawer:
		m.drawer = false
		m.moveFocus(0)
	case m.toast.text != "":
		m.toast = toast{}
	case m.home() >= 0 && m.screen != m.home():
		return m.openScreen(m.home())
	}
	return nil
}

func (m *model) openScreen(i int) tea.Cmd {
	if m.opt.Source == nil && i != m.home() {
		m.say(cell.Warn, noRun)
		return nil
	}
	if m.replay != nil && i == m.home() { // nobody sees it play on
		m.replay.Pause(true)
	}
	m.screen, m.expanded, m.drawer = i, false, false
	m.focus = m.screens()[i].lead
	return m.poll()
}

// openInstead opens what takes the place of a screen's panels.
func (m *model) openInstead(i int) tea.Cmd {
	open := m.openScreen(i)
	if m.screen != i {
		return open
	}
	s := m.screens()[i]
	if ids(m.everyPanel())[0] == s.lead {
		open = tea.Batch(open, s.show(m))
	}
	m.focus = ids(m.everyPanel())[0]
	return tea.Batch(open, m.poll())
}

// digit opens the screen of a digit.
func (m *model) digit(n int) tea.Cmd {
	var all []string
	for i, s := range m.screens() {
		if s.digit == n {
			return m.openScreen(i)
		}
		all = append(all, fmt.Sprintf("%d %s", s.digit, s.name))
	}
	m.say(cell.Warn, fmt.Sprintf("there is no screen %d: press one of %s", n, strings.Join(all, ", ")))
	return nil
}

// moveFocus goes d panels on among those that have a place; where one has it all, among those of the screen.
func (m *model) moveFocus(d int) {
	m.layout()
	if len(m.placed) == 0 {
		return
	}
	all := ids(m.placed)
	if m.w < panelsW || m.expanded {
		all = ids(m.everyPanel())
	}
	i := slices.Index(all, m.focus)
	if i < 0 {
		i = 0
	} else {
		i = (i + d + len(all)) % len(all)
	}
	m.focus = all[i]
	m.drawer = m.drawer && m.focus == knobsPanel
}

// toggleRail puts the focus on the knobs, opening the drawer where the rail has no place.
func (m *model) toggleRail() tea.Cmd {
	if m.focus == knobsPanel && m.drawer {
		m.drawer = false
		m.moveFocus(0)
		return nil
	}
	m.expanded = false
	m.layout()
	m.drawer = !slices.Contains(ids(m.placed), knobsPanel)
	m.focus = knobsPanel
	return nil
}

func (m *model) moveMember(d int) {
	ids := m.shown.Members().Members
	if i := slices.Index(ids, m.member); i >= 0 {
		m.member = ids[(i+d+len(ids))%len(ids)]
	}
}

func (m *model) bestMember() {
	s := m.strip()
	if s == nil || len(m.inOrder(s)) == 0 {
		m.say(cell.Warn, "nothing was measured of members yet")
		return
	}
	m.member = m.inOrder(s)[0].Member
	m.say(cell.Plain, fmt.Sprintf("m%d is first by %s, %s", m.member, s.Name, order(s)))
}

// copyNumbers puts a line of text on the clipboard of the terminal, over SSH as well.
func (m *model) copyNumbers() tea.Cmd {
	v := m.shown
	s := []string{m.title(), "round " + round(v.Progress.Rounds), fmt.Sprintf("epoch %.2f", v.Progress.Epochs)}
	if x, ok := v.Find(view.CentreLoss).Last(view.Whole); ok && v.Fresh(v.Find(view.CentreLoss)) {
		s = append(s, "centre loss "+Number(x))
	}
	if v.Evaluation != nil {
		_, name := m.scoreSeries()
		s = append(s, name+" "+m.scored(v.Evaluation))
	}
	if v.Hash != "" {
		s = append(s, v.Hash)
	}
	m.say(cell.Plain, "copied: "+strings.Join(s, "  "))
	return tea.SetClipboard(strings.Join(s, "\t"))
}

func (m *model) click(x, y int) tea.Cmd {
	if m.popup != nil {
		frame := cell.Rect{X: m.inside.X - 1, Y: m.inside.Y - 1, W: m.inside.W + 2, H: m.inside.H + 2}
		if !frame.Has(x, y) {
			return m.popup.key(m, "esc", "")
		}
		if !m.inside.Has(x, y) { // on the frame there is nothing to do
			return nil
		}
		return m.popup.point(m, m.inside, x, y)
	}
	if i := slices.IndexFunc(m.tabs, func(at cell.Rect) bool { return at.Has(x, y) }); i >= 0 {
		return m.openScreen(i)
	}
	for i := len(m.placed) - 1; i >= 0; i-- {
		if p := m.placed[i]; p.at.Has(x, y) {
			m.focus = p.panel
			m.drawer = m.drawer && m.focus == knobsPanel
			if point := m.panel(p.panel).point; point != nil {
				point(m, p.at.Inset(), x, y)
			}
			return nil
		}
	}
	return nil
}

func (m *model) wheel(msg tea.MouseWheelMsg) tea.Cmd {
	key := "down"
	if msg.Button == tea.MouseWheelUp {
		key = "up"
	}
	if m.popup != nil {
		return m.popup.key(m, key, "")
	}
	at := m.cursor
	m.under = 0
	m.click(msg.X, msg.Y)
	m.cursor = at // turning the wheel points at no round
	switch {
	case m.list() != "":
		return m.key(key, "")
	case m.under > 0:
		return m.zoomAt(m.under, key == "up")
	}
	return nil
}
