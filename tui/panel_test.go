package tui

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/panel"
)

const tallyPanel panel.ID = "tally"

// tally counts the actions of the user.
type tally struct{ n int }

func (t *tally) panel() panel.Panel {
	return panel.Panel{
		ID:     tallyPanel,
		Title:  func(*panel.Host) (title, note string) { return "tally", "of this viewer" },
		Draw:   t.draw,
		Screen: &panel.Screen{Digit: 7, Name: "Tally"},
		Group:  "tally (on its screen)",
		Keys:   []panel.Binding{{Keys: []string{"j", "down"}, Title: "one more", Do: t.add}},
		Hints:  func(*panel.Host) [][2]string { return [][2]string{{"j", "one more"}} },
		Point:  t.pointRow,
		Export: panel.ViewExport(t.rows),
		Reset:  func() { *t = tally{} },
	}
}

func (t *tally) draw(_ *panel.Host, g *cell.Grid, r cell.Rect) {
	g.Text(r.X, r.Y, r.W, cell.Plain, fmt.Sprint("counted ", t.n))
}

func (t *tally) add(*panel.Host) tea.Cmd { t.n++; return nil }

func (t *tally) pointRow(_ *panel.Host, r cell.Rect, _, y int) { t.n = 100 * (1 + y - r.Y) }

func (t *tally) rows(*view.View) panel.Rows { return panel.Rows{{"counted"}, {fmt.Sprint(t.n)}} }

// TestPanelIsOneFile checks the recipe of docs/architecture.md: the code above and one entry in the registry are a
// complete interactive panel.
func TestPanelIsOneFile(t *testing.T) {
	page, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("panel_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(page), "const tallyPanel")
	if recipe, _, _ = strings.Cut(recipe, "```"); recipe == "" || !strings.Contains(string(source), recipe) {
		t.Errorf("the panel of docs/architecture.md is not the one that is tested here:\n%s", recipe)
	}
	t.Chdir(t.TempDir())
	for _, size := range [][2]int{{60, 12}, {80, 24}, {120, 40}, {200, 50}} {
		d := open(t, size[0], size[1], sourcetest.Run(6, 100), nil)
		own := &tally{}
		d.panels = append(d.without(panel.Charts).panels, own.panel()) // the tally has its digit

		d.press("7")
		d.shows("7 Tally", "counted 0", "of this viewer", "j one more")
		d.press("j", "j")
		d.shows("counted 2")
		at := d.Placed[0].Area
		d.Update(tea.MouseClickMsg{X: at.X + 5, Y: at.Y + 3})
		d.shows("counted 300")
		d.press("E")
		if text, err := os.ReadFile("run-tally.csv"); err != nil || string(text) != "counted\n300\n" {
			t.Errorf("it exports %q, %v; the screen says %q", text, err, d.Toast.Text)
		}
		if err := os.Remove("run-tally.csv"); err != nil {
			t.Fatal(err)
		}
		d.press("1", "j")
		if d.hides("one more"); own.n != 300 {
			t.Errorf("a key on another panel leads to %d", own.n)
		}
		d.resetSession()
		d.press("7")
		d.shows("counted 0")
		d.resize(120, 100).press("?")
		d.shows("tally (on its screen)", "one more")
		d.press("esc", "1", "ctrl+p").write("tally").press("enter")
		if d.Focus != tallyPanel {
			t.Errorf("the palette leads to %s", d.Focus)
		}
	}
}

// without removes a panel.
func (d *desk) without(id panel.ID) *desk {
	d.panels = slices.DeleteFunc(d.panels, func(p panel.Panel) bool { return p.ID == id })
	return d
}

func (d *desk) resize(w, h int) *desk {
	d.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return d
}

// TestPanelHooks checks the hooks that few panels use: filters, the wheel, esc, text input, commands, the clock, and
// the line without a border.
func TestPanelHooks(t *testing.T) {
	var got []string
	heard := func(what string) { got = append(got, what) }
	writing, polls := false, 0
	d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
	d.panels = append(d.without(panel.Charts).panels, panel.Panel{
		ID: tallyPanel, Title: func(*panel.Host) (title, note string) { return "tally", "" },
		Draw: func(*panel.Host, *cell.Grid, cell.Rect) {},
		Line: func(_ *panel.Host, g *cell.Grid, r cell.Rect) { g.Text(r.X, r.Y, r.W, cell.Plain, "in a line") },
		Screen: &panel.Screen{Digit: 7, Name: "Tally", Place: func(_ *panel.Host, b cell.Rect) []panel.Placement {
			top, low := b.Top(1)
			return []panel.Placement{{Panel: tallyPanel, Area: top}, {Panel: panel.Events, Area: low}}
		}},
		Group: "tally",
		Keys: []panel.Binding{
			{Keys: []string{"down"}, Title: "next", Do: func(*panel.Host) tea.Cmd { heard("down"); return nil }},
			{Keys: []string{"T"}, Title: "write", Anywhere: true, Do: func(*panel.Host) tea.Cmd { writing = true; return nil }},
		},
		Typing: func() *panel.Typing {
			if !writing {
				return nil
			}
			return &panel.Typing{Key: func(_ *panel.Host, name, text string) tea.Cmd {
				heard("typed " + name + "," + text)
				writing = false
				return nil
			}, Hints: [][2]string{{"x", "writes"}}}
		},
		Back: func(*panel.Host) bool { heard("back"); return true },
		List: &panel.List{Name: "tally", Entries: "counts", Top: func() { heard("top") }},
		Commands: []panel.Command{{Name: "tally", Title: "count", Do: func(*panel.Host, []string) (tea.Cmd, error) {
			heard("command")
			return nil, nil
		}}},
		Poll: func(m *panel.Host) tea.Cmd {
			if polls++; !m.LeadsScreen(tallyPanel) {
				return nil
			}
			return func() tea.Msg { return panel.Reply(func(*panel.Host) tea.Cmd { heard("reply"); return nil }) }
		},
	})
	for _, c := range []struct{ keys, heard string }{
		{"7", "reply"}, {"down", "down"}, {"/ n enter", "top"}, {"esc", "top"}, {"esc", "back"}, {"1", ""},
		{"T x", "typed x,x"}, {"7 1", "reply"}, {": t a l l y enter", "command"},
	} {
		got = nil
		if d.press(strings.Fields(c.keys)...); strings.Join(got, " ") != c.heard {
			t.Errorf("%s: the panel hears %v, want %s", c.keys, got, c.heard)
		}
	}
	polls = 0
	if d.Update(tickMsg(d.now)); polls != 1 {
		t.Errorf("a tick of the clock polls %d times", polls)
	}
	d.press("T")
	d.shows("x writes")
	d.Update(tea.PasteMsg{Content: "all"})
	d.press("7", "tab", "/", "esc")
	d.shows("in a line")
	got = nil
	d.Update(tea.MouseWheelMsg{X: 3, Y: 2, Button: tea.MouseWheelDown})
	d.press("1", "/")
	if !slices.Equal(got, []string{"down"}) || !strings.Contains(d.Toast.Text, "the machines or the counts") {
		t.Errorf("the wheel is heard as %v; / on a chart says %q", got, d.Toast.Text)
	}
}

// TestPanelsAreComplete checks that every panel is registered once with its required fields, and that layouts only
// place registered panels.
func TestPanelsAreComplete(t *testing.T) {
	d, _ := openShelved(t, 200, 50, "")
	seen, digits := map[panel.ID]bool{}, map[int]bool{}
	for _, p := range d.panels {
		if p.ID == "" || p.Title == nil || p.Draw == nil || seen[p.ID] {
			t.Errorf("panel %q has no id, title or drawing, or is there twice", p.ID)
		}
		if (len(p.Keys) > 0) != (p.Group != "") {
			t.Errorf("panel %q has keys without a heading in help, or a heading without keys", p.ID)
		}
		if seen[p.ID] = true; p.Screen == nil {
			continue
		}
		if p.Screen.Digit < 1 || p.Screen.Digit > 9 || digits[p.Screen.Digit] || p.Screen.Name == "" {
			t.Errorf("panel %q leads a screen without a name or a digit of its own", p.ID)
		}
		digits[p.Screen.Digit] = true
	}
	for i, s := range d.screens() {
		for _, size := range [][2]int{{60, 12}, {80, 24}, {120, 24}, {120, 40}, {200, 50}} {
			d.resize(size[0], size[1]).OpenScreen(i)
			d.PlacePanels()
			for _, p := range append(d.Placed, d.allPanels()...) {
				if !seen[p.Panel] {
					t.Errorf("screen %s at %v places %q, which is no panel", s.Name, size, p.Panel)
				}
			}
		}
	}
}

// TestPaletteOrder checks that entries with a word that starts with the text come first, and scattered letters last.
func TestPaletteOrder(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(3, 40), nil)
	p := newPalette(d.model)
	for typed, want := range map[string]string{"lay": "layout ", "undo": "undo your", "charts": "screen Charts",
		"": "screen Live"} {
		p.SetText(typed)
		if found := p.Matches(); !strings.HasPrefix(found[0].Title, want) {
			t.Errorf("%q finds %q first, want %q", typed, found[0].Title, want)
		}
	}
	if p.SetText("rlwrt"); len(p.Matches()) == 0 {
		t.Error("scattered letters find nothing")
	}
}
