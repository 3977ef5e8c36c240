// Package optiontest has test support: options that only tests have, and values for each option of the table.
package optiontest

import (
	"slices"
	"testing"

	"brood/runtime/option"
)

// Add appends options to the table until the test ends.
func Add(t *testing.T, lines ...*option.Option) {
	t.Helper()
	was := option.All
	t.Cleanup(func() { option.All = was })
	option.All = slices.Concat(was, lines)
}

// Lines returns two options for tests: one with choices and most uses, and a number that a resumed session keeps.
func Lines() (tally, slack *option.Option) {
	return &option.Option{Name: "tally", Doc: "how members are counted: by hand, or by machine", Kind: option.Text,
			Use: option.Preset | option.Full | option.Axis | option.Again | option.Logged, Choices: []string{"hand", "machine"}},
		&option.Option{Name: "slack-time", Doc: "minutes that are not counted", Kind: option.Count,
			Use: option.Preset | option.Logged, Above: "give 1 or more", Most: 90}
}

// Good returns the text of a valid value of an option that is not its default.
func Good(x *option.Option) string {
	switch {
	case x.Completions() != nil:
		words := x.Completions()()
		return words[len(words)-1]
	case x.Kind == option.Span:
		return "1m30s"
	case x.Kind == option.Number:
		return "2.5"
	case x.Kind == option.Text:
		return "some.file"
	}
	return "7"
}

// Bad is invalid for each option with choices, a check or a kind other than text; other options accept it as a name.
const Bad = "no such"
