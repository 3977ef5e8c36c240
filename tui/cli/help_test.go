package cli

import (
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"
)

// TestReflow: paragraphs are wrapped at the width of the terminal without losing words; examples keep their lines.
func TestReflow(t *testing.T) {
	got := reflow("one two three four\nfive six\n\n  brood run quickstart --seed 1\nseven", 14)
	if want := "one two three\nfour five six\n\n  brood run quickstart --seed 1\nseven"; got != want {
		t.Errorf("in 14 columns %q, want %q", got, want)
	}
	if got, want := reflow("one two\nthree four\nfive", 100), "one two three four five"; got != want {
		t.Errorf("in 100 columns %q, want %q", got, want)
	}
	var all func(c *cobra.Command)
	all = func(c *cobra.Command) {
		got := reflow(c.Long, 60)
		if a, b := strings.Fields(got), strings.Fields(c.Long); strings.Join(a, " ") != strings.Join(b, " ") {
			t.Errorf("%s: other words than %q", c.CommandPath(), c.Long)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if lipgloss.Width(line) > 60 && !strings.HasPrefix(line, " ") {
				t.Errorf("%s: %q is wider than 60 columns", c.CommandPath(), line)
			}
		}
		for _, c := range c.Commands() {
			all(c)
		}
	}
	all(newRoot(streams{}))
}

// TestHelpIsWrapped: flags are wrapped without losing words, also when help is printed repeatedly.
func TestHelpIsWrapped(t *testing.T) {
	for _, c := range newRoot(streams{}).Commands() {
		whole := c.UsageString()
		wrapIn(c, 80)
		wrapIn(c, 80)
		wrapped := c.UsageString()
		if strings.Join(strings.Fields(whole), " ") != strings.Join(strings.Fields(wrapped), " ") {
			t.Errorf("%s: other words in 80 columns:\n%s", c.CommandPath(), wrapped)
		}
		_, flags, _ := strings.Cut(wrapped, "Flags:\n")
		for line := range strings.SplitSeq(flags, "\n") {
			if lipgloss.Width(line) > 80 {
				t.Errorf("%s: %q is wider than 80 columns", c.CommandPath(), line)
			}
		}
	}
}
