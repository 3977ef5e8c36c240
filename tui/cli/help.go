package cli

import (
	"fmt"
	"os"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
)

// columns returns the width of the terminal on standard output in cells; 0 without a terminal.
func (s streams) columns() int {
	if w, _, err := term.GetSize(os.Stdout.Fd()); s.terminal && err == nil {
		return w
	}
	return 0
}

// helpColumns is the largest width of help texts, for readability.
const helpColumns = 120

// wrapHelp wraps the paragraphs and flags of --help at the width of the terminal. In a file or a pipe each flag keeps
// one line, so that it can be searched.
func wrapHelp(root *cobra.Command, s streams) {
	printHelp := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if w := s.columns(); w > 0 {
			wrapIn(c, min(w, helpColumns))
		}
		printHelp(c, args)
	})
}

// wrapIn wraps the help texts of a command at this number of columns.
func wrapIn(c *cobra.Command, columns int) {
	c.Long = reflow(c.Long, columns)
	c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), ".FlagUsages |",
		fmt.Sprintf(".FlagUsagesWrapped %d |", columns)))
}

// reflow wraps paragraphs at this number of columns. It breaks only at spaces, unlike libraries that break --json after
// a hyphen. Indented lines, which are examples, keep their line breaks.
func reflow(text string, columns int) string {
	var out []string
	inParagraph := false
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == ' ' {
			out, inParagraph = append(out, line), false
			continue
		}
		for word := range strings.FieldsSeq(line) {
			if last := len(out) - 1; inParagraph && lipgloss.Width(out[last])+1+lipgloss.Width(word) <= columns {
				out[last] += " " + word
				continue
			}
			out, inParagraph = append(out, word), true
		}
	}
	return strings.Join(out, "\n")
}
