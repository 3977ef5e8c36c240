package panel

import (
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/optim"
)

// Options of a workbench. Source is required where there is no Library.
type Options struct {
	Source     Source             // nil: no run is open yet, and the runs of the Library are what there is to see
	Commander  Commander          // nil: look only
	ReadOnly   bool               // look only, at this run and at all that are opened from it: nothing is changed or begun
	Algorithms []*optim.Algorithm // known ones; knobs of others are shown without bounds and cannot be turned
	Title      string             // of the run; "": from its configuration
	Session    string             // its directory, for what is named after it; "": it has none here
	Resume     string             // what a person types to go on with the run once it has stopped; "": nobody here can
	Close      func() error       // of the source, when it is left or the workbench ends; nil: nothing to close
	Library    Library            // the runs to list and open; nil: there is no such screen
	By         string             // who sits here, for the log of edits; "": operator
	At         uint64             // round to begin a recording after; 0: its beginning
	Screen     string             // to open with; "": Live
	Settings   Settings           // of this person

	// Keep has settings kept when they change; it may be called from any goroutine. nil: nobody keeps them.
	Keep func(Settings) error

	ASCII   bool // write ASCII alone
	Unicode bool // write more than ASCII though Env says that the terminal shows no more, see [ASCIIOnly]
	Suspend bool // Ctrl-Z suspends this process: a shell resumes it
	NoColor bool // write no escape sequence for colours; also with NO_COLOR in Env
	Light   bool // assume a light background until the terminal tells
	Fixed   bool // the background is as Light says, whatever the terminal tells

	In            io.Reader        // nil: the terminal
	Out           io.Writer        // nil: standard output
	Env           []string         // of the terminal's owner, "K=V"; nil: this process's
	Width, Height int              // assumed until the terminal tells; 0: 80 x 24
	FPS           int              // frames a second at most; 0: 30
	NoFiles       bool             // write no file here: the person sits at another machine
	Emulated      bool             // Out is no terminal of this machine, but leads to one, whose colours Env tells
	Clock         func() time.Time // nil: time.Now
}

// What a terminal may measure: a screen costs some 250 bytes a cell, and up to a gigabyte where it says that it has
// 3000 by 3000.
const (
	MaxWidth  = 400
	MaxHeight = 120
)

// ClampWindowSize is a terminal's size, no larger than a screen may be.
func ClampWindowSize(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, ok := msg.(tea.WindowSizeMsg); ok {
		size.Width, size.Height = clampSize(size.Width, size.Height)
		return size
	}
	return msg
}

func (o *Options) SetDefaults() {
	if o.By == "" {
		o.By = "operator"
	}
	if o.Width <= 0 || o.Height <= 0 {
		o.Width, o.Height = 80, 24
	}
	o.Width, o.Height = clampSize(o.Width, o.Height)
	if o.Clock == nil {
		o.Clock = time.Now
	}
}
