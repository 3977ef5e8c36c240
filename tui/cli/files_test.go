package cli

import (
	"os"
	"testing"
)

// TestFilesOfCommands: each command is defined in a file with its name.
func TestFilesOfCommands(t *testing.T) {
	commands := newRoot(streams{}).Commands()
	if len(commands) < 20 {
		t.Errorf("%d commands were found", len(commands))
	}
	for _, c := range commands {
		if c.Hidden {
			continue
		}
		if _, err := os.Stat(c.Name() + ".go"); err != nil {
			t.Errorf("brood %s: %v", c.Name(), err)
		}
	}
}
