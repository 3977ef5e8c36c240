package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/tui/panel"
)

// openPalette opens the palette and requests what it lists.
func (m *model) openPalette() tea.Cmd {
	m.Popup = newPalette(m)
	return m.loadValues()
}

// newPalette returns the palette of all actions.
func newPalette(m *model) *panel.Palette {
	return &panel.Palette{Choices: m.paletteEntries(), Refresh: m.paletteEntries}
}

// paletteEntries returns the entries of the palette: the screens, the commands, the keys that apply now, and the
// commands with each of their values.
func (m *model) paletteEntries() []panel.PaletteEntry {
	var screens, commands, keys, values []panel.PaletteEntry
	for _, c := range m.commands() {
		if c.Values != nil {
			for _, v := range c.Values(m.Host) {
				e := panel.PaletteEntry{Title: v.Title, Key: v.Key, Words: c.Name + " " + v.Word, Why: c.Why,
					Do: func(*panel.Host) tea.Cmd { return m.Run(c.Name + " " + v.Word) }}
				if v.Key != "" {
					screens = append(screens, e)
					continue
				}
				e.Key = ":" + c.Name
				values = append(values, e)
			}
		}
		e := panel.PaletteEntry{Title: strings.TrimSpace(c.Name+" "+c.Args) + ": " + c.Title, Key: ":", Why: c.Why,
			Do: func(*panel.Host) tea.Cmd { return m.Run(c.Name) }}
		if c.Args != "" && !c.Optional {
			e.Do = func(*panel.Host) tea.Cmd {
				load := m.openPrompt()
				m.prompt.SetText(c.Name + " ")
				return load
			}
		}
		commands = append(commands, e)
	}
	for _, b := range m.bindings() {
		if b.Do != nil && (b.When == nil || b.When(m.Host)) {
			keys = append(keys, panel.PaletteEntry{Title: b.Title, Key: b.Label(), Why: b.Why, Do: b.Do})
		}
	}
	return slices.Concat(screens, commands, keys, values)
}

// loadValues requests the values of commands that are not known yet.
func (m *model) loadValues() tea.Cmd {
	var all []tea.Cmd
	for _, c := range m.commands() {
		if c.Load != nil {
			all = append(all, c.Load(m.Host))
		}
	}
	return tea.Batch(all...)
}

// refreshPalette updates the open palette after values have arrived.
func (m *model) refreshPalette() {
	if p, ok := m.Popup.(*panel.Palette); ok {
		p.Update()
	}
}
