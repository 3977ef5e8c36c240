package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brood/models/usererr"
	"brood/presets"
)

// noArgs refuses arguments; where there are commands below, an unknown word is an unknown command.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if err := unnamed(c, args[0], true); err != nil {
		return err
	}
	return usage("%s takes no argument, but got %q", c.CommandPath(), args[0])
}

// unnamed says that no command below c is called so, and which one is meant. Where c takes words that name no command,
// and surely is false, that is said of what is nearly the name of one.
func unnamed(c *cobra.Command, word string, surely bool) error {
	meant := meantCommand(c, word)
	if !c.HasSubCommands() || meant == "" && !surely {
		return nil
	}
	if meant == "" {
		meant = aboutOne(c, word)
	}
	if !c.HasParent() && slices.Contains(presets.List(), word) {
		meant = fmt.Sprintf(": that is a preset, which `%s run %s` trains", c.Name(), word)
	}
	return usage("there is no command %q%s; see `%s --help`", word, meant, c.CommandPath())
}

// meantCommand is which command below c is meant by a word, as [usererr.Suggest] has it: by what else it is called, or by
// a slip.
func meantCommand(c *cobra.Command, word string) string {
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

// aboutOne is the command that tells about one of what c lists, "" where none does.
func aboutOne(c *cobra.Command, word string) string {
	for _, x := range c.Commands() {
		if x.Name() == "show" || x.Name() == "info" {
			return fmt.Sprintf(": `%s %s` is about one", x.CommandPath(), word)
		}
	}
	return ""
}
