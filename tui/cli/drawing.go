package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brood/tui/panel"
)

// drawFlags holds the flags for the characters and colours of a workbench.
type drawFlags struct {
	ascii asciiFlag
	theme theme
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
	c.Flags().Var(&f.theme, "theme", "colours: dark, light or plain (default: by the background of the terminal)")
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

// theme is the flag --theme; "" means by the background of the terminal.
type theme string

func (t *theme) String() string { return string(*t) }
func (t *theme) Type() string   { return "theme" }

// Set implements pflag.Value.
func (t *theme) Set(s string) error {
	if s != "dark" && s != "light" && s != "plain" {
		return errors.New("no theme")
	}
	*t = theme(s)
	return nil
}
