package tui

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/replay"
)

const workbenchPage = "../docs/workbench.md"

// The page of the workbench ends with its keys and its words, as the code has them: go test ./tui -update writes them.
func TestWorkbenchPage(t *testing.T) {
	const heading = "## Keys\n"
	d := open(t, 120, 40, sourcetest.Run(3, 20), func(o *panel.Options) {
		o.Source, o.Library = replay.NewReplay(&tape{rs: sourcetest.Run(3, 20)}), &shelf{}
	})
	var b strings.Builder
	b.WriteString(heading)
	for _, l := range helpLines(helpGroups(d.model)) {
		if l.group != "" {
			fmt.Fprintf(&b, "\n**%s**\n\n| key | what it does |\n|---|---|\n", l.group)
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", l.key, l.title)
	}
	b.WriteString("\n## The command line\n\n`:` opens it. `tab` completes a word, and where several are possible goes through them; `shift+tab` goes back. `ctrl+p`\nfinds the same by what it does.\n\n| word | what it does |\n|---|---|\n")
	for _, c := range d.commands() {
		fmt.Fprintf(&b, "| `:%s` | %s |\n", strings.ReplaceAll(strings.TrimSpace(c.Name+" "+c.Args), "|", `\|`), c.Title)
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
