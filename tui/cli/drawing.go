package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brood/tui"
)

// drawFlags say how a workbench looks.
type drawFlags struct {
	ascii asciiFlag
	theme theme
}

// asciiFlag says whether ASCII alone is drawn; where it is not given, the terminal's environment says so.
type asciiFlag struct {
	on    bool
	flags *pflag.FlagSet
}

func (f *asciiFlag) register(c *cobra.Command) {
	f.flags = c.Flags()
	f.flags.BoolVar(&f.on, "ascii", false,
		"draw with ASCII only (default: where TERM or the locale say that the terminal shows no more)")
}

func (f *asciiFlag) given() bool { return f.flags != nil && f.flags.Changed("ascii") }

// drawn says whether text for a stream is drawn with ASCII alone. Into a file or a pipe it is only where that was
// given.
func (f *asciiFlag) drawn(s streams) bool {
	return f.on || s.terminal && !f.given() && tui.ASCIIOnly(os.Environ())
}

// drawNames are the flags that change nothing but that.
var drawNames = []string{"ascii", "theme"}

func (f *drawFlags) register(c *cobra.Command) {
	f.ascii.register(c)
	c.Flags().Var(&f.theme, "theme", "colours: dark, light or plain (default: by the background of the terminal)")
}

// options are those of a workbench that looks so, with what this person chose the last time.
func (f *drawFlags) options() tui.Options {
	return tui.Options{
		ASCII:    f.ascii.on,
		Unicode:  f.ascii.given(),
		Light:    f.theme == "light",
		NoColor:  f.theme == "plain",
		Fixed:    f.theme != "",
		Settings: readSettings(),
		Keep:     keepSettings(),
	}
}

// theme is a choice of colours as a flag; "" leaves it to the terminal.
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
