package tui

import (
	"errors"
	"strings"
	"testing"

	"brood/runtime/session"
	"brood/tui/panel"
)

// TestNotesOnRounds checks that a note on a round is saved in the session and shown at its round in charts and among
// the events.
func TestNotesOnRounds(t *testing.T) {
	d, s := openShelved(t, 200, 50, "")
	d.hides("warmer")
	d.press(":").write("note warmer from here on").press("enter")
	d.settle()
	d.shows("note on round 100 saved", "» warmer from here on", "warmer from here on┆ 100")
	if got := s.list[1].About.Rounds; len(got) != 1 ||
		got[0] != (session.RoundNote{Round: 100, Text: "warmer from here on"}) {
		t.Errorf("it kept %v", got)
	}
	// a note at the cursor, on an older round, is listed before it
	d.press("left", "left")
	at := d.Cursor.Round
	d.press(":").write("note look here").press("enter")
	d.settle()
	d.press("esc")
	text := d.screenText()
	if at == 0 || at >= 100 || !strings.Contains(text, "» look here") ||
		strings.Index(text, "» look here") > strings.Index(text, "» warmer") {
		t.Errorf("of round %d and 100:\n%s", at, text)
	}
	// it can be found and removed
	d.press("left", "left", ":").write("note -").press("enter")
	d.settle()
	d.shows("removed")
	d.press("esc")
	d.hides("» look here")
	if got := s.list[1].About.Rounds; len(got) != 1 {
		t.Errorf("it kept %v", got)
	}
	d.press("left", "left", ":").write("note -").press("enter")
	d.shows("has no note")
	// an error is shown, and the note that was not saved is not
	d.press("esc", "esc", "esc")
	s.err = errors.New("the disk is full")
	d.press(":").write("note lost").press("enter")
	d.settle()
	d.shows("the disk is full")
	d.hides("» lost")
}

// TestNotesInTime checks that notes after the shown round are hidden, and that a read-only session rejects notes.
func TestNotesInTime(t *testing.T) {
	d, s := openShelved(t, 200, 50, "")
	s.list[1].About.Rounds = []session.RoundNote{{Round: 40, Text: "early"}, {Round: 5000, Text: "from a future"}}
	d.deliver(d.LoadNotes()())
	d.shows("» early")
	d.hides("from a future")
	d.Opt.ReadOnly = true
	d.press(":").write("note mine").press("enter")
	d.shows(panel.ReadOnlyText)
	d.press("esc", "esc")
	d.Opt.ReadOnly, d.Opt.Library = false, nil
	d.press(":").write("note mine").press("enter")
	d.shows("write the note on the recording machine")
}
