package panel

import (
	"strings"

	tea "charm.land/bubbletea/v2"
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

// Command is a command of the command line.
type Command struct {
	Name, Args, Title string
	Live              bool                                   // needs a Commander
	Optional          bool                                   // args may be omitted
	Complete          func(m *Host, words []string) []string // completions of the last word; nil: none
	Do                func(m *Host, args []string) (tea.Cmd, error)
}

// Label returns the keys of the binding as help shows them.
func (b Binding) Label() string {
	if b.Show != "" {
		return b.Show
	}
	return strings.Join(b.Keys, " ")
}
