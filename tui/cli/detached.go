package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/runtime/control"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/tui"
)

// runDetached starts the run as a process of its own and looks at it, as at any other run.
func (f *runFlags) runDetached(c *cobra.Command, preset string, s streams) error {
	f.detached = true
	o, err := f.order(c, preset)
	if err != nil {
		return err
	}
	home, err := session.Home()
	if err != nil {
		return err
	}
	keep := existing(cmp.Or(f.session, home))
	dir, err := f.place(o.Options)
	if err != nil {
		return err
	}
	if err := f.vacant(dir); err != nil {
		return err
	}
	o.Dir = dir
	run, err := trainDetached(c.Context(), o, keep)
	if err != nil {
		return err
	}
	if f.background {
		return inBackground(run, s)
	}
	defer run.Close()
	return look(c.Context(), run, f.draw.options(), option.Objective.Text(o.Options), s)
}

// inBackground says where a run is that nobody looks at.
func inBackground(run tui.Opened, s streams) error {
	name := sessionArg(run.Session)
	if run.Commander == nil {
		fmt.Fprintf(s.out, "the run is over, session %s\nlook at it: brood replay %s\n", run.Session, name)
	} else {
		fmt.Fprintf(s.out, "training in the background, session %s\nlook at it: brood attach %s\nstop it:    brood stop %s\n", run.Session, name, name)
	}
	if by := listCommand(run.Session); by != "" {
		fmt.Fprintf(s.out, "list it:    %s\n", by)
	}
	return run.Close()
}

// trainDetached starts a new run, or one that goes on, as a process of its own, and waits until it answers, or is over.
// When a new one fails, what was made for it below keep is taken back.
func trainDetached(ctx context.Context, o host.Order, keep string) (tui.Opened, error) {
	child, logPath, err := startDetached(o)
	if err != nil {
		return tui.Opened{}, err
	}
	gone := make(chan error, 1)
	go func() { gone <- child.Wait() }()
	run, err := waitStarted(ctx, o.Dir, gone, logPath, func(uint64) {})
	if err != nil && !o.Resume {
		os.Remove(logPath)
		removeEmptyDirs(o.Dir, keep)
	}
	return run, err
}

// arrival is a run that was started, once it answers, or the recording of one that was over before.
func waitStarted(ctx context.Context, dir string, gone <-chan error, logPath string, told func(round uint64)) (tui.Opened, error) {
	client, err := awaitControl(ctx, dir, gone, logPath, told)
	if err == nil {
		return live(dir, client), nil
	}
	if !errors.Is(err, errOver) {
		return tui.Opened{}, err
	}
	r, err := session.OpenReader(dir)
	if err != nil {
		return tui.Opened{}, err
	}
	return recorded(dir, r), nil
}

// errOver is of a run whose process ended well before it could be looked at.
var errOver = errors.New("the run is over")

// place chooses the session's directory before the process that will own it starts.
func (f *runFlags) place(o host.Options) (string, error) {
	switch {
	case f.resume != "":
		return resolve(f.resume)
	case f.session != "":
		return filepath.Abs(f.session)
	}
	return session.NewDir(cmp.Or(o.Preset, o.Algorithm), time.Now())
}

// vacant refuses a directory that another run writes, or, but for a resume, one that holds a session: whoever answers
// at its control socket would not be the run that is about to start.
func (f *runFlags) vacant(dir string) error {
	if running, pid := session.Running(dir); running {
		return &session.LockedError{Dir: dir, PID: pid}
	}
	if f.resume == "" {
		return session.Vacant(dir)
	}
	return nil
}

// existing is the longest part of a path that is there.
func existing(path string) string {
	path, err := filepath.Abs(path)
	for err == nil {
		if _, gone := os.Lstat(path); gone == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
	return ""
}

// vacuous says that nothing is in a directory, or that there is none.
func isEmptyDir(dir string) bool {
	entries, err := os.ReadDir(dir)
	return len(entries) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist))
}

// vanish takes back directories, below keep, that were made for a run that came to nothing.
func removeEmptyDirs(dir, keep string) {
	for keep != "" && len(dir) > len(keep) && os.Remove(dir) == nil {
		dir = filepath.Dir(dir)
	}
}

// startDetached runs this binary again, in a session of its own as the operating system has them, to train what o says:
// it reads that on its standard input. What it says is in the log beside the recording.
func startDetached(o host.Order) (*exec.Cmd, string, error) {
	var text bytes.Buffer
	if err := o.Write(&text); err != nil {
		return nil, "", err
	}
	return spawn(o.Dir, &text, "run", "--host", "--session", o.Dir) // the directory is for whoever lists processes
}

// spawn runs this binary again, detached from this process, for the session in dir.
func spawn(dir string, in io.Reader, args ...string) (*exec.Cmd, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("session %s: %w", dir, err)
	}
	_ = session.KeepSaid(dir) // else what the process before said is lost: that stops no run
	logPath := filepath.Join(dir, session.HostLog)
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("session %s: %w", dir, err)
	}
	defer log.Close()
	child := exec.Command(self, args...)
	child.Stdin, child.Stderr = in, log // what it prints is for nobody: of a fleet, the URLs of its operators
	child.SysProcAttr = detached()
	return child, logPath, child.Start()
}

// awaitDoor waits until the run answers, or its process ends: with a sentence, or well, which is [errOver]. It tells
// meanwhile of the rounds that are executed again before the run begins, as they are done.
func awaitControl(ctx context.Context, dir string, gone <-chan error, logPath string, told func(round uint64)) (*control.Client, error) {
	if _, err := session.SocketPath(dir); err != nil {
		return nil, err
	}
	for {
		again := 5 * time.Millisecond
		if client, err := control.Dial(dir, clientName(), false); err == nil {
			ahead, err := client.Ahead(ctx)
			if err == nil && ahead == nil {
				return client, nil
			}
			client.Close()
			if ahead != nil { // rounds are brought back: there is time
				told(ahead.Round)
				again = 50 * time.Millisecond
			}
		}
		select {
		case err := <-gone:
			if err == nil {
				return nil, errOver
			}
			text, _ := os.ReadFile(logPath)
			sentence := strings.TrimPrefix(strings.TrimSpace(string(text)), "brood: ")
			code := exitFailed
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.ExitCode() > 0 {
				code = exit.ExitCode()
			}
			if sentence == "" {
				sentence = fmt.Sprintf("the run's process ended (%v) before it could be looked at: brood replay %s", err, dir)
			}
			return nil, &exitError{code: code, err: errors.New(sentence)}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(again):
		}
	}
}
