package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// filters are what the entries of a list must hold, by list, and the one being typed. A filter works while it is typed.
type filters struct {
	text   map[string]string
	typing *line
	list   string // that is being typed for
}

// list names the list of the focused panel, "" for none.
func (m *model) list() string {
	if l := m.panel(m.focus).list; l != nil {
		return l.name
	}
	return ""
}

func (m *model) whyNoFilter() string {
	if m.list() == "" {
		return "nothing to filter here: focus " + m.lists() + " first (tab)"
	}
	return ""
}

// lists are the entries of all lists, for a sentence.
func (m *model) lists() string {
	var all []string
	for _, p := range m.panels {
		if p.list != nil && !slices.Contains(all, "the "+p.list.entries) {
			all = append(all, "the "+p.list.entries)
		}
	}
	if n := len(all); n > 1 {
		all = append(all[:n-2], all[n-2]+" or "+all[n-1])
	}
	return strings.Join(all, ", ")
}

func (m *model) openFilter() tea.Cmd {
	m.filters.list, m.filters.typing = m.list(), &line{}
	m.filters.typing.set(m.filters.text[m.filters.list])
	return nil
}

func (m *model) filterKey(name, text string) tea.Cmd {
	f := &m.filters
	switch name {
	case "enter":
		f.typing = nil
	case "esc":
		f.typing = nil
		m.setFilter(f.list, "")
	default:
		f.typing.key(name, text)
		m.setFilter(f.list, f.typing.text())
	}
	return nil
}

func (m *model) setFilter(list, text string) {
	m.filters.text[list] = text
	for _, p := range m.panels {
		if p.list != nil && p.list.name == list && p.list.top != nil {
			p.list.top()
		}
	}
}

// passes says whether an entry of a list, given by its texts, holds what was typed, in whatever case.
func (m *model) passes(list string, texts ...string) bool {
	want := strings.ToLower(m.filters.text[list])
	return want == "" || strings.Contains(strings.ToLower(strings.Join(texts, " ")), want)
}

// filterNote puts a list's filter behind the note of its panel.
func (m *model) filterNote(list, note string) string {
	text := "/" + m.filters.text[list]
	if m.filters.typing != nil && m.filters.list == list {
		text += "_"
	}
	switch {
	case text == "/":
		return note
	case note == "":
		return text
	}
	return note + " · " + text
}

// nothing says that a list's filter lets no entry through.
func (m *model) nothing(list, entry string) string {
	return "no " + entry + " holds \"" + m.filters.text[list] + "\": esc clears the filter"
}
