package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/panel/knobs"
)

// TestRejectedCommandLine checks that a rejected line can be edited while it is open, and that typing starts a new one.
func TestRejectedCommandLine(t *testing.T) {
	refused := func() *desk {
		d := open(t, 80, 24, sourcetest.Run(6, 100), nil)
		d.press(":").write("swap x").press("enter")
		d.shows(":swap x", `there is no algorithm "x"`)
		return d
	}
	for _, c := range []struct {
		keys, want string // want: the text that is left in the line
	}{
		{"left", "swap x"},
		{"backspace", "swap "},
		{"backspace s", "swap s"},
		{"tab", "swap x"},
		{"ctrl+w", "swap "},
		{"p", "p"},
		{"space b", "swap x b"},
		{"p a", "pa"},
		{": p", ":p"},
	} {
		d := refused()
		d.press(strings.Fields(c.keys)...)
		if d.prompt == nil || d.prompt.Text() != c.want || d.prompt.err != "" {
			t.Errorf("%q leaves %+v, want %q", c.keys, d.prompt, c.want)
		}
		d.hides("there is no algorithm")
	}
	d := refused()
	if d.Update(tea.PasteMsg{Content: "pause"}); d.prompt.Text() != "pause" {
		t.Errorf("pasting leaves %q", d.prompt.Text())
	}
	d = refused()
	d.press("esc")
	d.hides("swap x", "there is no algorithm")
	if d.press(":"); d.prompt.Text() != "" {
		t.Errorf("it opens again with %q", d.prompt.Text())
	}
}

// TestLongCommandError checks that an error without space next to the line is drawn above it.
func TestLongCommandError(t *testing.T) {
	d := open(t, 80, 24, sourcetest.Run(6, 100), nil)
	d.press(":").write("swap something-with-a-long-name").press("enter")
	d.shows(":swap something-with-a-long-name",
		`swap: there is no algorithm "something-with-a-long-name": choose one of`)
}

// TestRejectionClearsWithTheNextKey checks that a rejection by the run is shown until the next key.
func TestRejectionClearsWithTheNextKey(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
	d.say1 = func(c event.Command) (event.Receipt, error) {
		return event.Receipt{ID: c.ID, Reason: "eta is too large"}, nil
	}
	d.press(":").write("set eta 9").press("enter")
	d.shows("eta = 9 rejected: eta is too large")
	d.press("tab")
	d.hides("rejected")

	d.press("k", "j", "enter").write("fast").press("enter")
	d.shows("eta", "\"fast\"")
	for _, key := range []string{"esc", "backspace"} {
		d.rail.Typing, d.rail.Answer = &panel.TextInput{}, knobs.Answer{Text: "bad", Bad: true}
		if d.press(key); d.rail.Answer.Text != "" {
			t.Errorf("%s leaves %q at the rail", key, d.rail.Answer.Text)
		}
		d.rail.Typing = nil
	}
	d.rail.Answer = knobs.Answer{Text: "nothing is staged", Bad: true}
	if d.press("l"); d.rail.Answer.Text != "" {
		t.Errorf("a turn leaves %q at the rail", d.rail.Answer.Text)
	}
	d.shows("1 staged")
}
