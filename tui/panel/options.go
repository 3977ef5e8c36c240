package panel

import (
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/optim"
)

// Options configures a workbench. It needs a Source or a Library.
type Options struct {
	Source     Source             // nil: no run is open; the workbench shows the runs of the Library
	Commander  Commander          // nil: read-only
	ReadOnly   bool               // no command, change or start of a run, here and in all runs opened from here
	Algorithms []*optim.Algorithm // known algorithms; knobs of others have no bounds and cannot be changed
	Title      string             // title of the run; "": the name of its session, else what it trains
	Session    string             // directory of the session, which names exported files; "": not on this machine
	Resume     string             // command that resumes the run after it has stopped; "": not possible here
	// closes the source, when the user leaves it or the workbench ends; nil: nothing to close
	Close    func() error
	Library  Library  // the runs to list and open; nil: no Runs screen
	By       string   // name of the user in the log of edits; "": operator
	At       uint64   // round after which a recording starts; 0: its beginning
	Screen   string   // first screen; "": Live
	Settings Settings // settings of the user

	// Keep saves changed settings. It may be called from any goroutine. nil: they are not saved.
	Keep func(Settings) error

	ASCII   bool // write only ASCII
	Unicode bool // write Unicode even if ASCIIOnly(Env)
	Suspend bool // Ctrl-Z suspends this process, since a shell can resume it
	NoColor bool // write no escape sequences for colours; also set by NO_COLOR in Env
	Light   bool // assume a light background until the terminal reports its colour
	Fixed   bool // ignore the background colour that the terminal reports

	In            io.Reader        // nil: the terminal
	Out           io.Writer        // nil: standard output
	Env           []string         // environment of the terminal, "K=V"; nil: that of this process
	Width, Height int              // size until the terminal reports it; 0: 80 x 24
	FPS           int              // largest frame rate; 0: 30
	NoFiles       bool             // write no files here: the user is at another machine
	Emulated      bool             // Out is not a terminal of this machine but a connection to one, described by Env
	Clock         func() time.Time // nil: time.Now
}

// Largest size of the screen in cells: a client over SSH may report any size, and Bubble Tea needs about 250 bytes a
// cell.
const (
	MaxWidth  = 400
	MaxHeight = 120
)

// ClampWindowSize is a filter of Bubble Tea messages that limits the window size to MaxWidth x MaxHeight.
func ClampWindowSize(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, ok := msg.(tea.WindowSizeMsg); ok {
		return tea.WindowSizeMsg{Width: min(size.Width, MaxWidth), Height: min(size.Height, MaxHeight)}
	}
	return msg
}

// SetDefaults replaces zero values by their defaults and limits the size.
func (o *Options) SetDefaults() {
	if o.By == "" {
		o.By = "operator"
	}
	if o.Width <= 0 || o.Height <= 0 {
		o.Width, o.Height = 80, 24
	}
	o.Width, o.Height = min(o.Width, MaxWidth), min(o.Height, MaxHeight)
	if o.Clock == nil {
		o.Clock = time.Now
	}
}
