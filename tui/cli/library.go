package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"brood/runtime/archive"
	"brood/runtime/control"
	"brood/runtime/evaluate"
	"brood/runtime/event"
	"brood/runtime/geometry"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/tui/panel"
	"brood/tui/panel/trained"
	"brood/tui/replay"
)

// sessionLibrary implements the session list of the workbench: the sessions of this user on this machine, and those
// of the hosts in the hosts file.
type sessionLibrary struct {
	home  string
	lib   *archive.Library
	hosts *hosts
	// program is the command of the objective or program from the flags; sessions of another one reject it
	program string
	mu      sync.Mutex
	at      panel.Opened // opened last; guarded by mu
}

// newSessionLibrary opens the sessions of this user. at is the session that the workbench shows first.
func newSessionLibrary(at panel.Opened) (*sessionLibrary, error) {
	home, err := session.Home()
	if err != nil {
		return nil, err
	}
	lib := archive.OpenLibrary(home, archive.CacheDir())
	return &sessionLibrary{home: home, lib: lib, hosts: newHosts(readHosts()), at: at}, nil
}

// end cancels the requests to hosts.
func (l *sessionLibrary) end() { l.hosts.end() }

// live wraps a connection to a running session for the workbench.
func live(dir string, client *control.Client) panel.Opened {
	return panel.Opened{
		Session:   dir,
		Source:    client,
		Commander: client,
		Resume:    resumeLine(dir),
		Close:     func() error { client.Close(); return nil },
	}
}

// openRecording opens the recording of a session for the workbench.
func openRecording(dir string) (panel.Opened, error) {
	r, err := session.OpenReader(dir)
	if err != nil {
		return panel.Opened{}, err
	}
	return recorded(dir, r), nil
}

// recorded wraps a recording for the workbench.
func recorded(dir string, r *session.Reader) panel.Opened {
	return panel.Opened{Session: dir, Source: replay.NewReplay(r), Close: r.Close}
}

// last returns the session that was opened last.
func (l *sessionLibrary) last() panel.Opened {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// opened remembers a session as the one that was opened last, and returns both arguments.
func (l *sessionLibrary) opened(o panel.Opened, err error) (panel.Opened, error) {
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.at = o
	}
	return o, err
}

// programFor returns the command of the program of a session; "" if the session has none.
func (l *sessionLibrary) programFor(dir string) string {
	if d := session.Describe(dir); d.Objective == "" && d.Program == "" {
		return ""
	}
	return l.program
}

// resumeOptions returns the options of a run that resumes or forks a session.
func (l *sessionLibrary) resumeOptions(dir, by string) (o host.Options, err error) {
	o.By = by
	if program := l.programFor(dir); program != "" {
		err = option.Program.Set(&o, program)
	}
	return o, err
}

// Scan implements panel.Library.
func (l *sessionLibrary) Scan(_ context.Context, folder string) ([]archive.Entry, error) {
	if x, _, ok := l.hosts.line(folder); ok {
		return l.hosts.within(x), nil
	}
	entries, err := l.lib.Scan(cmp.Or(folder, l.home))
	if folder == "" {
		entries = append(entries, l.hosts.all()...)
	}
	return entries, err
}

// Travel implements panel.Traveller: the brood on the other machine shows its run.
func (l *sessionLibrary) Travel(e archive.Entry) *exec.Cmd {
	x, name, ok := l.hosts.line(e.Dir)
	if !ok || x.SSH == "" || name == "" {
		return nil
	}
	if e.Running {
		return x.sshCommand(l.hosts.ctx, true, "attach", name)
	}
	return x.sshCommand(l.hosts.ctx, true, "replay", name)
}

// Summary implements panel.Library.
func (l *sessionLibrary) Summary(e archive.Entry) archive.Summary {
	if e.Host != "" {
		return l.hosts.summary(e)
	}
	return l.lib.Summary(e)
}

// Curves implements panel.Library.
func (l *sessionLibrary) Curves(e archive.Entry) (*archive.Run, error) {
	if e.Host != "" {
		return l.hosts.curves(e)
	}
	return l.lib.Run(e)
}

// Save implements panel.Library.
func (l *sessionLibrary) Save() error { return l.lib.Save() }

// Resume implements panel.Keeper.
func (l *sessionLibrary) Resume(ctx context.Context, dir string, limit event.Limit) (panel.Opened, error) {
	options, err := l.resumeOptions(dir, "flag")
	if err != nil {
		return panel.Opened{}, err
	}
	options.Limit = limit
	o := host.Order{Dir: dir, Resume: true, Options: options}
	start := func() (*exec.Cmd, string, error) { return startDetached(o) }
	return l.opened(startRun(ctx, dir, dir, start, func(uint64) {}))
}

// Stop implements panel.Keeper.
func (l *sessionLibrary) Stop(ctx context.Context, dir string) error {
	return send(ctx, dir, "", false, event.Command{Action: event.Stop}, streams{out: io.Discard, err: io.Discard})
}

// Export implements panel.Keeper. It writes to the working directory, as brood export does, and never overwrites a
// file.
func (l *sessionLibrary) Export(ctx context.Context, dir string) (string, error) {
	file, err := free(filepath.Base(dir), ".safetensors")
	if err != nil {
		return "", err
	}
	return (&exporting{to: toModel, program: l.programFor(dir)}).writeModel(ctx, dir, file, func(event.Commit) {})
}

// free returns the first of NAME.EXT, NAME-2.EXT and so on that does not exist.
func free(name, ext string) (file string, err error) {
	for i := 1; ; i++ {
		if file = name + ext; i > 1 {
			file = fmt.Sprintf("%s-%d%s", name, i, ext)
		}
		switch _, err := os.Lstat(file); {
		case errors.Is(err, fs.ErrNotExist):
			return file, nil
		case err != nil:
			return "", err
		}
	}
}

// Describe implements panel.Keeper.
func (l *sessionLibrary) Describe(_ context.Context, dir string, a session.About) error {
	a.Rounds = session.ReadAbout(dir).Rounds // may be newer than a
	return a.Write(dir)
}

// Noted implements panel.Keeper.
func (l *sessionLibrary) Noted(_ context.Context, dir string) []session.RoundNote {
	return session.ReadAbout(dir).Rounds
}

// Note implements panel.Keeper. It preserves notes that others wrote in the meantime.
func (l *sessionLibrary) Note(_ context.Context, dir string, round uint64, text string) error {
	return session.ReadAbout(dir).Noted(round, text).Write(dir)
}

// Open implements panel.Library.
func (l *sessionLibrary) Open(ctx context.Context, dir string) (panel.Opened, error) {
	if x, _, ok := l.hosts.line(dir); ok && x.URL != "" {
		run, err := connectRemote(ctx, x.URL, clientName(), false)
		if err != nil {
			return panel.Opened{}, err
		}
		o := live("", run.Client)
		if o.Title, o.Close = x.Name, run.Close; run.readOnly {
			o.Commander = nil
		}
		return l.opened(o, nil)
	}
	if running, _ := session.Running(dir); running {
		run, err := connect(ctx, dir, clientName(), false)
		if err != nil {
			return panel.Opened{}, err
		}
		return l.opened(live(run.dir, run.Client), nil)
	}
	return l.opened(openRecording(dir))
}

// Delete implements panel.Library. It deletes only sessions.
func (l *sessionLibrary) Delete(_ context.Context, dir string) error {
	_, err := removeSession(dir)
	return err
}

// Branch implements panel.Brancher.
func (l *sessionLibrary) Branch(ctx context.Context, b panel.Branch) (panel.Opened, error) {
	options, err := l.resumeOptions(b.Session, b.By)
	if err != nil {
		return panel.Opened{}, err
	}
	dir, keep, err := newDir("fork")
	if err != nil {
		return panel.Opened{}, err
	}
	o := host.Order{Dir: dir, From: b.Session, At: b.At, Options: options}
	for _, s := range b.Set {
		o.Options.Set = append(o.Options.Set, event.Setting{Knob: s.Knob, Expr: s.Expr})
	}
	start := func() (*exec.Cmd, string, error) { return startDetached(o) }
	return l.opened(startRun(ctx, dir, keep, start, b.Progress))
}

// Checkpoints implements panel.Brancher.
func (l *sessionLibrary) Checkpoints(dir string) ([]uint64, error) {
	rounds, err := session.Checkpoints(dir)
	slices.Sort(rounds)
	return rounds, err
}

// Examine implements trained.Examiner.
func (l *sessionLibrary) Examine(ctx context.Context, dir string, at uint64,
	recomputed func(round uint64)) (*trained.Examined, error) {
	own, err := host.Program(l.programFor(dir))
	if err != nil {
		return nil, err
	}
	if at, err = host.Checkpointed(dir, at); err != nil {
		return nil, err
	}
	t, err := evaluate.Export(ctx, own, dir, at, 0, func(k event.Commit) { recomputed(k.To) })
	if err != nil {
		return nil, err
	}
	if t.Net.Classes == 0 && !t.Net.Regression() {
		return nil, fmt.Errorf("the model %s makes no predictions that can be evaluated", t.Net.Name)
	}
	set, err := t.Load(t.Data)
	if err != nil {
		return nil, err
	}
	x, err := t.Report(ctx, set, evaluate.SplitOf(set, "test"), 0)
	return &trained.Examined{Round: t.Round, Report: x}, err
}

// Geometry implements trained.Geometer.
func (l *sessionLibrary) Geometry(ctx context.Context, dir string, want geometry.Wanted,
	recomputed func(round uint64)) (*geometry.Geometry, error) {
	own, err := host.Program(l.programFor(dir))
	if err != nil {
		return nil, err
	}
	return evaluate.MeasureGeometry(ctx, own, dir, want, func(k event.Commit) { recomputed(k.To) })
}
