package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
	"brood/tui/panel"
)

// SaveSettings saves the settings in a job, after the job of the last call.
func (m *model) SaveSettings() tea.Cmd {
	keep, s := m.Opt.Keep, m.Opt.Settings
	if keep == nil {
		return nil
	}
	before, done := m.settingsSaved, make(chan struct{})
	m.settingsSaved = done
	return m.Job(func() tea.Msg {
		defer close(done)
		if before != nil {
			<-before // so that the newest settings are written last
		}
		if err := keep(s); err != nil {
			return panel.Reply(func(*panel.Host) tea.Cmd {
				m.Say(cell.Warn, fmt.Sprintf("the settings apply now but were not saved: %v", err))
				return nil
			})
		}
		return nil
	})
}
