package option

import (
	"os/exec"
	goruntime "runtime"
	"slices"
	"strings"

	"brood/models/usererr"
)

// builtins are commands that a shell has of its own, and words that begin something else.
var builtins = strings.Fields(". : [ [[ { ( ! alias break case cd command echo eval exec exit export false for if kill printf pwd read " +
	"return set shift source test time trap true type ulimit umask unset until wait while")

// runs refuses a shell command whose first word is a name of no command here: it would fail when it is needed. What
// does not begin with a plain name is the shell's affair.
func runs(text string) error {
	words := strings.Fields(text)
	if len(words) == 0 {
		return usererr.Errorf("on-alert: give a command, such as 'cat >>alerts.jsonl'")
	}
	first := words[0]
	plain := strings.IndexFunc(first, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_-+./", c)
	}) < 0
	if !plain || slices.Contains(builtins, first) || goruntime.GOOS == "windows" {
		return nil
	}
	if _, err := exec.LookPath(first); err != nil {
		return usererr.Errorf("on-alert = %s: there is no command %s here: give one that a shell finds", text, first)
	}
	return nil
}
