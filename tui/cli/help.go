package cli

import (
	"fmt"
	"os"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
)

// columns is the width of the terminal that is written to, 0 where it is none.
func (s streams) columns() int {
	if w, _, err := term.GetSize(os.Stdout.Fd()); s.terminal && err == nil {
		return w
	}
	return 0
}

// helpColumns is as wide as paragraphs are read with ease.
const helpColumns = 120

// wrapHelp has the paragraphs and flags of --help fit the terminal. Into a file or a pipe each flag keeps its line, for
// who searches.
func wrapHelp(root *cobra.Command, s streams) {
	whole := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if w := s.columns(); w > 0 {
			wrapIn(c, min(w, helpColumns))
		}
		whole(c, args)
	})
}

// wrapIn wraps the help texts of a command at this many columns.
func wrapIn(c *cobra.Command, columns int) {
	c.Long = reflow(c.Long, columns)
	c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), ".FlagUsages |",
		fmt.Sprintf(".FlagUsagesWrapped %d |", columns)))
}

// reflow breaks paragraphs anew for so many columns, between words alone: a library would break --json after its first
// hyphen. Lines that are indented, which show what is typed, stay.
func reflow(text string, columns int) string {
	var out []string
	within := false // a paragraph
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == ' ' {
			out, within = append(out, line), false
			continue
		}
		for word := range strings.FieldsSeq(line) {
			if last := len(out) - 1; within && lipgloss.Width(out[last])+1+lipgloss.Width(word) <= columns {
				out[last] += " " + word
				continue
			}
			out, within = append(out, word), true
		}
	}
	return strings.Join(out, "\n")
}
