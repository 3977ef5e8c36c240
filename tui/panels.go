package tui

import (
	"cmp"
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/tui/panel"
	"brood/tui/panel/alerts"
	"brood/tui/panel/fleet"
	"brood/tui/panel/live"
	"brood/tui/panel/runs"
	"brood/tui/panel/trained"
)

// newPanels is the registry of panels: a new panel is one file and one entry here. Help lists the groups of keys in
// this order.
func newPanels(m *model) []panel.Panel {
	positions, report, episode := trained.NewPositions(), trained.NewTestReport(), trained.NewEpisodePlayer()
	all := slices.Concat(
		[]panel.Panel{
			live.NewLoss(trained.InsteadOfLive(report, episode)),
			live.NewFitness(),
			live.NewBandwidth(),
			live.NewScore(),
			live.NewReplicas(),
			live.NewPopulation(),
			live.NewTraffic(),
			fleet.NewLinkHistory(),
		},
		live.NewPopulationPanels(panel.Instead{Show: positions.Toggle, Place: positions.Place}),
		positions.Panels(),
		report.Panels(),
		[]panel.Panel{episode.Panel()},
		m.rail.Panels(),
		[]panel.Panel{alerts.NewEventList()},
		alerts.NewAlertList(),
		fleet.New().Panels(),
		[]panel.Panel{live.NewCharts()},
	)
	launch := runs.NewLaunch().Panel()
	if m.Opt.Library == nil { // the command remains and returns the reason
		launch.Keys, launch.Group = nil, ""
	}
	all = append(all, launch)
	if m.Opt.Library != nil { // else there are no runs to list
		all = append(all, runs.New().Panels()...)
	}
	return all
}

// panel returns the panel with an id; the zero Panel if there is none.
func (m *model) panel(id panel.ID) panel.Panel {
	if i := slices.IndexFunc(m.panels, func(p panel.Panel) bool { return p.ID == id }); i >= 0 {
		return m.panels[i]
	}
	return panel.Panel{}
}

// openInput returns the open input of a panel; nil if there is none.
func (m *model) openInput() *panel.Typing {
	for _, p := range m.panels {
		if p.Typing == nil {
			continue
		}
		if t := p.Typing(); t != nil {
			return t
		}
	}
	return nil
}

// screens returns the screens in the order of their digits.
func (m *model) screens() (all []panel.Screen) {
	for _, p := range m.panels {
		if p.Screen != nil {
			s := *p.Screen
			s.Lead = p.ID
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b panel.Screen) int { return cmp.Compare(a.Digit, b.Digit) })
	return all
}

// LeadsScreen reports whether the panel leads the open screen.
func (m *model) LeadsScreen(id panel.ID) bool { return m.screens()[m.screen].Lead == id }

// HomeScreen returns the index of the screen that needs no run; -1 if there is none.
func (m *model) HomeScreen() int {
	return slices.IndexFunc(m.screens(), func(s panel.Screen) bool { return s.Home })
}

// pollPanels calls Poll of every panel.
func (m *model) pollPanels() tea.Cmd {
	var all []tea.Cmd
	for _, p := range m.panels {
		if p.Poll != nil {
			all = append(all, p.Poll(m.Host))
		}
	}
	return tea.Batch(all...)
}

// FocusLead focuses the leading panel of the open screen.
func (m *model) FocusLead() { m.Focus, m.Expanded = m.screens()[m.screen].Lead, false }

// hasScreen reports whether a screen, or what replaces its panels, has this name.
func (m *model) hasScreen(name string) bool {
	return slices.ContainsFunc(m.screens(), func(s panel.Screen) bool { return s.Name == name || s.Instead == name })
}
