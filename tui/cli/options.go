package cli

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
)

// Package option has the table of the options of a run. This file converts them to flags, and flags to the options of a
// run.

// optionFlag is the flag of an option. It implements pflag.Value.
type optionFlag struct {
	of   *option.Option
	to   *option.Options
	text string // normalised text of the value; "" before the first Set
}

func (f *optionFlag) String() string { return f.text }
func (f *optionFlag) Type() string   { return string(f.of.Kind) }

func (f *optionFlag) Set(text string) error {
	if err := f.of.Set(f.to, text); err != nil {
		return err
	}
	f.text = f.of.Written(*f.to)
	return nil
}

// optionFlags adds flags for these options to a command. They set values in to.
func optionFlags(c *cobra.Command, to *option.Options, these ...*option.Option) {
	for _, x := range these {
		c.Flags().Var(&optionFlag{of: x, to: to}, x.Name, x.DocFor(c.Name()))
	}
}

// joinFlags adds flags for the options of joining workers to a command. --wait is 1 by default.
func joinFlags(c *cobra.Command, to *option.Options) {
	optionFlags(c, to, option.With(option.Joined)...)
	wait := c.Flags().Lookup(option.Wait.Name)
	wait.DefValue = "1"
	_ = wait.Value.Set(wait.DefValue) // a valid number
}

// withoutJoined returns these options without those of joining workers.
func withoutJoined(these []*option.Option) []*option.Option {
	return slices.DeleteFunc(slices.Clone(these), func(x *option.Option) bool { return x.Has(option.Joined) })
}

// override sets those of these options in o whose flags are given. It fails for invalid values.
func (f *runFlags) override(o *host.Options, these []*option.Option, given func(flag string) bool) error {
	for _, x := range these {
		if !given(x.Name) {
			continue
		}
		if err := x.CheckTyped(f.opts); err != nil {
			return err
		}
		if x.Kind == option.Text && !x.Has(option.Ends) && x.Text(f.opts) == "" {
			continue // an empty text does not override
		}
		x.Copy(o, f.opts)
		if x == option.Deadline {
			if err := x.Set(o, option.DatedDeadline(x.Text(f.opts), time.Now())); err != nil {
				return err
			}
		}
	}
	return nil
}

// overridePreset applies the given flags to the options of a preset. A given limit of rounds, epochs or time replaces
// all limits of the preset; a given target or patience does not, since a run might never meet it.
func (f *runFlags) overridePreset(o *host.Options, given func(flag string) bool) error {
	for _, x := range option.With(option.Ends) {
		if x != option.Target && x != option.Patience && given(x.Name) {
			o.Limit = event.Limit{}
		}
	}
	return f.override(o, option.All, given)
}

// checkResumable fails if a given flag cannot change for a run that resumes.
func checkResumable(given func(flag string) bool) error {
	names := []string{"session", "full"}
	for _, x := range option.All {
		if !x.Has(option.Again) {
			names = append(names, x.Name)
		}
	}
	for _, name := range names {
		if given(name) {
			return usage("--%s cannot change with --resume; `brood fork` starts a new run from a round of the "+
				"session", name)
		}
	}
	return nil
}
