package tui

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// where returns the cell at which a text starts on the screen.
func (d *desk) where(text string) (x, y int) {
	d.t.Helper()
	for y, line := range strings.Split(d.screenText(), "\n") {
		if at := strings.Index(line, text); at >= 0 {
			return len([]rune(line[:at])), y
		}
	}
	d.t.Fatalf("the screen does not show %q:\n%s", text, d.screenText())
	return 0, 0
}

func (d *desk) clickAt(x, y int) *desk {
	d.Update(tea.MouseClickMsg{X: x, Y: y})
	d.settle()
	return d
}

// TestScreensByMouse checks that a click on the digit or name of a screen opens it, at any width and with badges.
func TestScreensByMouse(t *testing.T) {
	for _, w := range []int{60, 80, 100, 120, 200} {
		d := open(t, w, 24, sourcetest.Run(6, 400), nil)
		d.screenText()
		for i, s := range d.screens() {
			line := []rune(strings.Split(d.screenText(), "\n")[1])
			x := slices.IndexFunc(line, func(r rune) bool { return r == rune('0'+s.Digit) })
			if d.clickAt(x, 1); d.screen != i {
				t.Fatalf("%d wide: a click on %d opens %s", w, s.Digit, d.screens()[d.screen].Name)
			}
		}
	}
}

// TestDialogsByMouse checks the mouse in dialogs: a click on a choice runs it, yes and no answer, the wheel scrolls, a
// click outside closes.
func TestDialogsByMouse(t *testing.T) {
	d := open(t, 100, 30, sourcetest.Run(6, 400), nil)
	d.press("ctrl+p")
	x, y := d.where("screen Charts")
	if d.clickAt(x, y); d.Popup != nil || d.screens()[d.screen].Name != "Charts" {
		t.Errorf("the palette: on %s, popup %v", d.screens()[d.screen].Name, d.Popup)
	}
	d.press("ctrl+p")
	d.Update(tea.MouseWheelMsg{X: 50, Y: 15, Button: tea.MouseWheelDown})
	if p := d.Popup.(*panel.Palette); p.Chosen != 1 {
		t.Errorf("the wheel chooses %d", p.Chosen)
	}
	if d.clickAt(50, d.popupInside.Y+d.popupInside.H); d.Popup == nil {
		t.Error("a click on the frame of the palette does something")
	}
	if d.clickAt(1, 1); d.Popup != nil || d.screens()[d.screen].Name != "Charts" {
		t.Errorf("a click outside of the palette: popup %v, on %s", d.Popup, d.screens()[d.screen].Name)
	}

	d.press("?")
	d.Update(tea.MouseWheelMsg{X: 50, Y: 15, Button: tea.MouseWheelDown})
	if h := d.Popup.(*help); h.scroll != 1 {
		t.Errorf("the wheel scrolls help to %d", h.scroll)
	}
	if d.clickAt(50, 15); d.Popup == nil {
		t.Error("a click in help closes it")
	}
	d.clickAt(0, 0)

	for word, stopped := range map[string]bool{"n cancel": false, "y stop the run": true} {
		d := open(t, 100, 30, sourcetest.Run(6, 400), nil)
		d.press("X")
		x, y := d.where("Stop the run?")
		if d.clickAt(x, y); d.Popup == nil {
			t.Fatal("a click on the question answers it")
		}
		x, y = d.where(word)
		if d.clickAt(x+2, y); d.Popup != nil || (len(d.sent) > 0) != stopped {
			t.Errorf("a click on %q: popup %v, sent %v", word, d.Popup, d.sent)
		}
	}
}
