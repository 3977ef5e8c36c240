package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"brood/runtime/session"
)

// TestBackgroundRunEndsEarly: runs may end before the parent process finds their control socket. A successful one opens
// as its recording and is not removed; a killed one is an error.
func TestBackgroundRunEndsEarly(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "short")
	t.Setenv("BROOD_SESSIONS", home)
	var out, errs bytes.Buffer
	s := streams{out: &out, err: &errs}
	args := []string{"run", "--json", "--session", dir, "--model", "softmax", "--data", "glyphs", "--algorithm", "dp-sgd",
		"--members", "1", "--rounds", "2"}
	if status := Run(context.Background(), args, s); status != 0 {
		t.Fatal(errs.String())
	}
	out.Reset()
	gone := make(chan error, 1)
	gone <- nil
	run, err := waitStarted(context.Background(), dir, gone, filepath.Join(dir, "no.log"), func(uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	if run.Commander != nil || run.Session != dir {
		t.Fatalf("a run that is over takes commands, or is %q", run.Session)
	}
	if err := inBackground(run, s); err != nil {
		t.Fatal(err)
	}
	if want := "the run is over, session " + dir + "\nreplay it:  brood replay short\n"; out.String() != want {
		t.Fatalf("%q, want %q", out.String(), want)
	}
	gone <- errors.New("signal: killed")
	if _, err := waitStarted(context.Background(), dir, gone, filepath.Join(dir, "no.log"), func(uint64) {}); err == nil ||
		!strings.Contains(err.Error(), "signal: killed") {
		t.Fatalf("a run whose process was killed: %v", err)
	}
}

// TestFailedStartLeavesNothing: a start that fails or is cancelled stops its process and removes what it created, but
// neither what was there nor a run that has begun.
func TestFailedStartLeavesNothing(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("the processes of this test run sh")
	}
	process := func(dir, script string) func() (*exec.Cmd, string, error) {
		return func() (*exec.Cmd, string, error) {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, "", err
			}
			path := filepath.Join(dir, session.HostLog)
			log, err := os.Create(path)
			if err != nil {
				return nil, "", err
			}
			defer log.Close()
			c := exec.Command("sh", "-c", script)
			c.Stderr = log
			return c, path, c.Start()
		}
	}
	train := func(dir string) {
		var errs bytes.Buffer
		args := []string{"run", "--json", "--session", dir, "--model", "softmax", "--data", "glyphs", "--algorithm", "dp-sgd",
			"--members", "1", "--rounds", "2"}
		if status := Run(context.Background(), args, streams{out: io.Discard, err: &errs}); status != 0 {
			t.Fatal(errs.String())
		}
	}
	for name, c := range map[string]struct {
		before func(dir string)                                   // nil: the directory does not exist
		start  func(dir string) func() (*exec.Cmd, string, error) // nil: the process fails
		cancel bool                                               // once the process runs
		kept   []string                                           // of dir, nil: it and its parent are gone
	}{
		"the process fails": {},
		"it does not start": {start: func(dir string) func() (*exec.Cmd, string, error) {
			return func() (*exec.Cmd, string, error) {
				_, path, _ := process(dir, "exit 0")()
				return nil, path, errors.New("no processes")
			}
		}},
		"it is cancelled": {cancel: true, start: func(dir string) func() (*exec.Cmd, string, error) {
			return process(dir, "sleep 1000")
		}},
		"a file was there": {before: func(dir string) {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, ".mine"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, kept: []string{".mine"}},
		"an empty directory was there": {before: func(dir string) {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}, kept: []string{"."}},
		"a session was there": {before: train, kept: []string{"log-000001.brood"}},
		"another process begins a run there": {start: func(dir string) func() (*exec.Cmd, string, error) {
			return func() (*exec.Cmd, string, error) {
				s, err := session.Create(dir)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				return process(dir, "echo brood: no >&2; exit 1")()
			}
		}, kept: []string{"log-000001.brood"}},
		"the run has begun": {start: func(dir string) func() (*exec.Cmd, string, error) {
			return func() (*exec.Cmd, string, error) {
				train(dir)
				return process(dir, "echo brood: no >&2; exit 1")()
			}
		}, kept: []string{"log-000001.brood", session.HostLog}},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("BROOD_SESSIONS", home)
			dir := filepath.Join(home, "study", "s")
			if c.before != nil {
				c.before(dir)
			}
			start := process(dir, "echo brood: no >&2; exit 1")
			if c.start != nil {
				start = c.start(dir)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var child *exec.Cmd
			_, err := startRun(ctx, dir, existing(dir), func() (cmd *exec.Cmd, path string, err error) {
				cmd, path, err = start()
				if child = cmd; c.cancel {
					cancel()
				}
				return cmd, path, err
			}, func(uint64) {})
			if err == nil {
				t.Fatal("the start succeeds")
			}
			if child != nil && child.ProcessState == nil {
				t.Error("the process was not waited for")
			}
			if _, err := os.Stat(filepath.Dir(dir)); c.kept == nil && !errors.Is(err, fs.ErrNotExist) {
				entries, _ := os.ReadDir(dir)
				t.Errorf("%s is left, with %v", filepath.Dir(dir), entries)
			}
			for _, name := range c.kept {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, session.HostLog)); name == "a file was there" && err == nil {
				t.Error("the log of the process is left")
			}
		})
	}
}
