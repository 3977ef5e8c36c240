package panel

import tea "charm.land/bubbletea/v2"

// Page is the state of panels that replace those of a screen while they are open.
type Page struct {
	Own, Lead ID // panels that have the focus after the page is opened, and after it is closed
	Open      bool
}

// Toggle opens or closes the page.
func (p *Page) Toggle(m *Host) tea.Cmd {
	p.Open = !p.Open
	if m.Focus = p.Lead; p.Open {
		m.Focus = p.Own
	}
	return nil
}

// Close closes the page and reports whether it was open.
func (p *Page) Close(m *Host) bool {
	if !p.Open {
		return false
	}
	p.Toggle(m)
	return true
}
