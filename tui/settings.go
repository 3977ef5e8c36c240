package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
	"brood/tui/panel"
)

// SaveSettings has the settings kept, beside Update.
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
			<-before // the last one holds
		}
		if err := keep(s); err != nil {
			return panel.Reply(func(*panel.Host) tea.Cmd {
				m.Say(cell.Warn, fmt.Sprintf("the charts are as you chose, but not kept for the next time: %v", err))
				return nil
			})
		}
		return nil
	})
}
