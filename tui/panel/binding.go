package panel

import tea "charm.land/bubbletea/v2"

// Key is a row of a key table, which dispatch, help, palette and key line read. M is what its functions may use: the
// host for a panel, the model for the workbench.
type Key[M any] struct {
	Keys  []string        // in the names of Bubble Tea
	Show  string          // keys as help shows them; "": the names
	Title string          // action in three or four words
	Group string          // heading in help; "": that of the panel
	When  func(M) bool    // the row applies now; nil: always
	Why   func(M) string  // message why the action is not possible now, "" if it is; nil: always possible
	Do    func(M) tea.Cmd // nil: only listed in help

	Anywhere bool // key of a panel that works without its focus
}

// Binding is a key of a panel.
type Binding = Key[*Host]

// CommandOf is a command of the command line. M is what its functions may use, as in keyOf.
type CommandOf[M any] struct {
	Name, Args, Title string
	Live              bool                               // needs a Commander
	Optional          bool                               // args may be omitted
	Complete          func(m M, words []string) []string // completions of the last word; nil: none
	Do                func(m M, args []string) (tea.Cmd, error)
}

// Command is a command of a panel.
type Command = CommandOf[*Host]

// Label returns the keys of the binding as help shows them.
func (b Key[M]) Label() string {
	if b.Show != "" {
		return b.Show
	}
	s := ""
	for i, k := range b.Keys {
		if i > 0 {
			s += " "
		}
		s += k
	}
	return s
}
