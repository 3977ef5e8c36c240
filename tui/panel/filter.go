package panel

import "strings"

// Filters are what the entries of a list must hold, by list, and the one being typed. A filter works while it is typed.
type Filters struct {
	Text   map[string]string
	Typing *TextInput
	List   string // that is being typed for
}

// MatchesFilter says whether an entry of a list, given by its texts, holds what was typed, in whatever case.
func (m *Host) MatchesFilter(list string, texts ...string) bool {
	want := strings.ToLower(m.Filters.Text[list])
	return want == "" || strings.Contains(strings.ToLower(strings.Join(texts, " ")), want)
}

// FilterNote puts a list's filter behind the note of its panel.
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

// NoMatchText says that a list's filter lets no entry through.
func (m *Host) NoMatchText(list, entry string) string {
	return "no " + entry + " holds \"" + m.Filters.Text[list] + "\": esc clears the filter"
}
