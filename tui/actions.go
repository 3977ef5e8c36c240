package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/panel/live"
	"brood/tui/textfmt"
)

func (m *model) pauseOrResume() tea.Cmd {
	if m.Live.State.Phase == event.Paused {
		return m.Run("resume")
	}
	return m.Run("pause")
}

func (m *model) freeze() tea.Cmd {
	if m.Frozen() {
		m.Shown = m.Live
		m.refresh()
		m.Say(cell.Plain, "the display follows the run again")
		return nil
	}
	m.Shown = m.Live.Clone()
	m.Say(cell.Plain,
		"frozen at round "+textfmt.Grouped(m.Shown.Progress.Rounds)+": training continues, f follows it again")
	return nil
}

// expand toggles whether the focused panel fills the screen.
func (m *model) expand() tea.Cmd {
	m.Expanded = !m.Expanded
	m.moveFocus(0)
	return nil
}

// back closes or resets one thing: in order a pending fork, the filter, the state of the panel, the knob rail, the
// cursor, the expanded panel, the message, the screen: to the one that the user came from, and then to the list of
// runs.
func (m *model) back() tea.Cmd {
	switch {
	case m.branching != nil:
		m.branching.cancel()
	case m.Filters.Text[m.listName()] != "":
		m.setFilter(m.listName(), "")
	case m.panel(m.Focus).Back != nil && m.panel(m.Focus).Back(m.Host):
	case m.Focus == panel.Knobs && !m.Expanded:
		m.leaveRail()
	case m.Cursor.On && m.screens()[m.screen].Charts:
		m.Cursor = panel.Cursor{}
	case m.Expanded:
		m.expand()
	case m.Toast.Text != "":
		m.Toast = panel.Toast{}
	case len(m.visited) > 0:
		return m.OpenScreen(m.visited[len(m.visited)-1])
	case m.HomeScreen() >= 0 && m.screen != m.HomeScreen():
		return m.OpenScreen(m.HomeScreen())
	}
	return nil
}

// OpenScreen opens the screen with index i.
func (m *model) OpenScreen(i int) tea.Cmd {
	if m.Opt.Source == nil && i != m.HomeScreen() {
		m.Say(cell.Warn, panel.NoRunText)
		return nil
	}
	if m.Replay != nil && i == m.HomeScreen() { // the list hides the recording
		m.Replay.Pause(true)
	}
	switch k := slices.Index(m.visited, i); {
	case i == m.HomeScreen() || m.screen == m.HomeScreen():
		m.visited = nil
	case k >= 0:
		m.visited = m.visited[:k]
	case i != m.screen:
		m.visited = append(m.visited, m.screen)
	}
	m.screen, m.Expanded, m.railOpen, m.beforeRail = i, false, false, origin{}
	m.Focus = m.screens()[i].Lead
	return m.pollPanels()
}

// openInstead opens what replaces the panels of a screen.
func (m *model) openInstead(i int) tea.Cmd {
	open := m.OpenScreen(i)
	if m.screen != i {
		return open
	}
	s := m.screens()[i]
	if panel.PanelIDs(m.allPanels())[0] == s.Lead {
		open = tea.Batch(open, s.Show(m.Host))
	}
	m.Focus = panel.PanelIDs(m.allPanels())[0]
	return tea.Batch(open, m.pollPanels())
}

// digit opens the screen with this digit.
func (m *model) digit(n int) tea.Cmd {
	var all []string
	for i, s := range m.screens() {
		if s.Digit == n {
			return m.OpenScreen(i)
		}
		all = append(all, fmt.Sprintf("%d %s", s.Digit, s.Name))
	}
	m.Say(cell.Warn, fmt.Sprintf("there is no screen %d: press one of %s", n, strings.Join(all, ", ")))
	return nil
}

// moveFocus moves the focus by d panels among the placed ones; if one panel fills the screen, among all of the screen.
func (m *model) moveFocus(d int) {
	m.PlacePanels()
	if len(m.Placed) == 0 {
		return
	}
	all := panel.PanelIDs(m.Placed)
	if m.W < panel.PanelsW || m.Expanded {
		all = panel.PanelIDs(m.allPanels())
	}
	i := slices.Index(all, m.Focus)
	if i < 0 {
		i = 0
	} else {
		i = (i + d + len(all)) % len(all)
	}
	m.Focus = all[i]
	m.railOpen = m.railOpen && m.Focus == panel.Knobs
}

// origin is the panel from which the user came to the knob rail; zero: none.
type origin struct {
	panel    panel.ID
	expanded bool
}

// leaveRail closes the knob rail and returns to the panel from which the user came, else to the first of the screen.
func (m *model) leaveRail() {
	from := m.beforeRail
	m.railOpen, m.beforeRail = false, origin{}
	if m.Focus = m.screens()[m.screen].Lead; from.panel != "" && m.HasPanel(from.panel) {
		m.Focus, m.Expanded = from.panel, from.expanded
	}
	m.moveFocus(0)
}

// openRail focuses the knob rail, and opens it above the panels if the layout has no place for it.
func (m *model) openRail() tea.Cmd {
	m.beforeRail = origin{m.Focus, m.Expanded}
	m.Focus, m.Expanded = panel.Knobs, false
	m.showFocus()
	return nil
}

// showFocus opens the knob rail if it has the focus and the layout has no place for it. If another panel with the focus
// is not placed, it focuses the first one.
func (m *model) showFocus() {
	m.railOpen = false
	if m.Focus != panel.Knobs {
		m.moveFocus(0)
		return
	}
	m.PlacePanels()
	m.railOpen = !slices.Contains(panel.PanelIDs(m.Placed), panel.Knobs)
}

func (m *model) moveMember(d int) {
	ids := m.Shown.Members().Members
	if i := slices.Index(ids, m.Member); i >= 0 {
		m.Member = ids[(i+d+len(ids))%len(ids)]
	}
}

func (m *model) bestMember() {
	s := m.TraitSeries()
	if s == nil || len(m.Ranking(s)) == 0 {
		m.Say(cell.Warn, "no series of members is measured yet")
		return
	}
	m.Member = m.Ranking(s)[0].Member
	m.Say(cell.Plain, fmt.Sprintf("m%d is first by %s, %s", m.Member, m.SeriesName(s.Name), live.RankingOrder(s)))
}

// copyNumbers copies a line of text to the clipboard of the terminal, which also works over SSH.
func (m *model) copyNumbers() tea.Cmd {
	v := m.Shown
	s := []string{m.title(), "round " + textfmt.Grouped(v.Progress.Rounds),
		fmt.Sprintf("epoch %.2f", v.Progress.Epochs)}
	if x, ok := v.Find(view.CentreLoss).Last(view.Whole); ok && v.Fresh(v.Find(view.CentreLoss)) {
		s = append(s, "centre loss "+textfmt.Number(x))
	}
	if v.Evaluation != nil {
		_, name := m.ScoreSeries()
		s = append(s, name+" "+m.EvaluationText(v.Evaluation))
	}
	if v.Hash != "" {
		s = append(s, v.Hash)
	}
	m.Say(cell.Plain, "copied: "+strings.Join(s, "  "))
	return tea.SetClipboard(strings.Join(s, "\t"))
}
