package panel

import "strings"

// Filters holds the filter text of each list, and the filter that is being typed. A filter applies while it is typed.
type Filters struct {
	Text   map[string]string
	Typing *TextInput
	List   string // the list whose filter is being typed
}

// MatchesFilter reports whether the texts of an entry contain the filter of a list, ignoring case.
func (m *Host) MatchesFilter(list string, texts ...string) bool {
	want := strings.ToLower(m.Filters.Text[list])
	return want == "" || strings.Contains(strings.ToLower(strings.Join(texts, " ")), want)
}

// FilterNote appends the filter of a list to the note of its panel.
func (m *Host) FilterNote(list, note string) string {
	text := "/" + m.Filters.Text[list]
	if m.Filters.Typing != nil && m.Filters.List == list {
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

// NoMatchText returns the message that no entry of a list matches the filter.
func (m *Host) NoMatchText(list, entry string) string {
	return "no " + entry + " matches \"" + m.Filters.Text[list] + "\": esc clears the filter"
}
