package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

func TestFilterOfEvents(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.Focus = panel.Events
	d.press("/").write("CHECK")
	d.shows("1 of 7 · /CHECK_", "checkpoint saved", "enter keep the filter")
	d.hides("ell 10 from")
	if d.press("enter"); d.Filters.Typing != nil {
		t.Fatal("enter does not end the typing")
	}
	d.shows("1 of 7 · /CHECK ─")
	d.press("/").write("x")
	d.shows("0 of 7", `no event matches "CHECKx": esc clears`)
	d.press("esc")
	d.shows("6 of 7", "ell 10 at round 103: centre loss -0.32 (-53 %) in 50 rounds")
	d.hides("/CHECK", "checkpoint saved")
	d.press("t").shows("7 of 7", "checkpoint saved")
	d.press("t")
	d.press("/").write("warn").press("enter")
	d.shows("1 of 7", "replicas are collapsing")
	if d.press("esc"); d.Filters.Text["events"] != "" {
		t.Error("esc on the lane does not clear its filter")
	}
	d.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	d.press("/").write("edit")
	d.shows("r 103 ┆ ell 10 (ann)", "7 events · /edit_")
	d.write("zz")
	d.shows("no event matches")
}

func TestFilterNeedsAList(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.press("/")
	if d.Filters.Typing != nil || !strings.Contains(d.Toast.Text,
		"focus the knobs, the events, the alerts, the lines of the log, the workers or the machines first") {
		t.Errorf("on the loss / says %q", d.Toast.Text)
	}
	d.Focus = panel.Events
	d.press("/")
	d.Update(tea.PasteMsg{Content: "check\x1b[2J"})
	if got := d.Filters.Text["events"]; got != "check[2J" {
		t.Errorf("pasted %q", got)
	}
}

// TestFilterTakesAllLetters checks that a filter being typed receives all keys, including q.
func TestFilterTakesAllLetters(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.Focus = panel.Events
	d.press("/").write("qXz9/:?")
	if d.Filters.Text["events"] != "qXz9/:?" || len(d.sent) > 0 || d.Popup != nil || d.screen != 0 {
		t.Errorf("typed %q, sent %v", d.Filters.Text["events"], d.sent)
	}
	if d.press("ctrl+c"); d.last == nil {
		t.Error("ctrl+c does not leave")
	}
}
