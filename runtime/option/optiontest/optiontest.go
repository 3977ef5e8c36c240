// Package optiontest is test support: the options that only tests have, and values for each line of the table.
package optiontest

import (
	"slices"
	"testing"

	"brood/runtime/option"
)

// Add puts lines into the table until the test ends.
func Add(t *testing.T, lines ...*option.Option) {
	t.Helper()
	was := option.All
	t.Cleanup(func() { option.All = was })
	option.All = slices.Concat(was, lines)
}

// Lines are two that only tests have: one with choices that may be used for everything, and a number that a session
// keeps.
func Lines() (tally, slack *option.Option) {
	return &option.Option{Name: "tally", Doc: "how members are counted: by hand, or by machine", Kind: option.Text,
			Use: option.Preset | option.Full | option.Axis | option.Again | option.Logged, Choices: []string{"hand", "machine"}},
		&option.Option{Name: "slack-time", Doc: "minutes that nobody counts", Kind: option.Count,
			Use: option.Preset | option.Logged, Above: "give 1 or more", Most: 90}
}

// Good is a value of an option as it is written, and not its default; "" where what is good depends on the files there
// are.
func Good(x *option.Option) string {
	switch {
	case x.Offers() != nil:
		words := x.Offers()()
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

// Bad is no value of any option that has a kind, choices or a check of its own; other options take it as a name that
// nothing has.
const Bad = "no such"
