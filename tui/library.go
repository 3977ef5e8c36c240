package tui

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"

	"brood/runtime/archive"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/tui/cell"
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

type (
	openedMsg struct {
		opened Opened
		said   string // what to say of it
		err    error
	}
)

// open leads to another session.
func (m *model) open(dir string) tea.Cmd {
	ctx, lib := m.ctx, m.opt.Library
	m.say(cell.Plain, "opening "+filepath.Base(dir))
	return m.job(func() tea.Msg {
		o, err := lib.Open(ctx, dir)
		return openedMsg{o, "", err}
	})
}

// travel gives the terminal to what shows a run of another machine, and has it again afterwards.
func (m *model) travel(e archive.Entry, c *exec.Cmd) tea.Cmd {
	m.say(cell.Plain, "asking "+e.Host)
	return tea.ExecProcess(c, func(err error) tea.Msg {
		return reply(func(m *model) tea.Cmd {
			if err != nil {
				m.say(cell.Alert, fmt.Sprintf("%s on %s: %v", e.Name, e.Host, err))
			} else {
				m.say(cell.Plain, "back from "+e.Host)
			}
			return nil
		})
	})
}

// enter puts another session in the place of the one that is shown, and closes that behind it.
func (m *model) enter(msg openedMsg) tea.Cmd {
	if msg.err != nil {
		m.say(cell.Alert, msg.err.Error())
		return nil
	}
	leave := m.leave()
	o := msg.opened
	if m.opt.ReadOnly {
		o.Commander = nil
	}
	m.opt.Session, m.opt.Source, m.opt.Commander, m.opt.Close = o.Session, o.Source, o.Commander, o.Close
	m.opt.Title, m.opt.Resume = o.Title, o.Resume
	if o.Commander == nil && o.Session != "" {
		m.opt.Title = filepath.Base(o.Session)
	}
	m.begin()
	m.openScreen(0)
	m.toast = toast{}
	if msg.said != "" {
		m.say(cell.Good, msg.said)
	}
	return tea.Batch(leave, m.look(), m.readNotes())
}

// leave ends what reads the present session and then closes it. What a reader says while it is closed concerns nobody.
func (m *model) leave() tea.Cmd {
	m.reading.cancel()
	jobs, closer := m.reading.jobs, m.opt.Close
	return m.job(func() tea.Msg {
		jobs.end()
		if closer != nil {
			_ = closer()
		}
		return nil
	})
}

// look begins to read the session.
func (m *model) look() tea.Cmd {
	switch at := m.opt.At; {
	case m.opt.Source == nil:
		return m.poll()
	case m.replay == nil:
		return m.seek(math.MaxUint64)
	case at > 0:
		m.opt.At = 0 // another session begins at its beginning
		m.replay.Pause(true)
		return tea.Batch(m.scan(), m.toRound(at))
	}
	return tea.Batch(m.scan(), m.seek(0))
}

// task is a job that ends before the session is closed.
func (m *model) task(f func() tea.Msg) tea.Cmd { return m.reading.jobs.run(f) }

// reading is what belongs to one session: it ends before the session is closed.
type reading struct {
	ctx    context.Context
	cancel context.CancelFunc
	jobs   *jobs
}

// begin forgets the session before: nothing of it may leak into another.
func (m *model) begin() {
	ctx, cancel := context.WithCancel(m.ctx)
	m.reading = reading{ctx, cancel, &jobs{}}
	m.feed = feed{gen: m.feed.gen + 1}
	m.live, m.knobs, m.alg = view.New(), nil, nil
	m.shown = m.live
	m.member, m.trait, m.window, m.cursor, m.acked = 0, "", window{}, cursor{}, 0
	m.drawer, m.expanded, m.notes = false, false, nil
	m.leasing, m.awaited, m.activity = leasing{}, "", nil
	m.past, m.prompt, m.popup = past{}, nil, nil
	for _, p := range m.panels {
		if p.reset != nil {
			p.reset()
		}
	}
	kept := map[string]string{}
	for _, p := range m.panels {
		if p.list != nil && p.list.stays {
			kept[p.list.name] = m.filters.text[p.list.name]
		}
	}
	m.filters = filters{text: kept}
	m.replay, _ = m.opt.Source.(*Replay)
}

// closed is the last of a session: what reads it has ended.
func (m *model) closed() error {
	m.reading.cancel()
	m.reading.jobs.end()
	if m.opt.Close == nil {
		return nil
	}
	return m.opt.Close()
}

func (m *model) brancher() Brancher {
	if m.opt.ReadOnly {
		return nil
	}
	b, _ := m.opt.Library.(Brancher)
	return b
}
