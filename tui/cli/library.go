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
	"sync"
	"time"

	"brood/runtime/compare"
	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/geometry"
	"brood/runtime/host"
	"brood/runtime/library"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/tui"
)

// shelf is what the workbench can open: the sessions of this user on this machine, and of the hosts that its file
// names.
type shelf struct {
	home  string
	lib   *library.Library
	hosts *hosts
	// the command of an objective that was given here; sessions that maximise another refuse it
	program string
	mu      sync.Mutex
	at      tui.Opened // last
}

// newShelf has the sessions of this user, and at first one of them in view.
func newShelf(at tui.Opened) (*shelf, error) {
	home, err := session.Home()
	if err != nil {
		return nil, err
	}
	return &shelf{home: home, lib: library.Open(home, library.Cache()), hosts: newHosts(readHosts()), at: at}, nil
}

// end leaves the hosts that are being asked.
func (l *shelf) end() { l.hosts.end() }

// live is a running session as the workbench takes it.
func live(dir string, client *control.Client) tui.Opened {
	return tui.Opened{Session: dir, Source: client, Commander: client, Resume: resumeLine(dir), Close: func() error { client.Close(); return nil }}
}

// recorded is a recording as the workbench takes it.
func recorded(dir string, r *session.Reader) tui.Opened {
	return tui.Opened{Session: dir, Source: tui.NewReplay(r), Close: r.Close}
}

// last is the session that was opened last.
func (l *shelf) last() tui.Opened {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

func (l *shelf) went(o tui.Opened) tui.Opened {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = o
	return o
}

// programFor is the objective's command for a session: nothing for one that maximises none.
func (l *shelf) programFor(dir string) string {
	if session.Describe(dir).Objective == "" {
		return ""
	}
	return l.program
}

// goesOn are the options of a run that goes on from a session.
func (l *shelf) goesOn(dir, by string) (o host.Options, err error) {
	o.By = by
	if program := l.programFor(dir); program != "" {
		err = option.Objective.Set(&o, program)
	}
	return o, err
}

// Scan implements tui.Library.
func (l *shelf) Scan(_ context.Context, folder string) ([]library.Entry, error) {
	if x, _, ok := l.hosts.line(folder); ok {
		return l.hosts.within(x), nil
	}
	entries, err := l.lib.Scan(cmp.Or(folder, l.home))
	if folder == "" {
		entries = append(entries, l.hosts.all()...)
	}
	return entries, err
}

// Travel implements tui.Traveller: a run of another machine is shown by the brood there.
func (l *shelf) Travel(e library.Entry) *exec.Cmd {
	x, name, ok := l.hosts.line(e.Dir)
	if !ok || x.SSH == "" || name == "" {
		return nil
	}
	if e.Running {
		return x.over(l.hosts.ctx, true, "attach", name)
	}
	return x.over(l.hosts.ctx, true, "replay", name)
}

// Summary implements tui.Library.
func (l *shelf) Summary(e library.Entry) library.Summary {
	if e.Host != "" {
		return l.hosts.summary(e)
	}
	return l.lib.Summary(e)
}

// Curves implements tui.Library.
func (l *shelf) Curves(e library.Entry) (*compare.Run, error) {
	if e.Host != "" {
		return l.hosts.curves(e)
	}
	return l.lib.Run(e)
}

// Save implements tui.Library.
func (l *shelf) Save() error { return l.lib.Save() }

// Resume implements tui.Keeper.
func (l *shelf) Resume(ctx context.Context, dir string, limit event.Limit) (tui.Opened, error) {
	options, err := l.goesOn(dir, "flag")
	if err != nil {
		return tui.Opened{}, err
	}
	options.Limit = limit
	o := host.Order{Dir: dir, Resume: true, Options: options}
	run, err := trainDetached(ctx, o, "")
	if err != nil {
		return tui.Opened{}, err
	}
	return l.went(run), nil
}

// Stop implements tui.Keeper.
func (l *shelf) Stop(ctx context.Context, dir string) error {
	return send(ctx, dir, "", false, event.Command{Action: event.Stop}, streams{out: io.Discard, err: io.Discard})
}

// Export implements tui.Keeper: the file lies where brood export would put it, and beside one that is there already.
func (l *shelf) Export(ctx context.Context, dir string) (string, error) {
	file, err := free(filepath.Base(dir), ".safetensors")
	if err != nil {
		return "", err
	}
	return (&exporting{to: toModel, program: l.programFor(dir)}).one(ctx, dir, file, func(event.Commit) {})
}

// free is the first of NAME.EXT, NAME-2.EXT and so on that there is not yet.
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

// Describe implements tui.Keeper.
func (l *shelf) Describe(_ context.Context, dir string, a session.About) error {
	a.Rounds = session.ReadAbout(dir).Rounds // which may be newer than what was read with the rest
	return a.Write(dir)
}

// Noted implements tui.Keeper.
func (l *shelf) Noted(_ context.Context, dir string) []session.RoundNote {
	return session.ReadAbout(dir).Rounds
}

// Note implements tui.Keeper. What others wrote meanwhile stays.
func (l *shelf) Note(_ context.Context, dir string, round uint64, text string) error {
	return session.ReadAbout(dir).Noted(round, text).Write(dir)
}

// Open implements tui.Library.
func (l *shelf) Open(ctx context.Context, dir string) (tui.Opened, error) {
	if x, _, ok := l.hosts.line(dir); ok && x.URL != "" {
		run, err := call(ctx, x.URL, clientName(), false)
		if err != nil {
			return tui.Opened{}, err
		}
		o := live("", run.Client)
		if o.Title, o.Close = x.Name, run.Close; run.look {
			o.Commander = nil
		}
		return l.went(o), nil
	}
	if running, _ := session.Running(dir); running {
		run, err := reach(ctx, dir, clientName(), false)
		if err != nil {
			return tui.Opened{}, err
		}
		return l.went(live(run.dir, run.Client)), nil
	}
	r, err := session.OpenReader(dir)
	if err != nil {
		return tui.Opened{}, err
	}
	return l.went(recorded(dir, r)), nil
}

// Delete implements tui.Library: only what is listed can be deleted.
func (l *shelf) Delete(_ context.Context, dir string) error {
	_, err := removeSession(dir)
	return err
}

// Branch implements tui.Brancher.
func (l *shelf) Branch(ctx context.Context, b tui.Branch) (tui.Opened, error) {
	keep := existing(l.home)
	dir, err := session.NewDir("fork", time.Now())
	if err != nil {
		return tui.Opened{}, err
	}
	options, err := l.goesOn(b.Session, "fork")
	if err != nil {
		return tui.Opened{}, err
	}
	o := host.Order{Dir: dir, From: b.Session, At: b.At, Options: options}
	for _, s := range b.Set {
		o.Options.Set = append(o.Options.Set, event.Setting{Knob: s.Knob, Expr: s.Expr})
	}
	run, err := forkDetached(ctx, o, keep, b.Told)
	if err != nil {
		return tui.Opened{}, err
	}
	return l.went(run), nil
}

// Nearest implements tui.Brancher.
func (l *shelf) Nearest(dir string, at uint64) (nearest uint64, err error) {
	rounds, err := session.Checkpoints(dir)
	for _, round := range rounds {
		if round <= at {
			nearest = max(nearest, round)
		}
	}
	return nearest, err
}

// Examine implements tui.Examiner.
func (l *shelf) Examine(ctx context.Context, dir string, at uint64, told func(round uint64)) (*tui.Examined, error) {
	own, err := host.Program(l.programFor(dir))
	if err != nil {
		return nil, err
	}
	if at, err = host.Checkpointed(dir, at); err != nil {
		return nil, err
	}
	t, err := own.Export(ctx, dir, at, 0, func(k event.Commit) { told(k.To) })
	if err != nil {
		return nil, err
	}
	if t.Net.Classes == 0 && !t.Net.Regression() {
		return nil, fmt.Errorf("the model %s predicts nothing that could be wrong", t.Net.Name)
	}
	set, err := t.Load(t.Data)
	if err != nil {
		return nil, err
	}
	x, err := t.Report(ctx, set, host.SplitOf(set, "test"), 0)
	return &tui.Examined{Round: t.Round, Report: x}, err
}

// Geometry implements tui.Geometer.
func (l *shelf) Geometry(ctx context.Context, dir string, want geometry.Wanted, told func(round uint64)) (*geometry.Geometry, error) {
	own, err := host.Program(l.programFor(dir))
	if err != nil {
		return nil, err
	}
	return own.MeasureGeometry(ctx, dir, want, func(k event.Commit) { told(k.To) })
}
