package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
)

const tallyPanel panelID = "tally"

// tally counts what a person does with it.
type tally struct{ n int }

func (t *tally) panel() panel {
	return panel{
		id:     tallyPanel,
		title:  func(*model) (title, note string) { return "tally", "of this viewer" },
		draw:   t.draw,
		screen: &screen{digit: 7, name: "Tally"},
		group:  "tally (on its screen)",
		keys:   []binding{{keys: []string{"j", "down"}, title: "one more", do: t.add}},
		hints:  func(*model) [][2]string { return [][2]string{{"j", "one more"}} },
		point:  t.pointRow,
		export: plainly(t.rows),
		reset:  func() { *t = tally{} },
	}
}

func (t *tally) draw(_ *model, g *cell.Grid, r cell.Rect) {
	g.Text(r.X, r.Y, r.W, cell.Plain, fmt.Sprint("counted ", t.n))
}

func (t *tally) add(*model) tea.Cmd { t.n++; return nil }

func (t *tally) pointRow(_ *model, r cell.Rect, _, y int) { t.n = 100 * (1 + y - r.Y) }

func (t *tally) rows(*view.View) rows { return rows{{"counted"}, {fmt.Sprint(t.n)}} }

// TestPanelIsOneFile holds the recipe of docs/architecture.md: what is above, registered in one place, is all that an
// interactive panel takes.
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
		d.panels = append(d.without(chartsPanel).panels, own.panel()) // whose digit it has

		d.press("7")
		d.shows("7 Tally", "counted 0", "of this viewer", "j one more")
		d.press("j", "j")
		d.shows("counted 2")
		at := d.placed[0].at
		d.Update(tea.MouseClickMsg{X: at.X + 5, Y: at.Y + 3})
		d.shows("counted 300")
		d.press("E")
		if text, err := os.ReadFile("run-tally.csv"); err != nil || string(text) != "counted\n300\n" {
			t.Errorf("it exports %q, %v; the screen says %q", text, err, d.toast.text)
		}
		if err := os.Remove("run-tally.csv"); err != nil {
			t.Fatal(err)
		}
		d.press("1", "j")
		if d.hides("one more"); own.n != 300 {
			t.Errorf("a key on another panel leads to %d", own.n)
		}
		d.begin()
		d.press("7")
		d.shows("counted 0")
		d.resize(120, 100).press("?")
		d.shows("tally (on its screen)", "one more")
		d.press("esc", "1", "ctrl+p").write("tally").press("enter")
		if d.focus != tallyPanel {
			t.Errorf("the palette leads to %s", d.focus)
		}
	}
}

// without takes a panel away.
func (d *desk) without(id panelID) *desk {
	d.panels = slices.DeleteFunc(d.panels, func(p panel) bool { return p.id == id })
	return d
}

func (d *desk) resize(w, h int) *desk {
	d.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return d
}

// What few panels need reaches them as well: filters, the wheel, esc, text, words of the command line, the clock, and a
// line where there is no room for a border.
func TestPanelHooks(t *testing.T) {
	var got []string
	heard := func(what string) { got = append(got, what) }
	writing, polls := false, 0
	d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
	d.panels = append(d.without(chartsPanel).panels, panel{
		id: tallyPanel, title: func(*model) (title, note string) { return "tally", "" },
		draw: func(*model, *cell.Grid, cell.Rect) {},
		line: func(_ *model, g *cell.Grid, r cell.Rect) { g.Text(r.X, r.Y, r.W, cell.Plain, "in a line") },
		screen: &screen{digit: 7, name: "Tally", place: func(_ *model, b cell.Rect) []placement {
			top, low := b.Top(1)
			return []placement{{tallyPanel, top}, {eventsPanel, low}}
		}},
		group: "tally",
		keys: []binding{
			{keys: []string{"down"}, title: "next", do: func(*model) tea.Cmd { heard("down"); return nil }},
			{keys: []string{"T"}, title: "write", anywhere: true, do: func(*model) tea.Cmd { writing = true; return nil }},
		},
		typing: func() *typing {
			if !writing {
				return nil
			}
			return &typing{func(_ *model, name, text string) tea.Cmd {
				heard("typed " + name + "," + text)
				writing = false
				return nil
			}, [][2]string{{"x", "writes"}}}
		},
		back: func(*model) bool { heard("back"); return true },
		list: &list{name: "tally", entries: "counts", top: func() { heard("top") }},
		commands: []command{{name: "tally", title: "count", do: func(*model, []string) (tea.Cmd, error) {
			heard("command")
			return nil, nil
		}}},
		poll: func(m *model) tea.Cmd {
			if polls++; !m.leads(tallyPanel) {
				return nil
			}
			return func() tea.Msg { return reply(func(*model) tea.Cmd { heard("reply"); return nil }) }
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
	if !slices.Equal(got, []string{"down"}) || !strings.Contains(d.toast.text, "the machines or the counts") {
		t.Errorf("the wheel is heard as %v; / on a chart says %q", got, d.toast.text)
	}
}

// Every panel is registered once with what it must have, and every place of every screen is a registered panel's.
func TestPanelsAreWhole(t *testing.T) {
	d, _ := shelved(t, 200, 50, "")
	seen, digits := map[panelID]bool{}, map[int]bool{}
	for _, p := range d.panels {
		if p.id == "" || p.title == nil || p.draw == nil || seen[p.id] {
			t.Errorf("panel %q has no id, title or drawing, or is there twice", p.id)
		}
		if (len(p.keys) > 0) != (p.group != "") {
			t.Errorf("panel %q has keys without a heading in help, or a heading without keys", p.id)
		}
		if seen[p.id] = true; p.screen == nil {
			continue
		}
		if p.screen.digit < 1 || p.screen.digit > 9 || digits[p.screen.digit] || p.screen.name == "" {
			t.Errorf("panel %q leads a screen without a name or a digit of its own", p.id)
		}
		digits[p.screen.digit] = true
	}
	for i, s := range d.screens() {
		for _, size := range [][2]int{{60, 12}, {80, 24}, {120, 24}, {120, 40}, {200, 50}} {
			d.resize(size[0], size[1]).openScreen(i)
			d.layout()
			for _, p := range append(d.placed, d.everyPanel()...) {
				if !seen[p.panel] {
					t.Errorf("screen %s at %v places %q, which is no panel", s.name, size, p.panel)
				}
			}
		}
	}
}

// TestPlacesOfAPanel counts the places that know a panel with a state: its files, which are its own, and the lines
// beyond them; layouts, which place panels of all kinds, do not count. docs/architecture.md states the number.
func TestPlacesOfAPanel(t *testing.T) {
	page, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		state, names string // what the rest of the workbench could know it by
		files        []string
	}{
		{"runs", "newRuns|runsPanel|overlayPanel|figuresPanel", []string{"runs.go", "runs_read.go", "runs_act.go",
			"runs_folder.go", "runs_measure.go", "runs_race.go", "overlay_runs.go", "overlay_export.go", "panel_runs.go",
			"panel_overlay.go"}},
		{"lane", "newLane", []string{"panel_events.go"}},
		{"fleet", "newFleet|fleetPanel|linksPanel|workerPanel|machinesPanel|historyTiles", []string{"fleet.go", "fleet_act.go", "fleet_keys.go",
			"links.go", "panel_fleet.go", "panel_links.go", "panel_worker.go", "panel_machines.go", "shaper.go"}},
	} {
		known := regexp.MustCompile(fmt.Sprintf(`\b(%s|m\.%[2]s)\b|\*%[2]s\b`, c.names, c.state))
		var lines []string
		for _, name := range sources {
			if slices.Contains(c.files, name) || name == "screens.go" || strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range strings.Split(string(text), "\n") {
				if code, _, _ := strings.Cut(l, "//"); known.MatchString(code) {
					lines = append(lines, name+": "+strings.TrimSpace(l))
				}
			}
		}
		if want := fmt.Sprintf("Places to change for a panel: %d.", 1+len(lines)); !strings.Contains(string(page), want) {
			t.Errorf("docs/architecture.md does not say %q: besides its files, %s is known by\n%s", want, c.state, strings.Join(lines, "\n"))
		}
	}
}

// TestPaletteOrder: what holds the typed letters as a word begins the list; scattered letters come last.
func TestPaletteOrder(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(3, 40), nil)
	p := newPalette(d.model)
	for typed, want := range map[string]string{"lay": "layout ", "undo": "undo your", "charts": "screen Charts", "": "screen Live"} {
		p.set(typed)
		if found := p.matches(); !strings.HasPrefix(found[0].title, want) {
			t.Errorf("%q finds %q first, want %q", typed, found[0].title, want)
		}
	}
	if p.set("lvwr"); len(p.matches()) == 0 {
		t.Error("scattered letters find nothing")
	}
}
