package cli

import (
	"os"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// scheduleShown matches the schedules in help texts and pages.
var scheduleShown = regexp.MustCompile(`\b(?:linear|cosine|exp|step|piecewise):[-+*/.,=@\w]*[\w]`)

// examples SESSION applies the examples of brood set, brood run and the README to a training run: each line of brood
// set, and each schedule elsewhere as a value of eta.
func examples(ts *testscript.TestScript, neg bool, args []string) {
	readme, err := os.ReadFile("../../README.md")
	ts.Check(err)
	texts := []string{string(readme)}
	for _, of := range []string{"set", "run"} {
		ts.Check(ts.Exec("brood", of, "--help"))
		texts = append(texts, ts.ReadFile("stdout"))
	}
	lines, values := 0, 0
	do := func(set ...string) {
		if err := ts.Exec("brood", append([]string{"set", args[0]}, set...)...); err != nil {
			ts.Fatalf("the example %s: %v", strings.Join(set, " "), err)
		}
	}
	for _, text := range texts {
		for l := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(l), "brood set SESSION "); ok {
				lines++
				do(strings.Fields(rest)...)
				continue
			}
			for _, expr := range scheduleShown.FindAllString(l, -1) {
				values++
				do("eta=" + expr)
			}
		}
	}
	if lines < 6 || values < 2 {
		ts.Fatalf("%d lines and %d schedules were found: the texts have more", lines, values)
	}
}
