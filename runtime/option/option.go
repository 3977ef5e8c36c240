// Package option is the table of what a run can be told. Flags, keys of presets, axes of sweeps, the recorded
// configuration, what a resumed run may be told again, completion and refusals follow from it, so that an option is one
// line of table.go. It knows neither flags nor files: whoever reads text from somewhere hands it to [Option.Set].
package option

import (
	"reflect"
	"slices"
	"strings"

	"brood/models/usererr"
	"brood/runtime/event"
)

// Option is one thing that a run can be told: a line of the table.
type Option struct {
	Name string            // of the flag, and of the key and the axis
	Doc  string            // what help says of it; a word in back quotes is what its value is called
	Docs map[string]string // what help says instead, by command
	Kind Kind
	Use  Use

	Default string                  // as text; "": what is zero stays so, and whoever reads it chooses
	Choices []string                // the only values, if any
	Check   func(text string) error // refuses a value with a sentence; nil: every value of the kind will do
	// asks, in the words that refuse it, for a value above 0 where one is typed; "": 0 will do
	Above string
	Most  int             // the greatest value; 0: no bound
	Words func() []string // what a shell offers in place of the choices; may be nil
	Paths bool            // and paths beside them

	// at is where the value is, a pointer to a string, an int, a uint64 or a float64; nil: in More. in is where a
	// recorded configuration has it, and of the same type; nil: among its Told.
	at func(*Options) any
	in func(*event.Config) any
}

// Use is what an option may be used for, beside being a flag of whatever begins runs.
type Use uint

const (
	Preset Use = 1 << iota // it is a key of presets
	Full                   // and of their full form
	Axis                   // a sweep may vary it
	Again                  // it may be told again when a session goes on or branches; what may not, a session keeps
	Ends                   // it ends the run: one that is told takes the place of all that were
	Logged                 // the configuration of the log has it
	Joined                 // it is of commands that let workers of other processes in, and of no other
)

// Has says whether the option may be used so.
func (x *Option) Has(use Use) bool { return x.Use&use == use }

// With are the options that may be used so, in the order of the table.
func With(use Use) []*Option {
	return slices.DeleteFunc(slices.Clone(All), func(x *Option) bool { return !x.Has(use) })
}

// Named is the option of a name, nil for none.
func Named(name string) *Option {
	if i := slices.IndexFunc(All, func(x *Option) bool { return x.Name == name }); i >= 0 {
		return All[i]
	}
	return nil
}

// Names are those of the options.
func Names(of []*Option) (out []string) {
	for _, x := range of {
		out = append(out, x.Name)
	}
	return out
}

// DocFor is what the help of a command says.
func (x *Option) DocFor(command string) string {
	if doc, ok := x.Docs[command]; ok {
		return doc
	}
	return x.Doc
}

// Set puts the value that a text says into o. What is no value of the kind is refused by an error that says what it
// should be, such as "whole number"; bounds and choices are for [Options.Check].
func (x *Option) Set(o *Options, text string) error {
	if x.at != nil {
		return x.Kind.read(text, x.at(o))
	}
	v := x.Kind.zero()
	if err := x.Kind.read(text, v); err != nil {
		return err
	}
	o.More = with(o.More, x.Name, x.Kind.text(v))
	return nil
}

// with is a copy of m in which a name has a text; "" has none, and a map of nothing is nil.
func with(m map[string]string, name, text string) map[string]string {
	out := map[string]string{name: text}
	for k, v := range m {
		if k != name {
			out[k] = v
		}
	}
	if text == "" {
		delete(out, name)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Text is the value as [Option.Set] reads it; "" for zero.
func (x *Option) Text(o Options) string {
	if x.at == nil {
		return o.More[x.Name]
	}
	return x.Kind.text(x.at(&o))
}

// Copy makes the option of to what it is in from.
func (x *Option) Copy(to *Options, from Options) {
	if x.at == nil {
		to.More = with(to.More, x.Name, from.More[x.Name])
		return
	}
	assign(x.at(to), x.at(&from))
}

// assign copies what a pointer points to.
func assign(to, from any) { reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem()) }

// Fill gives defaults to what was not told.
func (o *Options) Fill() error {
	for _, x := range All {
		if x.Default == "" || x.Text(*o) != "" {
			continue
		}
		if err := x.Set(o, x.Default); err != nil {
			return err
		}
	}
	return nil
}

// Check refuses the first value that no run can have.
func (o Options) Check() error {
	for _, x := range All {
		if err := x.check(o); err != nil {
			return err
		}
	}
	return nil
}

func (x *Option) check(o Options) error {
	text := x.Text(o)
	if text == "" {
		return nil
	}
	if x.Most > 0 && !x.Kind.within(text, x.Most) {
		return usererr.Errorf("%s = %s is out of bounds: give 1 to %d", x.Name, text, x.Most)
	}
	if n := len(x.Choices); n > 0 && !slices.Contains(x.Choices, text) {
		return usererr.Errorf("%s %q: choose %s or %s", x.Name, text, strings.Join(x.Choices[:n-1], ", "), x.Choices[n-1])
	}
	if x.Check == nil {
		return nil
	}
	return x.Check(text)
}

// Typed refuses a value that a person typed, for which zero would not stand for the default, in the words of a flag.
func (x *Option) Typed(o Options) error {
	if x.Above == "" || x.Kind.above(x.Text(o)) {
		return nil
	}
	return usererr.Errorf("--%s %s: %s", x.Name, x.Written(o), x.Above)
}

// Written is Text, with zero too as a value of its kind is written.
func (x *Option) Written(o Options) string {
	if text := x.Text(o); text != "" {
		return text
	}
	return x.Kind.nothing()
}

// Offers are the words that a shell completes a value of the option with; nil for none.
func (x *Option) Offers() func() []string {
	switch {
	case x.Words != nil:
		return x.Words
	case len(x.Choices) > 0:
		return func() []string { return x.Choices }
	}
	return nil
}
