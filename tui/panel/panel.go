package panel

import (
	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
)

// ID names a panel. The focus is the ID of a panel, and layouts place panels by their IDs.
type ID string

// Panel is a part of the workbench as a value: what it shows and everything that a user can do there. Its functions
// close over a state that only the panel knows. ID, Title and Draw are required; all other fields may be nil.
//
// All functions run on the goroutine of Update and View, except the inner function of Export. They must not do I/O:
// what reads, sends or waits is a tea.Cmd.
type Panel struct {
	ID     ID
	Title  func(*Host) (title, note string)
	Draw   func(m *Host, g *cell.Grid, r cell.Rect) // draws within its border; r is the inside of the border
	Line   func(m *Host, g *cell.Grid, r cell.Rect) // draws in less space than a border takes; nil: shows nothing there
	Screen *Screen                                  // the screen that it leads; nil: it leads none

	Group string // heading of its keys in help; panels with the same keys share it
	// Example is a line of help, in at most 33 characters: keys as they are typed and, after a colon, what they do. The
	// first panel of a group has it; "" for none.
	Example string
	Keys    []Binding                            // active while it has the focus
	Typing  func() *Typing                       // returns the input while text is typed into it, else nil
	Hints   func(*Host) [][2]string              // keys and titles for the key line; nil: those of the workbench
	Point   func(m *Host, r cell.Rect, x, y int) // handles a click at x, y; r is the inside of the border
	// Plot returns the area of the dots of the chart over rounds at x, y, empty if there is none. There a click moves the
	// cursor of a live run, before Point, and legends show the values of the round under the mouse.
	Plot     func(m *Host, r cell.Rect, x, y int) cell.Rect
	Back     func(*Host) bool // handles esc; reports whether there was something to undo or close
	List     *List            // the list that / filters and the wheel moves in
	Commands []Command        // its commands of the command line

	// Export returns a function that makes the table for key E. That inner function runs in a job, concurrently with
	// Update: it must only use what Export copied.
	Export   func(*Host) func(*view.View) Rows
	Poll     func(*Host) tea.Cmd                       // called at each tick of the clock and when a screen is opened
	Branched func(m *Host, parent, dir string) tea.Cmd // called when a branch of the shown run has started
	Reset    func()                                    // forgets the session: another one is shown from now on
}

// Screen is a page of the workbench. Its leading panel has the focus when the screen opens.
type Screen struct {
	Digit   int
	Name    string
	Short   string                             // name where space is short; "": Name
	Place   func(*Host, cell.Rect) []Placement // lays out the area between screen line and key line; nil: only Lead
	Badge   func(*Host) string                 // text after the name, such as a number of alerts; nil or "": none
	Charts  bool                               // has charts over rounds: arrow keys move a cursor through them
	Home    bool                               // needs no run: the workbench starts here, and esc leads back here at last
	Instead string                             // name of what key w shows in the place of its panels; "": nothing
	Show    func(*Host) tea.Cmd                // toggles between Instead and the panels
	Lead    ID                                 // set by the workbench to the ID of the panel that declares the screen
}

// Instead is what key w shows in the place of the panels of a screen.
type Instead struct {
	Show  func(*Host) tea.Cmd                    // toggles between it and the panels
	Place func(m *Host, b cell.Rect) []Placement // lays out the screen in either state
}

// List describes the entries that a panel shows. Panels may share one.
type List struct {
	Name    string // key of its filter in Filters
	Entries string // noun for its entries, in the plural
	Stays   bool   // the filter stays when another session is shown
	Top     func() // moves to the first entry after the filter has changed; nil: the cursor stays on its entry

	Complete func(m *Host, text string) []string // completions of the last word of a filter; nil: none
}

// Typing is an input that takes all keys and pasted text while it is open.
type Typing struct {
	Key   func(m *Host, name, text string) tea.Cmd
	Hints [][2]string
}

// Reply is the message by which a command of a panel returns its result: Update calls it, so that it may change the
// state of the panel.
type Reply func(*Host) tea.Cmd

// OpenedMsg is the result of opening or starting a session.
type OpenedMsg struct {
	Opened  Opened
	Message string // message for the user; "": none
	Err     error
}

// ReceiptMsg is the answer of the run to a command.
type ReceiptMsg struct {
	Command event.Command
	Receipt event.Receipt
	Err     error
	Resets  []string // knobs that an accepted swap resets to their defaults
}
