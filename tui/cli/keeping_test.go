package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brood/runtime/session"
)

// TestNotesAreLogged: notes are logged, including those before the session exists, and still printed.
func TestNotesAreLogged(t *testing.T) {
	dir := t.TempDir()
	var printed strings.Builder
	k := withLog(&plainPrinter{out: &printed})
	if withLog(k) != k {
		t.Error("it is kept twice")
	}
	k.note("listening")
	k.setSession(dir, "begins")
	k.note("worker 1 joined")
	k.fail(nil)
	k.fail(errors.New("the disk is full"))
	lines, err := session.ProcessLog(dir)
	var texts []string
	for _, l := range lines {
		texts = append(texts, l.Text)
	}
	if got := fmt.Sprint(texts); err != nil || got != "[begins listening worker 1 joined the disk is full]" {
		t.Errorf("kept is %s, %v", got, err)
	}
	if printed.String() != "brood: listening\nbrood: worker 1 joined\n" {
		t.Errorf("printed is %q", printed.String())
	}
}

// TestLogFailureStopsNoRun: a run begins even if the log of the previous process cannot be saved.
func TestLogFailureStopsNoRun(t *testing.T) {
	s, err := session.Create(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), os.Mkdir(filepath.Join(s.Dir(), session.ProcessLogFile), 0o700),
		os.WriteFile(filepath.Join(s.Dir(), session.HostLog), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if session.KeepHostLog(s.Dir()) == nil {
		t.Fatal("it is kept")
	}
	child, _, err := spawn(s.Dir(), nil, "-test.run=^$")
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}
