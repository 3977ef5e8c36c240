package tui

import (
	"strings"
	"testing"

	"brood/runtime/view/sourcetest"
)

// Help begins with the keys of the screen that is looked at.
func TestHelpByContext(t *testing.T) {
	for screen, group := range map[string]string{"3": "knobs", "7": "charts", "9": "runs"} {
		d, _ := shelved(t, 80, 24, screen)
		d.press("?")
		h := d.popup.(*help)
		if first := h.lines(d.model)[0].group; !strings.HasPrefix(first, group) {
			t.Errorf("screen %s: help begins with %q", screen, first)
		}
		if got, all := len(h.lines(d.model)), len(helpLines(helpGroups(d.model))); got != all {
			t.Errorf("screen %s: %d of %d lines", screen, got, all)
		}
	}
}

// Words find keys and commands, and nothing else is shown; typing closes nothing.
func TestHelpFinds(t *testing.T) {
	d := open(t, 80, 24, sourcetest.Run(6, 400), nil)
	d.press("?", "/").write("note")
	d.shows(":note", "write a note on this round", "help  /note_", "command line")
	d.hides("pause training")
	d.press("backspace").write("e zebra")
	d.shows("no key or command is told by these words")
	d.press("esc")
	d.hides("zebra")
	d.press("/").write("jkq ")
	if d.popup == nil || d.popup.(*help).text() != "jkq " {
		t.Error("letters that are looked for do something else")
	}
	if d.press("enter"); d.popup != nil {
		t.Error("enter does not close help")
	}
}
