package option

import (
	goruntime "runtime"
	"testing"
)

// TestAlertCommands: a name that no command has is refused before a run begins; what a shell has of its own, or makes
// of a line, is not.
func TestAlertCommands(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("cmd has commands of its own")
	}
	for _, text := range []string{"cat >>x", "cd /tmp && cat >x", "FILE=x sh", `"$HOME/tell" me`, "{ cat; } >x", "(cat)", "/bin/sh -c true"} {
		if err := runs(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"no such", "", "  ", "/no/such/file x"} {
		if runs(text) == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
