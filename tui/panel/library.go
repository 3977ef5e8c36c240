package panel

import (
	"context"
	"os/exec"

	"brood/runtime/archive"
	"brood/runtime/event"
	"brood/runtime/session"
)

// Library is the sessions that the workbench can list and open. A session is named by its directory. Its methods may be
// called by several goroutines.
type Library interface {
	// Scan lists what is recorded, in a folder that it told of or, for "", all; it opens no log. Those that run come
	// first, then those that were written last.
	Scan(ctx context.Context, folder string) ([]archive.Entry, error)
	// Summary is what an entry came to so far, and Curves what it measured; both may read its log.
	Summary(e archive.Entry) archive.Summary
	Curves(e archive.Entry) (*archive.Run, error)
	// Save keeps what summaries were read, for the next list.
	Save() error
	// Open attaches to a session that runs, and else replays it.
	Open(ctx context.Context, dir string) (Opened, error)
	// Delete removes a session for good. It refuses one that runs.
	Delete(ctx context.Context, dir string) error
}

// Keeper is an optional power of a Library: to change what is recorded.
type Keeper interface {
	// Resume goes on with a session that does not run; the zero limit is the one that it has.
	Resume(ctx context.Context, dir string, limit event.Limit) (Opened, error)
	// Stop ends a run after its round, and returns when it has ended.
	Stop(ctx context.Context, dir string) error
	// Export writes the model to a file, and says which.
	Export(ctx context.Context, dir string) (said string, err error)
	// Describe writes what a person says of a session, but for the notes on its rounds, which stay.
	Describe(ctx context.Context, dir string, a session.About) error
	// Noted are the notes on rounds of a session, ascending; Note writes one in place of what is there, and takes it away
	// where the text is empty. The log is not touched.
	Noted(ctx context.Context, dir string) []session.RoundNote
	Note(ctx context.Context, dir string, round uint64, text string) error
}

// Brancher is an optional power of a Library: a run of its own that begins with a recorded round of another. It returns
// when the run can be looked at; when ctx ends before that, nothing of it is left.
type Brancher interface {
	Branch(ctx context.Context, b Branch) (Opened, error)
	// Nearest is the round of the newest checkpoint at or before a round, 0 for none.
	Nearest(dir string, at uint64) (round uint64, err error)
}

// Traveller is an optional power of a Library: to look at a run of another machine by a command that has the terminal
// meanwhile. It gives none for a run that Open opens.
type Traveller interface {
	Travel(e archive.Entry) *exec.Cmd
}

// Branch is what to begin with.
type Branch struct {
	Session string             // its directory
	At      uint64             // the round to branch after, 1 or more
	Set     []event.Setting    // knobs, from the next round on
	Told    func(round uint64) // of the rounds that are executed again to get there, as they are done
}

// Opened is a session to look at.
type Opened struct {
	Session   string // its directory; "" elsewhere
	Title     string // what it is called where it is no session of this machine
	Source    Source
	Commander Commander    // nil: look only
	Resume    string       // see Options
	Said      string       // what whoever began it has to be told; "" for nothing
	Close     func() error // when it is left; nil: nothing to close
}

// Reading is what belongs to one session: it ends before the session is closed.
type Reading struct {
	Ctx    context.Context
	Cancel context.CancelFunc
	Jobs   *Jobs
}
