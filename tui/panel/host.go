package panel

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/replay"
)

// Host is what panels see of the workbench: the run, how charts show it, and the position of the user. The model of the
// workbench embeds it. Only Update and View, which run on one goroutine, and what they call may use it.
//
// A panel may set Focus, Expanded, Popup, Member, Cursor, Window, Axis, LogAxis, Smoothing and Opt.Settings, and show a
// message with Say; the panel of workers also sets Activity and Awaited. A panel reads the other fields, and requests
// everything else through Workbench.
type Host struct {
	Workbench
	Opt  Options
	Ctx  context.Context // of the workbench
	W, H int             // size of the terminal in cells

	// The run
	Live         *view.View // state folded from the records of the source
	Shown        *view.View // Live, or a clone of it while the display is frozen
	Knobs        *view.Knobs
	Alg          *optim.Algorithm // of Shown; nil: this brood does not know the algorithm
	Replay       *replay.Replay   // nil: the run is live
	Feed         Feed
	Reading      Reading
	Parent       *view.View          // of a fork: its parent as far as its log was read; nil: unknown, or no fork
	Notes        []session.RoundNote // notes on rounds of the shown session, ascending
	Checkpoints  []uint64            // rounds of its stored checkpoints, ascending; nil: unknown
	Acked        view.Position       // alerts before it are acknowledged
	Awaited      string              // joined and required workers of the first round, as text
	Activity     *view.Doing         // what the workers do, from their last answer; nil: unknown
	ActivityAt   time.Time           // time of that answer
	LastRecordAt time.Time           // arrival of the newest record; zero: none

	// How charts show it
	LogAxis   bool
	Outliers  bool // axes include outliers
	Smoothing int  // index into Smoothings
	Window    Window
	Axis      axis.Axis // x axis that the user chose; ActiveAxis returns the one in use
	Cursor    Cursor
	Member    engine.Member
	Trait     string // series of the member panels; "": that of the algorithm

	// The position of the user
	Focus    ID
	Expanded bool        // the focused panel fills the screen
	Placed   []Placement // areas of the panels in the last frame, for focus and mouse
	Filters  Filters
	Popup    Popup // help, palette, dialog or question; nil: none
	Toast    Toast
	Jobs     *Jobs // background jobs; the workbench waits for them when it ends

	events struct { // cache of Events for a fork
		key  eventsKey
		list []view.Entry
	}
}

// Workbench is what a panel may request. The model of the workbench implements it; call it from Update and View only.
type Workbench interface {
	Send(c event.Command) tea.Cmd        // sends a command to the run; the receipt arrives as a ReceiptMsg
	Sign(c event.Command) event.Command  // sets id and author of a command
	ShowReceipt(msg ReceiptMsg)          // shows the result of a command
	Run(line string) tea.Cmd             // runs a line of the command line
	SwitchSession(msg OpenedMsg) tea.Cmd // closes the shown session and shows another
	SaveSettings() tea.Cmd               // saves Opt.Settings
	OpenScreen(i int) tea.Cmd            // opens the screen with index i
	HomeScreen() int                     // index of the screen that lists runs; -1: there is none
	LeadsScreen(id ID) bool              // reports whether the panel leads the open screen
	HasPanel(id ID) bool                 // reports whether the panel belongs to the open screen, at any size
	PlacePanels()                        // recomputes Placed
	FocusLead()                          // moves the focus to the leading panel of the open screen
}

// Toast is a temporary message in the key line.
type Toast struct {
	Text  string
	Role  cell.Role
	Until time.Time
}

// SayDone shows the message of an action that has ended, or its error.
func (m *Host) SayDone(err error, role cell.Role, done string) {
	if err != nil {
		role, done = cell.Alert, err.Error()
	}
	m.Say(role, done)
}

// Say shows a message for six seconds.
func (m *Host) Say(role cell.Role, text string) {
	m.Toast = Toast{text, role, m.Opt.Clock().Add(6 * time.Second)}
}
