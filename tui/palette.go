package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
	"brood/tui/panel"
)

// newPalette returns the palette of all screens, commands and keys.
func newPalette(m *model) *panel.Palette {
	p := &panel.Palette{}
	for i, s := range m.screens() {
		p.Choices = append(p.Choices, panel.PaletteEntry{Title: "screen " + s.Name, Key: fmt.Sprint(s.Digit),
			Do: func(*panel.Host) tea.Cmd { return m.OpenScreen(i) }})
		if s.Instead != "" {
			p.Choices = append(p.Choices, panel.PaletteEntry{Title: "screen " + s.Instead,
				Key: fmt.Sprintf("%d w", s.Digit),
				Do:  func(*panel.Host) tea.Cmd { return m.openInstead(i) }})
		}
	}
	for _, c := range m.commands() {
		text, do := c.Name, func(*panel.Host) tea.Cmd { return m.Run(c.Name) }
		if c.Args != "" {
			text += " " + c.Args
			do = func(*panel.Host) tea.Cmd {
				m.openPrompt()
				m.prompt.SetText(c.Name + " ")
				return nil
			}
		}
		p.Choices = append(p.Choices, panel.PaletteEntry{Title: text + ": " + c.Title, Key: ":", Do: do})
	}
	for _, b := range m.ownKeys() {
		if b.Do != nil && (b.When == nil || b.When(m.Host)) {
			p.Choices = append(p.Choices, panel.PaletteEntry{Title: b.Title, Key: b.Label(),
				Do: func(*panel.Host) tea.Cmd {
					if b.Why != nil {
						if why := b.Why(m.Host); why != "" {
							m.Say(cell.Warn, why)
							return nil
						}
					}
					return b.Do(m.Host)
				}})
		}
	}
	return p
}
