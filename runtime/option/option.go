// Package option is the table of the options of a run. Flags, keys of presets, axes of sweeps, the recorded
// configuration, what a resumed run accepts, completion and error texts follow from it, so that a new option needs one
// line in table.go. The package reads neither flags nor files: its callers pass their text to [Option.Set].
package option

import (
	"reflect"
	"slices"
	"strings"

	"brood/models/usererr"
	"brood/runtime/event"
)

// Option is one option of a run: a line of the table.
type Option struct {
	Name string            // of the flag, the key and the axis
	Doc  string            // help text; a word in back quotes names the value
	Docs map[string]string // help text by command; a command without an entry has Doc
	Kind Kind
	Use  Use

	Default string                  // as text; "": zero stays, and its reader selects a value
	Choices []string                // nil: any value
	Check   func(text string) error // returns why a value is invalid; nil: any value of the kind is valid
	// Above is the end of the error for a typed value that is not above 0; "": 0 is allowed.
	Above string
	Most  int             // the greatest value; 0: no bound
	Words func() []string // completions other than Choices; may be nil
	Paths bool            // completions include paths

	// at returns a pointer to the field of the value: a *string, *int, *uint64 or *float64; nil: the value is in More. in
	// returns the field of a recorded configuration, of the same type; nil: the value is in its More.
	at func(*Options) any
	in func(*event.Config) any
}

// Use is a set of uses of an option. Every option is also a flag of each command that starts runs.
type Use uint

const (
	Preset Use = 1 << iota // a key of presets
	Full                   // a key of the full form of presets
	Axis                   // a sweep may vary it
	Again                  // can be given again to resume or branch a session; the session keeps all others
	Ends                   // a limit of the run: one that is given replaces all limits of the session
	Logged                 // is in the recorded configuration
	Joined                 // only for commands that admit remote workers
)

// Has returns whether the option has all the uses.
func (x *Option) Has(use Use) bool { return x.Use&use == use }

// With returns the options that have all the uses, in the order of the table.
func With(use Use) []*Option {
	return slices.DeleteFunc(slices.Clone(All), func(x *Option) bool { return !x.Has(use) })
}

// Named returns the option of the name, or nil.
func Named(name string) *Option {
	if i := slices.IndexFunc(All, func(x *Option) bool { return x.Name == name }); i >= 0 {
		return All[i]
	}
	return nil
}

// Names returns the names of the options.
func Names(of []*Option) (out []string) {
	for _, x := range of {
		out = append(out, x.Name)
	}
	return out
}

// DocFor returns the help text for the command.
func (x *Option) DocFor(command string) string {
	if doc, ok := x.Docs[command]; ok {
		return doc
	}
	return x.Doc
}

// Set parses text and stores the value in o. Its error is the noun of the kind, such as "whole number"; [Options.Check]
// checks bounds and choices.
func (x *Option) Set(o *Options, text string) error {
	if x.at != nil {
		return x.Kind.parse(text, x.at(o))
	}
	v := x.Kind.zero()
	if err := x.Kind.parse(text, v); err != nil {
		return err
	}
	o.More = with(o.More, x.Name, x.Kind.format(v))
	return nil
}

// with returns a copy of m in which name has the text, or no entry if the text is "". It returns nil instead of an
// empty map.
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

// Text returns the value as [Option.Set] parses it; "" for zero.
func (x *Option) Text(o Options) string {
	if x.at == nil {
		return o.More[x.Name]
	}
	return x.Kind.format(x.at(&o))
}

// Copy sets the option in to to its value in from.
func (x *Option) Copy(to *Options, from Options) {
	if x.at == nil {
		to.More = with(to.More, x.Name, from.More[x.Name])
		return
	}
	assign(x.at(to), x.at(&from))
}

// assign copies the value that from points to.
func assign(to, from any) { reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem()) }

// Fill sets zero options to their defaults.
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

// Check returns the error of the first invalid value.
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

// CheckTyped returns an error if the value must be above 0 and is not. It is for typed values: there a zero does not
// request the default.
func (x *Option) CheckTyped(o Options) error {
	if x.Above == "" || x.Kind.above(x.Text(o)) {
		return nil
	}
	return usererr.Errorf("--%s %s: %s", x.Name, x.Written(o), x.Above)
}

// Written returns [Option.Text], and the text of zero instead of "".
func (x *Option) Written(o Options) string {
	if text := x.Text(o); text != "" {
		return text
	}
	return x.Kind.formatZero()
}

// Completions returns the function that lists the words for shell completion, or nil.
func (x *Option) Completions() func() []string {
	switch {
	case x.Words != nil:
		return x.Words
	case len(x.Choices) > 0:
		return func() []string { return x.Choices }
	}
	return nil
}
