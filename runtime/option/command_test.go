package option

import (
	goruntime "runtime"
	"testing"
)

// TestAlertCommands: an unknown command name is refused before the run; shell builtins and other shell syntax are
// accepted.
func TestAlertCommands(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("cmd has other builtins")
	}
	for _, text := range []string{"cat >>x", "cd /tmp && cat >x", "FILE=x sh", `"$HOME/tell" me`, "{ cat; } >x", "(cat)",
		"/bin/sh -c true"} {
		if err := checkCommand(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"no such", "", "  ", "/no/such/file x"} {
		if checkCommand(text) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
