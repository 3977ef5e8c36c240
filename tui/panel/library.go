package panel

import (
	"context"
	"os/exec"

	"brood/runtime/archive"
	"brood/runtime/event"
	"brood/runtime/session"
)

// Library lists and opens sessions. The directory identifies a session. Its methods may be called concurrently.
type Library interface {
	// Scan lists the sessions in a folder that an earlier Scan returned, or at the top level for "". It opens no log.
	// Running sessions come first, then the last written ones.
	Scan(ctx context.Context, folder string) ([]archive.Entry, error)
	// Summary returns the results of an entry so far, and Curves its measurements. Both may read its log.
	Summary(e archive.Entry) archive.Summary
	Curves(e archive.Entry) (*archive.Run, error)
	// Save caches the summaries that were read, for the next list.
	Save() error
	// Open attaches to a running session and replays any other.
	Open(ctx context.Context, dir string) (Opened, error)
	// Delete removes a session. It fails for a running one.
	Delete(ctx context.Context, dir string) error
}

// Keeper is an optional interface of a Library that can change sessions.
type Keeper interface {
	// Resume continues a session that does not run. The zero limit keeps the limit of the session.
	Resume(ctx context.Context, dir string, limit event.Limit) (Opened, error)
	// Stop ends a run after its round and returns when it has ended.
	Stop(ctx context.Context, dir string) error
	// Export writes the model to a file and returns a message with its name.
	Export(ctx context.Context, dir string) (said string, err error)
	// Describe writes the name, tags and note of a session. The notes on its rounds stay unchanged.
	Describe(ctx context.Context, dir string, a session.About) error
	// Noted returns the notes on rounds of a session, ascending. Note replaces the note of a round, or removes it if
	// text is empty. Neither changes the log.
	Noted(ctx context.Context, dir string) []session.RoundNote
	Note(ctx context.Context, dir string, round uint64, text string) error
}

// Brancher is an optional interface of a Library that can fork a session into a new run. Branch returns when the run
// can be viewed. If ctx ends before that, it removes everything it created.
type Brancher interface {
	Branch(ctx context.Context, b Branch) (Opened, error)
	// Checkpoints returns the rounds of the stored checkpoints of a session, ascending.
	Checkpoints(dir string) (rounds []uint64, err error)
}

// Traveller is an optional interface of a Library that can show a run of another machine with a command, which uses the
// terminal until it ends. Travel returns nil for a run that Open opens.
type Traveller interface {
	Travel(e archive.Entry) *exec.Cmd
}

// Branch describes a fork.
type Branch struct {
	Session  string             // directory of the parent
	At       uint64             // the round to fork after, 1 or more
	Set      []event.Setting    // knobs that change in the next round
	By       string             // who changes them
	Progress func(round uint64) // called with each round that is recomputed on the way to At
}

// Opened is a session to view.
type Opened struct {
	Session   string // its directory; "": not on this machine
	Title     string // title of a session that is not on this machine
	Source    Source
	Commander Commander    // nil: read-only
	Resume    string       // see Options
	Message   string       // message for the user who started it; "": none
	Close     func() error // called when the user leaves the session; nil: nothing to close
}

// Reading is the lifetime of the shown session. It ends before the session is closed.
type Reading struct {
	Ctx    context.Context
	Cancel context.CancelFunc
	Jobs   *Jobs
}
