package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view/sourcetest"
)

func (d *desk) hoverAt(x, y int) *desk {
	d.View()
	d.Update(tea.MouseMotionMsg{X: x, Y: y})
	d.Update(hoverMsg{})
	return d
}

// TestValuesUnderTheMouse checks that the legends show the round under the mouse without a change of the cursor, until
// the mouse leaves the chart, a key is pressed or the mouse rests.
func TestValuesUnderTheMouse(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.hoverAt(40, 8).shows("· at round ", "┆             │  ")
	if d.Cursor.On {
		t.Error("the mouse moves the cursor")
	}
	d.hoverAt(100, 8).hides("· at round ")
	d.shows("centre val 0.1008")
	d.hoverAt(40, 8).shows("· at round ")
	d.press("]").hides("· at round ")
	d.hoverAt(40, 8).shows("· at round ")
	d.now = d.now.Add(hoverFor + time.Second)
	d.Update(tickMsg(d.now))
	d.hides("· at round ")

	d.press("left")
	at := d.Cursor
	if d.hoverAt(40, 8); d.Cursor != at {
		t.Errorf("the cursor is at %d, it was at %d", d.Cursor.Round, at.Round)
	}
	d.press("7")
	before := d.screenText()
	d.hoverAt(100, 30)
	if after := d.press("]", "[").screenText(); after != before {
		t.Errorf("after the mouse the screen Charts is\n%s\nbefore it\n%s", after, before)
	}
}

// TestMotionDrawsFewFrames checks that events of the mouse are merged, and that one which changes nothing repeats the
// last frame instead of drawing it.
func TestMotionDrawsFewFrames(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.View()
	for i := range 5 {
		d.Update(tea.MouseMotionMsg{X: 40 + i, Y: 8})
		if (d.last != nil) != (i == 0) || !d.same {
			t.Fatalf("event %d: command %t, same frame %t", i, d.last != nil, d.same)
		}
	}
	if d.Update(hoverMsg{}); d.same || d.hover.at.Round == 0 {
		t.Error("no frame for a new round")
	}
	d.View()
	d.Update(tea.MouseMotionMsg{X: 44, Y: 9})
	if d.Update(hoverMsg{}); !d.same {
		t.Error("a frame for the same round")
	}
}
