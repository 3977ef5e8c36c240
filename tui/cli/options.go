package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
)

// What a run can be told is package option's table. Here its lines become flags, and flags become the options of a run.

// optionFlag is an option as a flag.
type optionFlag struct {
	of   *option.Option
	to   *option.Options
	text string // as the value is written; "" where none was given
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

// optionFlags gives a command these options as flags that tell to.
func optionFlags(c *cobra.Command, to *option.Options, these ...*option.Option) {
	for _, x := range these {
		c.Flags().Var(&optionFlag{of: x, to: to}, x.Name, x.DocFor(c.Name()))
	}
}

// joinFlags gives a command the options of workers that come in; it waits for one unless it is told otherwise.
func joinFlags(c *cobra.Command, to *option.Options) {
	optionFlags(c, to, option.With(option.Joined)...)
	wait := c.Flags().Lookup(option.Wait.Name)
	wait.DefValue = "1"
	_ = wait.Value.Set(wait.DefValue) // it is a number
}

// here are those of these options that every command which begins runs has.
func here(these []*option.Option) []*option.Option {
	return slices.DeleteFunc(slices.Clone(these), func(x *option.Option) bool { return x.Has(option.Joined) })
}

// override puts those of these options that are given over what o says.
func (f *runFlags) override(o *host.Options, these []*option.Option, given func(flag string) bool) error {
	for _, x := range these {
		if !given(x.Name) {
			continue
		}
		if err := x.Typed(f.opts); err != nil {
			return err
		}
		if x.Kind == option.Text && !x.Has(option.Ends) && x.Text(f.opts) == "" {
			continue // an empty word says nothing
		}
		x.Copy(o, f.opts)
	}
	return nil
}

// over is what flags make of the options of a preset. What ends the run takes the place of all that ended the preset's;
// but a target alone may never be met, and what else ends it stays.
func (f *runFlags) over(o *host.Options, given func(flag string) bool) error {
	for _, x := range option.With(option.Ends) {
		if x != option.Target && given(x.Name) {
			o.Limit = event.Limit{}
		}
	}
	return f.override(o, option.All, given)
}

// keeps refuses what a session keeps when it goes on.
func keeps(given func(flag string) bool) error {
	names := []string{"session", "full"}
	for _, x := range option.All {
		if !x.Has(option.Again) {
			names = append(names, x.Name)
		}
	}
	for _, name := range names {
		if given(name) {
			return usage("--%s cannot be given with --resume: a session keeps its own; `brood fork` starts another from it",
				name)
		}
	}
	return nil
}
