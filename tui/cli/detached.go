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
	"brood/tui/panel"
)

// runDetached starts a child process that trains, and opens a workbench on the run, or returns with --background.
func (f *runFlags) runDetached(c *cobra.Command, preset string, s streams) error {
	f.detached = true
	o, err := f.order(c, preset)
	if err != nil {
		return err
	}
	dir, keep, err := f.place(cmp.Or(o.Options.Preset, o.Options.Algorithm))
	if err != nil {
		return err
	}
	if err := f.vacant(dir); err != nil {
		return err
	}
	o.Dir = dir
	start := func() (*exec.Cmd, string, error) { return startDetached(o) }
	run, err := startRun(c.Context(), dir, keep, start, func(uint64) {})
	if err != nil {
		return err
	}
	if f.background {
		return inBackground(run, s)
	}
	defer run.Close()
	program := cmp.Or(option.Objective.Text(o.Options), option.Program.Text(o.Options))
	return openWorkbench(c.Context(), run, f.draw.options(), program, s)
}

// inBackground prints the session of a background run and the commands for it, and closes the connection.
func inBackground(run panel.Opened, s streams) error {
	name := sessionArg(run.Session)
	if run.Commander == nil {
		fmt.Fprintf(s.out, "the run is over, session %s\nreplay it:  brood replay %s\n", run.Session, name)
	} else {
		fmt.Fprintf(s.out, "training in the background, session %s\nopen it:    brood attach %s\nstop it:    brood "+
			"stop %s\n",
			run.Session, name, name)
	}
	if by := listCommand(run.Session); by != "" {
		fmt.Fprintf(s.out, "list it:    %s\n", by)
	}
	return run.Close()
}

// startRun calls start, which starts a process for a run in dir, and waits until the run answers or is over. It calls
// recomputed with each round that is recomputed before that. If it fails or ctx ends, it stops the process and removes
// the files in dir and the directories below keep that it created. It keeps a run that had begun, and the run of another
// process.
func startRun(
	ctx context.Context, dir, keep string, start func() (*exec.Cmd, string, error), recomputed func(uint64),
) (run panel.Opened, err error) {
	empty, held := isEmptyDir(dir), session.Exists(dir)
	child, logPath, err := start()
	if err == nil {
		gone, ended := make(chan error, 1), make(chan struct{})
		go func() { gone <- child.Wait(); close(ended) }()
		if run, err = waitStarted(ctx, dir, gone, logPath, recomputed); err == nil {
			return run, nil
		}
		_ = child.Process.Kill() // it may have exited
		<-ended
	}
	begun, _ := host.Begun(dir)
	switch {
	case held || begun && ctx.Err() == nil:
	case empty: // this process created all of it
		removeCreated(dir, keep)
	default:
		os.Remove(filepath.Join(dir, session.HostLog))
	}
	return panel.Opened{}, err
}

// waitStarted returns a connection to a started run once it answers, or its recording if it is over before that. It
// calls recomputed with each round that is recomputed before the run begins.
func waitStarted(
	ctx context.Context, dir string, gone <-chan error, logPath string, recomputed func(round uint64),
) (panel.Opened, error) {
	client, err := awaitControl(ctx, dir, gone, logPath, recomputed)
	if err == nil {
		return live(dir, client), nil
	}
	if !errors.Is(err, errOver) {
		return panel.Opened{}, err
	}
	return openRecording(dir)
}

// errOver is the error of a run whose process exited successfully before the run answered.
var errOver = errors.New("the run is over")

// place returns the directory of the session to resume or of --session, or a new one, see newDir. The parent process
// chooses it before the process that will own it starts. keep is the part of its path that existed.
func (f *runFlags) place(name string) (dir, keep string, err error) {
	switch {
	case f.resume != "":
		dir, err = resolve(f.resume)
	case f.session != "":
		dir, err = filepath.Abs(f.session)
	default:
		return newDir(name)
	}
	return dir, existing(dir), err
}

// newDir creates a directory for a session with this name, see [session.NewDir]. keep is the part of its path that
// existed.
func newDir(name string) (dir, keep string, err error) {
	home, err := session.Home()
	if err != nil {
		return "", "", err
	}
	keep = existing(home)
	dir, err = session.NewDir(name, time.Now())
	return dir, keep, err
}

// vacant fails if another run writes to the directory or, except for a resume, if it holds a session: the process
// behind its control socket would not be the run that is about to start.
func (f *runFlags) vacant(dir string) error {
	if running, pid := session.Running(dir); running {
		return &session.LockedError{Dir: dir, PID: pid}
	}
	if f.resume == "" {
		return session.Vacant(dir)
	}
	return nil
}

// existing returns the longest prefix of a path that exists, as an absolute path.
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

// isEmptyDir reports whether a directory is empty or does not exist.
func isEmptyDir(dir string) bool {
	entries, err := os.ReadDir(dir)
	return len(entries) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist))
}

// removeCreated removes the content of dir, and dir and its parents below keep, up to the first one that is not empty.
// It does nothing if another process, which was faster, writes a session in dir.
func removeCreated(dir, keep string) {
	if running, _ := session.Running(dir); running {
		return
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		os.RemoveAll(filepath.Join(dir, e.Name()))
	}
	for len(dir) > len(keep) && os.Remove(dir) == nil {
		dir = filepath.Dir(dir)
	}
}

// startDetached runs this binary in a new OS session to train o, which it reads on its standard input. Its stderr
// goes to the log in the session directory; the second result is the path of the log.
func startDetached(o host.Order) (*exec.Cmd, string, error) {
	var text bytes.Buffer
	if err := o.Write(&text); err != nil {
		return nil, "", err
	}
	// the flag --session shows the directory in process lists
	return spawn(o.Dir, &text, "run", "--host", "--session", o.Dir)
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
	_ = session.KeepHostLog(dir) // a failure only loses the log of the previous process
	logPath := filepath.Join(dir, session.HostLog)
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("session %s: %w", dir, err)
	}
	defer log.Close()
	child := exec.Command(self, args...)
	child.Stdin, child.Stderr = in, log // stdout is discarded: for a fleet it has the secret URLs of operators
	child.SysProcAttr = detached()
	return child, logPath, child.Start()
}

// awaitControl waits until the run answers on its control socket, or its process exits: with the message of the
// process as an error, or with [errOver] after a successful exit. Meanwhile it calls recomputed with each round that
// is recomputed before the run begins.
func awaitControl(
	ctx context.Context, dir string, gone <-chan error, logPath string, recomputed func(round uint64),
) (*control.Client, error) {
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
			if ahead != nil { // rounds are being recomputed: poll less often
				recomputed(ahead.Round)
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
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
				code = exit.ExitCode()
			}
			if sentence == "" {
				sentence = fmt.Sprintf("the run's process ended (%v) before it answered", err)
				if begun, _ := host.Begun(dir); begun {
					sentence += ": brood replay " + dir
				}
			}
			return nil, &exitError{code: code, err: errors.New(sentence)}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(again):
		}
	}
}
