package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"brood/runtime/testutil"
)

// fullDisk is a standard output with space for this number of bytes.
type fullDisk struct {
	room int
	err  syscall.Errno
}

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: f.err}
	}
	return len(p), nil
}

// onFull runs a command line with a standard output that has space for this number of bytes.
func onFull(room int, args ...string) (status int, stderr string) {
	var errs bytes.Buffer
	status = Run(context.Background(), args, streams{out: &fullDisk{room, syscall.ENOSPC}, err: &errs})
	return status, errs.String()
}

// tinyRun is a run of two rounds.
var tinyRun = []string{"run", "--model", "softmax", "--data", "glyphs", "--algorithm", "parle", "--members", "2",
	"--rounds", "2", "--workers", "1", "--set", "ell=1", "--set", "batch=16"}

const noSpace = "write standard output: no space left on device; "

// printing has a command line for each command that prints; "one" and "two" are sessions, "book" of a text.
var printing = map[string]string{
	"": "--version", "algorithms": "algorithms", "bench": "bench noise --each 1ms", "compare": "compare one two",
	"data": "data", "data list": "data list --json",
	"data info": "data info glyphs", "data splits": "data splits glyphs", "data whiten": "data whiten glyphs",
	"doctor": "doctor", "eval": "eval one", "export": "export one --to csv -o -",
	"fork": "fork one --at 1 --json --rounds 3", "geometry": "geometry one", "help": "help run",
	"judge": "judge one two --budget rounds", "log": "log one", "models": "models", "models list": "models list --json",
	"models show": "models show mlp", "predict": "predict one glyphs", "presets": "presets", "program": "program",
	"program python": "program python", "presets list": "presets list --json", "presets show": "presets show quickstart",
	"replay": "replay one", "reproduce": "reproduce", "run": strings.Join(tinyRun, " ") + " --json",
	"sample": "sample book --prompt the.king --length 2", "scale": "scale", "sessions": "sessions",
	"simulate":       "simulate leader --agents 20 --trials 2",
	"simulate fleet": "simulate fleet --model softmax --data glyphs --algorithm parle --members 2 --sizes 2 --rounds 2 --measure 10ms",
	"sweep":          "sweep --json --model softmax --data glyphs --algorithm parle --members 2 --rounds 1 --set ell=1 --set batch=16,32",
	"verify":         "verify one", "version": "version --json", "rm": "rm two", "prune": "prune --keep 1",
}

// silent lists the commands that are not in printing, with the reason.
var silent = map[string]string{
	"attach": "needs a live run", "ecdf": "needs runs of BBOB", "invite": "needs a live run", "open": "needs a live run",
	"revoke": "needs a live run", "set": "needs a live run", "stop": "needs a live run",
	"serve": "waits for workers", "worker": "needs a served run", "fleet": "needs a command",
	"fleet launch": "needs a fleet", "fleet link": "needs a served run", "fleet status": "needs a served run",
	"data get": "needs the network", "check": "needs a program", "mcp": "needs a client",
}

// TestFullOutput: every command fails if it cannot write to standard output.
func TestFullOutput(t *testing.T) {
	t.Setenv("BROOD_SESSIONS", t.TempDir())
	t.Chdir(t.TempDir())
	for _, name := range []string{"one", "two"} {
		if status, _, stderr := typing(append(tinyRun, "--session", os.Getenv("BROOD_SESSIONS")+"/"+name)...); status != 0 {
			t.Fatal(stderr)
		}
	}
	book := "run --model bytes-small --data tales --algorithm dp-sgd --rounds 1 --session " +
		os.Getenv("BROOD_SESSIONS") + "/book"
	if status, _, stderr := typing(strings.Fields(book)...); status != 0 {
		t.Fatal(stderr)
	}
	var paths []string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		path := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "brood"), " ")
		if !c.Hidden {
			paths = append(paths, path)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	root := newRoot(streams{})
	root.InitDefaultHelpCmd()
	walk(root)
	last := []string{"rm", "prune"} // they take sessions away
	for _, path := range append(paths, last...) {
		line, ok := printing[path]
		if !ok && silent[path] == "" {
			t.Errorf("brood %s: no line of this test says how it prints, and none that it does not", path)
		}
		if !ok || path == last[0] || path == last[1] {
			continue
		}
		failsOn(t, line)
	}
	for _, path := range last {
		failsOn(t, printing[path])
	}
}

func failsOn(t *testing.T, line string) {
	t.Helper()
	if status, stderr := onFull(0, strings.Fields(line)...); status != exitFailed || strings.Count(stderr, noSpace) != 1 {
		t.Errorf("brood %s: status %d, %q", line, status, stderr)
	}
}

// TestRunSavesOnFullOutput: a run with a full standard output ends after its round, can be resumed, and prints how.
func TestRunSavesOnFullOutput(t *testing.T) {
	t.Setenv("BROOD_SESSIONS", t.TempDir())
	for _, how := range []string{"--json", "--plain"} {
		args := append(append([]string{}, tinyRun...), "--rounds", "1000000", how, "--session",
			os.Getenv("BROOD_SESSIONS")+"/r"+how)
		status, stderr := onFull(600, args...)
		if want := noSpace + "resume the saved run with: brood run --resume r" + how; status != exitFailed ||
			!strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %q", how, status, stderr)
		}
	}
}

// TestClosedPipeIsQuiet: a reader that closes the pipe is not an error.
func TestClosedPipeIsQuiet(t *testing.T) {
	var errs bytes.Buffer
	status := Run(context.Background(), []string{"algorithms"}, streams{out: &fullDisk{100, syscall.EPIPE}, err: &errs})
	if status != 0 || errs.Len() > 0 {
		t.Errorf("status %d, %q", status, errs.String())
	}
}

// TestOutletEndsAtAFailure: output is a complete prefix up to the first failed write, even if a later write would fit.
func TestOutletEndsAtAFailure(t *testing.T) {
	disk := &fullDisk{5, syscall.ENOSPC}
	o := newStdout(disk)
	for i, text := range []string{"abc", "defg", "h"} {
		if _, err := o.Write([]byte(text)); (err == nil) != (i == 0) {
			t.Errorf("%q: %v", text, err)
		}
		disk.room = max(disk.room, 1)
	}
	if e := o.failure(); e == nil || e.Error() != noSpace+"redirect it to a file or a program that reads it" {
		t.Errorf("failure: %v", e)
	}
}

// TestFollowingEndsWithItsOutput: a command that follows a live run ends when its output fails, and the run continues.
func TestFollowingEndsWithItsOutput(t *testing.T) {
	t.Setenv("BROOD_SESSIONS", t.TempDir())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	dir := os.Getenv("BROOD_SESSIONS") + "/r"
	go func() {
		args := append(append([]string{}, tinyRun...), "--rounds", "100000000", "--plain", "--session", dir)
		ended <- Run(ctx, args, streams{out: io.Discard, err: io.Discard})
	}()
	testutil.Eventually(t, "it trains", func() bool {
		status, _, _ := typing("attach", dir, "--frames", "1")
		return status == 0
	})
	for _, c := range []struct {
		how  string
		err  syscall.Errno
		want int
	}{{"--json", syscall.ENOSPC, exitFailed}, {"--as=a", syscall.ENOSPC, exitFailed}, {"--json", syscall.EPIPE, 0},
		{"--as=a", syscall.EPIPE, 0}} {
		var errs bytes.Buffer
		status := Run(context.Background(), []string{"attach", dir, c.how},
			streams{in: os.Stdin, out: &fullDisk{10, c.err}, err: &errs})
		if wants := strings.Count(errs.String(), noSpace); status != c.want || wants != c.want ||
			strings.Count(errs.String(), "\n") != c.want {
			t.Errorf("attach %s with %v: status %d, %q", c.how, c.err, status, errs.String())
		}
	}
	select {
	case status := <-ended:
		t.Errorf("the run ended with status %d", status)
	default:
	}
	stop()
	<-ended
}
