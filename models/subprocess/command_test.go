package subprocess

import (
	"os/exec"
	"testing"
)

// TestQuote: a shell reads a quoted word as the word.
func TestQuote(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("the test needs a POSIX shell")
	}
	for _, word := range []string{"", "a", "/usr/bin/brood", "a b", "it's", "$HOME", "`x`", "a\nb", "*", "~", "é", `\`,
		"--x=1", "a;b", "#"} {
		out, err := exec.Command(sh, "-c", "printf %s "+Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q is quoted as %q: %q, %v", word, Quote(word), out, err)
		}
	}
}
