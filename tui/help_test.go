package tui

import (
	"slices"
	"strings"
	"testing"

	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/panel"
)

// TestHelpByContext checks that help starts with the keys of the open screen.
func TestHelpByContext(t *testing.T) {
	for screen, group := range map[string]string{"3": "knobs", "7": "charts", "9": "runs", "4": "population"} {
		d, _ := openShelved(t, 80, 24, screen)
		d.press("?")
		h := d.Popup.(*help)
		if first := h.lines(d.model)[0].group; !strings.HasPrefix(first, group) {
			t.Errorf("screen %s: help begins with %q", screen, first)
		}
		for _, hidden := range []string{"events (focus on the lane)", "links (focus on the matrix)"} {
			if i := slices.IndexFunc(helpGroups(d.model),
				func(g helpGroup) bool { return g.name == hidden && g.here }); i >= 0 {
				t.Errorf("screen %s: %s are among the keys of what is seen", screen, hidden)
			}
		}
		if got, all := len(h.lines(d.model)), len(helpLines(helpGroups(d.model))); got != all {
			t.Errorf("screen %s: %d of %d lines", screen, got, all)
		}
	}
}

// TestHelpOfLive checks that help on Live starts with the key of its chart and those of the workbench, and that the
// rail follows if it is visible, else the keys that move in time.
func TestHelpOfLive(t *testing.T) {
	for size, next := range map[[2]int]string{{80, 24}: "timeline", {200, 50}: "knobs (focus on the rail)"} {
		d := open(t, size[0], size[1], sourcetest.Run(6, 400), nil)
		var groups []string
		for _, l := range new(help).lines(d.model) {
			if l.group != "" {
				groups = append(groups, l.group)
			}
		}
		if groups[0] != "the loss (on Live)" || groups[1] != "view" || groups[2] != next {
			t.Errorf("at %v help is of %q", size, groups)
		}
	}
}

// TestHelpListsAKeyOnce checks that a key of the focused panel is listed once, with its meaning there.
func TestHelpListsAKeyOnce(t *testing.T) {
	d := open(t, 80, 24, sourcetest.Run(6, 400), nil)
	knobs := func() bool {
		return slices.ContainsFunc(new(help).lines(d.model),
			func(l helpLine) bool { return l.title == "knobs: open (esc closes)" })
	}
	if !knobs() {
		t.Error("on Live k opens the knobs, and help does not say so")
	}
	if d.press("8", "w"); knobs() {
		t.Error("on the log k goes up, and help says that it opens the knobs")
	}
}

// TestHelpSearch checks that a search shows only the matching keys and commands, and that typing does not close help.
func TestHelpSearch(t *testing.T) {
	d := open(t, 80, 24, sourcetest.Run(6, 400), nil)
	d.press("?", "/").write("note")
	d.shows(":note", "write a note on the round", "help  /note_", "command line")
	d.hides("pause training")
	d.press("backspace").write("e zebra")
	d.shows("no key or command matches")
	d.press("esc")
	d.hides("zebra")
	d.press("/").write("jkq ")
	if d.Popup == nil || d.Popup.(*help).Text() != "jkq " {
		t.Error("letters that are looked for do something else")
	}
	if d.press("enter"); d.Popup != nil {
		t.Error("enter does not close help")
	}
}

// TestExamples types the keys of each example: none of them is refused, and the focused panel's example is the first
// line of help.
func TestExamples(t *testing.T) {
	for _, start := range []string{"", "k", "2", "4", "7", "8", "8 w", "9", "N"} {
		d, _ := openShelved(t, 120, 40, start)
		d.press("?")
		lines := d.Popup.(*help).lines(d.model)
		if lines[1].key != exampleKey {
			t.Errorf("%s: help begins with %v", start, lines[:2])
			continue
		}
		d.press("esc")
		keys, _, _ := strings.Cut(lines[1].title, ":")
		d.Toast = panel.Toast{}
		for key := range strings.FieldsSeq(keys) {
			if len(key) == 1 || key == "enter" || key == "left" || key == "tab" {
				d.press(key)
			} else {
				d.write(key)
			}
			if d.Toast.Role == cell.Warn || d.Toast.Role == cell.Alert || d.rail.Answer.Bad {
				t.Errorf("%s: %s of %q is refused: %s%s", start, key, keys, d.Toast.Text, d.rail.Answer.Text)
			}
		}
	}
}
