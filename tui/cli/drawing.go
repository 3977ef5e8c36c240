package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"brood/tui"
)

// drawFlags say how a workbench looks.
type drawFlags struct {
	ascii bool
	theme theme
}

// drawNames are the flags that change nothing but that.
var drawNames = []string{"ascii", "theme"}

func (f *drawFlags) register(c *cobra.Command) {
	c.Flags().BoolVar(&f.ascii, "ascii", false, "draw with ASCII only")
	c.Flags().Var(&f.theme, "theme", "colours: dark, light or plain (default: as the terminal's background is)")
}

// options are those of a workbench that looks so, with what this person chose the last time.
func (f *drawFlags) options() tui.Options {
	return tui.Options{ASCII: f.ascii, Light: f.theme == "light", NoColor: f.theme == "plain", Fixed: f.theme != "",
		Settings: readSettings(), Keep: keepSettings()}
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
