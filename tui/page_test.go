package tui

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/replay"
)

const workbenchPage = "../docs/workbench.md"

// TestWorkbenchPage checks that the page of the workbench ends with the keys and command words of the code, except the
// keys that move in lists. go test ./tui -run TestWorkbenchPage -update writes them.
func TestWorkbenchPage(t *testing.T) {
	const heading = "## Keys\n"
	d := open(t, 120, 40, sourcetest.Run(3, 20), func(o *panel.Options) {
		o.Source, o.Library = replay.NewReplay(&memoryLog{rs: sourcetest.Run(3, 20)}), &fakeLibrary{}
	})
	var b strings.Builder
	b.WriteString(heading + "\nIn lists and tables `j` and `k`, or the arrows, move by a row, `g` and `G` to the first " +
		"and the last, `pgdown` and\n`pgup` by a page.\n\n| where | key | effect |\n|---|---|---|\n")
	motion := []string{"j down", "k up", "up", "g", "g home", "G", "G end", "pgdown", "pgup"}
	group := ""
	for _, l := range helpLines(helpGroups(d.model)) {
		if l.group != "" {
			group = l.group
			continue
		}
		if l.key != exampleKey && (group == groupTimeline || !slices.Contains(motion, l.key)) {
			fmt.Fprintf(&b, "| %s | `%s` | %s |\n", group, l.key, l.title)
		}
	}
	b.WriteString("\n## The command line\n\n`:` opens it. A unique prefix of a command is enough (`:q`), " +
		"and `tab` completes commands and their values. `ctrl+p`\nfinds the same actions, and knobs, members, charts, " +
		"workers, runs and presets by name; it shows why one is unavailable.\n\n| word | effect |\n|---|---|\n")
	for _, c := range d.commands() {
		fmt.Fprintf(&b, "| `:%s` | %s |\n", strings.ReplaceAll(strings.TrimSpace(c.Name+" "+c.Args), "|", `\|`),
			c.Title)
	}
	text, err := os.ReadFile(workbenchPage)
	if err != nil {
		t.Fatal(err)
	}
	before, has, _ := strings.Cut(string(text), heading)
	if want := b.String(); heading+has != want {
		if flag.Lookup("update").Value.String() != "true" {
			t.Fatalf("%s has other keys than the code: go test ./tui -run TestWorkbenchPage -update", workbenchPage)
		}
		if err := os.WriteFile(workbenchPage, []byte(before+want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
