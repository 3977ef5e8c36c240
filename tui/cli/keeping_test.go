package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"brood/runtime/session"
)

// TestWhatIsSaidIsKept: also what was said before there was a session, and it is printed as ever.
func TestWhatIsSaidIsKept(t *testing.T) {
	dir := t.TempDir()
	var printed strings.Builder
	k := keep(&plainPrinter{out: &printed})
	if keep(k) != k {
		t.Error("it is kept twice")
	}
	k.note("listening")
	k.settle(dir, "begins")
	k.note("worker 1 joined")
	k.fail(nil)
	k.fail(errors.New("the disk is full"))
	lines, err := session.Said(dir)
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
