package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/panel/runs"
)

// openWithAll opens a live run with a library that lists runs and starts presets.
func openWithAll(t *testing.T) (*desk, *launchLibrary, *runs.Launch) {
	s, l := &launchLibrary{fakeLibrary: &fakeLibrary{list: recordedOnes()}}, runs.NewLaunch()
	d := open(t, 120, 40, sourcetest.Run(6, 100), func(o *panel.Options) { o.Library = s })
	d.replace(l.Panel())
	return d, s, l
}

// TestPaletteFindsThings checks that the palette lists what a run and the library have by name, and what enter does.
func TestPaletteFindsThings(t *testing.T) {
	for _, c := range []struct {
		typed, want string
		done        func(*desk, *launchLibrary, *runs.Launch) bool
	}{
		{"gamma", "γ: edit, ", func(d *desk, _ *launchLibrary, _ *runs.Launch) bool {
			return d.Focus == panel.Knobs && d.rail.Typing != nil && d.rail.SelectedKnob(d.Host).Name == "gamma"
		}},
		{"m4", "m4: focus it", func(d *desk, _ *launchLibrary, _ *runs.Launch) bool { return d.Member == 4 }},
		{"chart spread", "spread: show its chart", func(d *desk, _ *launchLibrary, _ *runs.Launch) bool {
			return d.screens()[d.screen].Name == "Charts"
		}},
		{"w2 cordon", "w2: cordon the worker", func(d *desk, _ *launchLibrary, _ *runs.Launch) bool {
			return len(d.sentActions()) == 1
		}},
		{"quickstart-7f3a", "quickstart-7f3a: replay", func(_ *desk, s *launchLibrary, _ *runs.Launch) bool {
			return len(s.opened) == 1 && strings.HasSuffix(s.opened[0], "quickstart-7f3a")
		}},
		{"es-0b1c", "es-0b1c: attach", func(_ *desk, s *launchLibrary, _ *runs.Launch) bool {
			return len(s.opened) == 1 && strings.HasSuffix(s.opened[0], "es-0b1c")
		}},
		{"scrknob", "screen Knobs", func(d *desk, _ *launchLibrary, _ *runs.Launch) bool { return d.screen == 2 }},
		{"members", "members N: ", func(d *desk, _ *launchLibrary, _ *runs.Launch) bool {
			return d.prompt != nil && d.prompt.Text() == "members "
		}},
		{"parity", "parity: start the preset", func(d *desk, s *launchLibrary, l *runs.Launch) bool {
			return d.Focus == panel.Launch && l.Request.Preset == "parity" && len(s.begun) == 0
		}},
	} {
		d, s, l := openWithAll(t)
		d.press("ctrl+p").write(c.typed)
		if found := d.Popup.(*panel.Palette).Matches(); len(found) == 0 || !strings.HasPrefix(found[0].Title, c.want) {
			t.Errorf("%q finds %v first, want %q", c.typed, found[:min(1, len(found))], c.want)
			continue
		}
		if d.press("enter"); !c.done(d, s, l) {
			t.Errorf("%q: enter does something else:\n%s", c.typed, d.screenText())
		}
	}
}

// TestPaletteSaysWhyNot checks that the palette shows why the chosen action is unavailable, and does not run it.
func TestPaletteSaysWhyNot(t *testing.T) {
	d := open(t, 80, 24, sourcetest.Run(6, 100), func(o *panel.Options) { o.ReadOnly = true })
	d.press("ctrl+p").write("gamma")
	d.shows("γ: edit", "read-only: attach without --read-only")
	d.press("enter")
	if d.shows("read-only: attach without --read-only"); d.rail.Typing != nil || d.Popup != nil {
		t.Error("it runs")
	}
}

// TestPaletteKeepsItsEntry checks that entries that arrive while the palette is open do not move the cursor to another
// action.
func TestPaletteKeepsItsEntry(t *testing.T) {
	n := 1
	p := &panel.Palette{Refresh: func() (out []panel.PaletteEntry) {
		for i := range n {
			out = append(out, panel.PaletteEntry{Title: string(rune('a' + n - i))})
		}
		return out
	}}
	p.Update()
	if n = 3; p.Matches()[p.Chosen].Title != "b" {
		t.Fatalf("the first entry is %v", p.Matches())
	}
	if p.Update(); p.Matches()[p.Chosen].Title != "b" {
		t.Errorf("the cursor is on %q", p.Matches()[p.Chosen].Title)
	}
}

// TestCommandPrefixes checks that a unique prefix runs a command, and that an ambiguous one lists what it could be.
func TestCommandPrefixes(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
	if d.press(":").write("pau").press("enter"); len(d.sent) != 1 || d.sent[0].Action != event.Pause {
		t.Errorf(":pau sends %+v", d.sent)
	}
	d.press(":").write("sp 2").press("enter")
	d.shows("this is a live run: only a recording has a speed")
	d.press("esc", ":").write("sw").press("tab")
	if text := d.prompt.Text(); text != "swap " {
		t.Errorf("tab completes sw as %q", text)
	}
	d.press("esc", ":").write("st").press("enter")
	if d.prompt != nil || d.Popup == nil {
		t.Error(":st does not ask whether to stop the run")
	}
	d.press("esc", ":").write("s").press("enter")
	d.shows(`"s" could be set, swap, stop, save, speed, screen: type more letters`)
	d.press("esc", ":").write("member").press("enter") // a name, and a prefix of members
	d.shows("member: write member ID")
	d.press("esc", ":").write("q").press("enter")
	if d.last == nil {
		t.Fatal(":q does nothing")
	}
	if _, quits := d.last().(tea.QuitMsg); !quits {
		t.Error(":q does not leave")
	}
}

// TestCompleteValues checks that tab completes arguments, also after a prefix of a command.
func TestCompleteValues(t *testing.T) {
	d, _, _ := openWithAll(t)
	for typed, want := range map[string]string{
		"se": "set ", "set e": "set eta", "set al": "set alpha ", "set variant p": "set variant paper ",
		"swap s": "swap sample ", "zz": "zz", "set eta=0.1 al": "set eta=0.1 alpha ",
		"set eta=0.1 variant=p": "set eta=0.1 variant=paper ",
		"open quick":            "open quickstart-7f3a ",
		"new pari":              "new parity ",
		"kn gam":                "kn gamma ",
		"chart spr":             "chart spread ",
		"cordon w2":             "cordon w2 ",
		"axis ep":               "axis epoch ",
		"screen mach":           "screen machines ",
	} {
		d.press("esc", ":").write(typed).press("tab")
		if text := d.prompt.Text(); text != want {
			t.Errorf("tab completes %q as %q, want %q", typed, text, want)
		}
	}
	for line, want := range map[string]string{
		"open nothing": `open: there is no run "nothing"`,
		"knob gama":    `knob: there is no knob "gama"`,
	} {
		d.press("esc", ":").write(line).press("enter")
		d.shows(want)
	}
}
