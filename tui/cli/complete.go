package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"brood/models"
	"brood/models/data"
	"brood/presets"
	"brood/runtime/option"
	"brood/runtime/session"
)

// completer returns the words that a shell offers for an argument. With files the shell offers paths too.
type completer struct {
	words func() []string
	files bool
}

func (k completer) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	if k.files {
		return k.words(), cobra.ShellCompDirectiveDefault
	}
	return k.words(), cobra.ShellCompDirectiveNoFileComp
}

var (
	presetNames    = completer{presets.List, true}
	modelNames     = completer{models.Names, true}
	dataNames      = completer{data.List, true}
	sessionNames   = completer{mySessions, false}
	modelFiles     = completer{mySessions, true}
	sessionOrData  = completer{func() []string { return append(mySessions(), data.List()...) }, true}
	algorithmNames = completer{option.Algorithm.Completions(), false}
)

// mySessions returns the names of all sessions. It ignores errors, since completion cannot report them.
func mySessions() []string {
	home, err := session.Home()
	if err != nil {
		return nil
	}
	names, _ := session.Names(home)
	return names
}

// argumentWords holds the completions of arguments, by the path of the command.
var argumentWords = map[string]completer{
	"brood run":          presetNames,
	"brood serve":        presetNames,
	"brood sweep":        presetNames,
	"brood judge":        presetNames,
	"brood presets show": presetNames,
	"brood algorithms":   algorithmNames,
	"brood models show":  modelNames,
	"brood data info":    dataNames,
	"brood data get":     dataNames,
	"brood eval":         modelFiles,
	"brood predict":      sessionOrData,
	"brood attach":       sessionNames,
	"brood set":          sessionNames,
	"brood stop":         sessionNames,
	"brood replay":       sessionNames,
	"brood compare":      sessionNames,
	"brood verify":       sessionNames,
	"brood fork":         sessionNames,
	"brood export":       sessionNames,
	"brood log":          sessionNames,
	"brood rm":           sessionNames,
	"brood open":         sessionNames,
	"brood invite":       sessionNames,
	"brood revoke":       sessionNames,
}

// flagWords returns the completions of flag values, by the name of the flag.
func flagWords() map[string]completer {
	out := map[string]completer{"resume": sessionNames, "form": sessionOrData}
	for _, x := range option.All {
		if words := x.Completions(); words != nil {
			out[x.Name] = completer{words, x.Paths}
		}
	}
	return out
}

// completeIn registers the completions of a command and of its subcommands. It visits every flag of every command,
// which takes as long as the rest of a short command.
func completeIn(c *cobra.Command) {
	if k, ok := argumentWords[c.CommandPath()]; ok {
		c.ValidArgsFunction = k.complete
	}
	for name, k := range flagWords() {
		if f := c.LocalNonPersistentFlags().Lookup(name); f != nil && f.Value.Type() == "string" {
			_ = c.RegisterFlagCompletionFunc(name, k.complete) // fails only for a missing flag or a second registration
		}
	}
	for _, below := range slices.Clone(c.Commands()) {
		completeIn(below)
	}
}
