package cli

import (
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// commands FILE runs every line of a page of docs that begins with brood in a plain block.
func commands(ts *testscript.TestScript, neg bool, args []string) {
	text, err := os.ReadFile("../../docs/" + args[0])
	ts.Check(err)
	lines, fence := 0, ""
	for l := range strings.Lines(string(text)) {
		l = strings.TrimSpace(l)
		if mark, ok := strings.CutPrefix(l, "```"); ok {
			if fence == "" {
				fence = "```" + mark
			} else {
				fence = ""
			}
			continue
		}
		if words := strings.Fields(l); fence == "```" && len(words) > 1 && words[0] == "brood" {
			lines++
			if err := ts.Exec("brood", words[1:]...); err != nil {
				ts.Fatalf("%s: %s: %v", args[0], l, err)
			}
		}
	}
	if lines < 5 {
		ts.Fatalf("%s: %d lines were found", args[0], lines)
	}
}
