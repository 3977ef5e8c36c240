package tui

import (
	"errors"
	"strings"
	"testing"

	"brood/runtime/session"
	"brood/tui/panel"
)

// A note on a round is kept beside the session, and stands in charts and among the events where its round is.
func TestNotesOnRounds(t *testing.T) {
	d, s := shelved(t, 200, 50, "")
	d.hides("warmer")
	d.press(":").write("note warmer from here on").press("enter")
	d.settle()
	d.shows("note on round 100 saved", "» warmer from here on", "warmer from here on┆ 100")
	if got := s.list[1].About.Rounds; len(got) != 1 ||
		got[0] != (session.RoundNote{Round: 100, Text: "warmer from here on"}) {
		t.Errorf("it kept %v", got)
	}
	// that under the cursor, an older round, stands before it
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
	// it can be found, and taken away
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
	// a failure is told, and nothing is shown that is not kept
	d.press("esc", "esc", "esc")
	s.err = errors.New("the disk is full")
	d.press(":").write("note lost").press("enter")
	d.settle()
	d.shows("the disk is full")
	d.hides("» lost")
}

// A note of a round that is not shown yet is not shown either; a session that is only looked at takes none.
func TestNotesInTime(t *testing.T) {
	d, s := shelved(t, 200, 50, "")
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
	d.shows("write the note on the machine that records it")
}
