package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
)

// filters are what the entries of a list must hold, by list, and the one being typed. A filter works while it is typed.
type filters struct {
	text   map[string]string
	typing *line
	list   string // that is being typed for
}

// list names the list that a panel shows, "" for none.
func (m *model) list() string {
	switch m.focus {
	case "knobs", "schedules":
		return "knobs"
	case "events", "sessions", "fleet":
		return m.focus
	}
	return ""
}

func (m *model) mayFilter() string {
	if m.list() == "" {
		return "nothing to filter here: focus the events, the knobs, the workers or the sessions first (tab)"
	}
	return ""
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
	switch list {
	case "events":
		m.scroll = 0
	case "knobs":
		m.rail.cursor = 0
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

// lane is the events that pass the filter.
func (m *model) lane() []view.Entry {
	if m.filters.text["events"] == "" {
		return m.shown.Lane
	}
	var out []view.Entry
	for _, e := range m.shown.Lane {
		if m.passes("events", e.Level, e.Kind, e.Text) {
			out = append(out, e)
		}
	}
	return out
}
