package tui

import (
	"regexp"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// TestFewColours checks that the Population screen has more colours than those of its bars only in a terminal with 256
// colours or more: 16 colours would put a gradient out of order.
func TestFewColours(t *testing.T) {
	cells := regexp.MustCompile("\x1b\\[[0-9;]*m(?:[░▒▓█]+)")
	for profile, want := range map[colorprofile.Profile]bool{colorprofile.ANSI: false, colorprofile.ANSI256: true,
		colorprofile.TrueColor: true} {
		d := open(t, 120, 40, sourcetest.Run(12, 400), func(o *panel.Options) { o.NoColor = false })
		d.press("4")
		d.Update(tea.ColorProfileMsg{Profile: profile})
		colours := map[string]bool{}
		for _, c := range cells.FindAllString(d.screenText(), -1) {
			colours[regexp.MustCompile("[0-9;]+").FindString(c)] = true
		}
		if len(colours) > 4 != want {
			t.Errorf("%s: the shades have the colours %v", profile, colours)
		}
	}
}
