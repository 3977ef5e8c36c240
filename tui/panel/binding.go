package panel

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
)

// Binding is a row of a key table. Dispatch, help, palette and key line read it.
type Binding struct {
	Keys  []string            // in the names of Bubble Tea
	Show  string              // keys as help shows them; "": the names
	Title string              // action in three or four words
	Group string              // heading in help; "": that of the panel
	When  func(*Host) bool    // the row applies now; nil: always
	Why   func(*Host) string  // message why the action is not possible now, "" if it is; nil: always possible
	Do    func(*Host) tea.Cmd // nil: only listed in help

	Anywhere bool // key of a panel that works without its focus
}

// Command is a command of the command line. Dispatch, completion, help and palette read it.
type Command struct {
	Name, Args, Title string
	Optional          bool                                   // args may be omitted
	Why               func(*Host) string                     // as in Binding
	Values            func(*Host) []Value                    // arguments that are valid now; nil: unknown
	Load              func(*Host) tea.Cmd                    // requests what Values needs; nil: nothing
	Complete          func(m *Host, words []string) []string // completions of the last word; nil: the words of Values
	Do                func(m *Host, args []string) (tea.Cmd, error)
}

// Value is an argument of a command. Completion offers its word, and the palette lists it as an action.
type Value struct {
	Word  string // as typed, without blanks
	Title string // in the palette: the name and what the command does with it, such as "m12: focus it"
	Key   string // key with the same effect; "": none
}

// Completions returns the completions of the last of words, the arguments typed so far.
func (c Command) Completions(m *Host, words []string) (out []string) {
	switch {
	case c.Complete != nil:
		return c.Complete(m, words)
	case c.Values != nil:
		for _, v := range c.Values(m) {
			out = append(out, v.Word)
		}
	}
	return out
}

// Try runs an action, or shows the reason that why returns against it. why may be nil.
func (m *Host) Try(why func(*Host) string, do func(*Host) tea.Cmd) tea.Cmd {
	if why != nil {
		if reason := why(m); reason != "" {
			m.Say(cell.Warn, reason)
			return nil
		}
	}
	return do(m)
}

// Steps returns actions that move by d with f.
func Steps(f func(m *Host, d int)) func(d int) func(*Host) tea.Cmd {
	return func(d int) func(*Host) tea.Cmd {
		return func(m *Host) tea.Cmd { f(m, d); return nil }
	}
}

// Label returns the keys of the binding as help shows them.
func (b Binding) Label() string {
	if b.Show != "" {
		return b.Show
	}
	return strings.Join(b.Keys, " ")
}
