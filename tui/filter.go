package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/tui/panel"
)

// listName returns the name of the focused panel's list; "" if it has none.
func (m *model) listName() string {
	if l := m.panel(m.Focus).List; l != nil {
		return l.Name
	}
	return ""
}

func (m *model) whyNoFilter() string {
	if m.listName() == "" {
		return "nothing to filter here: focus " + m.listEntries() + " first (tab)"
	}
	return ""
}

// listEntries returns the nouns of all lists, for a sentence.
func (m *model) listEntries() string {
	var all []string
	for _, p := range m.panels {
		if p.List != nil && !slices.Contains(all, "the "+p.List.Entries) {
			all = append(all, "the "+p.List.Entries)
		}
	}
	if n := len(all); n > 1 {
		all = append(all[:n-2], all[n-2]+" or "+all[n-1])
	}
	return strings.Join(all, ", ")
}

func (m *model) openFilter() tea.Cmd {
	m.Filters.List, m.Filters.Typing = m.listName(), &panel.TextInput{}
	m.Filters.Typing.SetText(m.Filters.Text[m.Filters.List])
	return nil
}

func (m *model) filterKey(name, text string) tea.Cmd {
	f := &m.Filters
	switch name {
	case "enter":
		f.Typing = nil
	case "esc":
		f.Typing = nil
		m.setFilter(f.List, "")
	case "tab", "shift+tab":
		if complete := m.panel(m.Focus).List.Complete; complete != nil {
			d := 1
			if name == "shift+tab" {
				d = -1
			}
			f.Typing.Complete(complete(m.Host, f.Typing.Text()), d, "")
			m.setFilter(f.List, f.Typing.Text())
		}
	default:
		f.Typing.Key(name, text)
		m.setFilter(f.List, f.Typing.Text())
	}
	return nil
}

func (m *model) setFilter(list, text string) {
	m.Filters.Text[list] = text
	for _, p := range m.panels {
		if p.List != nil && p.List.Name == list && p.List.Top != nil {
			p.List.Top()
		}
	}
}

// filterHints returns the keys of a filter that is being typed, with the completions of its last word.
func (m *model) filterHints() [][2]string {
	out := [][2]string{{"enter", "keep the filter"}, {"esc", "clear it"}}
	list := m.panel(m.Focus).List
	if list == nil || list.Complete == nil {
		return out
	}
	const most = 4
	text := m.Filters.Typing.Text()
	words := list.Complete(m.Host, text)
	switch {
	case text == "" || strings.HasSuffix(text, " "):
		words = []string{"completes names"}
	case len(words) > most:
		words = append(words[:most:most], "...")
	}
	if len(words) > 0 {
		out = append(out, [2]string{"tab", strings.Join(words, " ")})
	}
	return out
}
