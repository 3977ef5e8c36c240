package cli

import (
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brood/tui/panel"
)

// drawFlags holds the flags for the characters and colours of a workbench.
type drawFlags struct {
	ascii asciiFlag
	theme string // "": by the background of the terminal
}

// asciiFlag is the flag --ascii. Without it, the environment of the terminal decides.
type asciiFlag struct {
	on    bool
	flags *pflag.FlagSet
}

func (f *asciiFlag) register(c *cobra.Command) {
	f.flags = c.Flags()
	f.flags.BoolVar(&f.on, "ascii", false,
		"draw with ASCII only (default: if TERM or the locale allows only ASCII)")
}

func (f *asciiFlag) given() bool { return f.flags != nil && f.flags.Changed("ascii") }

// only reports whether to draw with ASCII only. For a file or a pipe the environment does not matter.
func (f *asciiFlag) only(s streams) bool {
	return f.on || s.terminal && !f.given() && panel.ASCIIOnly(os.Environ())
}

// drawNames lists the flags of drawFlags.
var drawNames = []string{"ascii", "theme"}

func (f *drawFlags) register(c *cobra.Command) {
	f.ascii.register(c)
	parse := func(text string) (string, error) {
		if !slices.Contains([]string{"dark", "light", "plain"}, text) {
			return "", errors.New("no theme")
		}
		return text, nil
	}
	same := func(text string) string { return text }
	c.Flags().Var(valueFlag[string]{&f.theme, "theme", parse, same}, "theme",
		"colours: dark, light or plain (default: by the background of the terminal)")
}

// options returns the options of a workbench with these flags and the saved settings of this user.
func (f *drawFlags) options() panel.Options {
	return panel.Options{
		ASCII:    f.ascii.on,
		Unicode:  f.ascii.given(),
		Light:    f.theme == "light",
		NoColor:  f.theme == "plain",
		Fixed:    f.theme != "",
		Settings: readSettings(),
		Keep:     settingsWriter(),
	}
}
