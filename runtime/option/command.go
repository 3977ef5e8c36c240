package option

import (
	"os/exec"
	goruntime "runtime"
	"slices"
	"strings"

	"brood/models/usererr"
)

// builtins are the builtins and keywords of a shell, which are no executable files.
var builtins = strings.Fields(". : [ [[ { ( ! alias break case cd command echo eval exec exit export false for if " +
	"kill printf pwd read " +
	"return set shift source test time trap true type ulimit umask unset until wait while")

// checkCommand returns an error if the first word of a shell command is a plain name that is neither a builtin nor an
// executable file. It does not check a command that starts with anything else.
func checkCommand(text string) error {
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
		return usererr.Errorf("on-alert = %s: there is no command %s on this machine: give one that a shell finds",
			text, first)
	}
	return nil
}
