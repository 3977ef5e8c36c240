package cli

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
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
