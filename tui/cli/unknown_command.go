package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brood/models/usererr"
	"brood/presets"
)

// noArgs is a cobra.PositionalArgs that rejects arguments. If c has subcommands, it reports an unknown command and
// suggests one.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if err := unknownCommand(c, args[0], true); err != nil {
		return err
	}
	return usage("%s takes no argument, but got %q", c.CommandPath(), args[0])
}

// unknownCommand returns a usage error for a word that names no subcommand of c, with a suggestion. If surely is
// false, c also accepts other words: then it fails only for a near miss of a name. It returns nil if c has no
// subcommands.
func unknownCommand(c *cobra.Command, word string, surely bool) error {
	hint := suggestCommand(c, word)
	if !c.HasSubCommands() || hint == "" && !surely {
		return nil
	}
	if hint == "" {
		hint = suggestDetails(c, word)
	}
	if !c.HasParent() && slices.Contains(presets.List(), word) {
		hint = fmt.Sprintf(": it is a preset; `%s run %s` trains it", c.Name(), word)
	}
	return usage("unknown command %q%s; see `%s --help`", word, hint, c.CommandPath())
}

// suggestCommand returns a suggestion for a mistyped subcommand of c: by its SuggestFor aliases, else by edit
// distance, see [usererr.Suggest]; "" for none.
func suggestCommand(c *cobra.Command, word string) string {
	var names []string
	for _, x := range c.Commands() {
		if x.Hidden {
			continue
		}
		if slices.Contains(x.SuggestFor, strings.ToLower(word)) {
			return fmt.Sprintf(" (did you mean %s?)", x.Name())
		}
		names = append(names, x.Name())
	}
	return usererr.Suggest(word, names)
}

// suggestDetails returns a hint at the show or info subcommand of c, which describes one item of the list that c
// prints; "" if c has neither.
func suggestDetails(c *cobra.Command, word string) string {
	for _, x := range c.Commands() {
		if x.Name() == "show" || x.Name() == "info" {
			return fmt.Sprintf(": `%s %s` shows one of the list", x.CommandPath(), word)
		}
	}
	return ""
}
