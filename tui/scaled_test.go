package tui

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/panel"
)

var screenSizes = [][2]int{{80, 24}, {120, 36}, {200, 50}}

// prose returns the words of each panel, and then those of the lines below them, without line breaks.
func (d *desk) prose() (out string) {
	var lines [][]rune
	for l := range strings.Lines(d.screenText()) {
		lines = append(lines, []rune(strings.TrimRight(l, "\n")))
	}
	take := func(in cell.Rect) {
		for y := in.Y; y < min(in.Y+in.H, len(lines)); y++ {
			if n := len(lines[y]); in.X < n {
				out += string(lines[y][in.X:min(in.X+in.W, n)]) + " "
			}
		}
	}
	for _, p := range d.Placed {
		take(p.Area.Inset())
	}
	take(cell.Rect{Y: len(lines) - 8, W: d.W, H: 8})
	return strings.Join(strings.Fields(out), " ")
}

// TestStepsScaleASchedule checks that steps on a knob with a schedule, and *F typed for it, scale the schedule, and
// that the row and the description show the factor.
func TestStepsScaleASchedule(t *testing.T) {
	for _, size := range screenSizes {
		for _, at := range []string{"k j j j", "3 j j j"} {
			d := open(t, size[0], size[1], sourcetest.Run(6, 400), nil)
			d.press(strings.Fields(at)...)
			for _, c := range []struct{ keys, want, shows string }{
				{"h", "*0.8", "x 0.8*"},
				{"h", "*0.64", "x 0.64*"},
				{"l l", "", ""},
				{"l", "*1.25", "x 1.25*"},
				{"u H", "*0.1", "x 0.1*"},
				{"u enter *0.5 enter", "*0.5", "x 0.5*"},
				{"enter *0.5 enter", "*0.25", "x 0.25*"},
				{"enter /0.5 enter", "*0.5", "x 0.5*"},
				{"l", "*0.64", "x 0.64*"},
				{"u enter linear:9..1@+100 enter h", "linear:9..1@+100,x0.8", "linear:9..1@+100 x 0.8"},
				{"u enter 20 enter", "20", "→ 20*"},
				{"l", "25", "→ 25*"},
			} {
				for _, key := range strings.Fields(c.keys) {
					if len(key) > 1 && key != "enter" {
						d.write(key)
						continue
					}
					d.press(key)
				}
				got, _ := d.rail.StagedExpr("gamma")
				if got != c.want || !strings.Contains(d.prose(), c.shows) {
					t.Errorf("%v %s: %s stages %q, want %q, shown as %q:\n%s", size, at, c.keys, got, c.want, c.shows,
						d.screenText())
				}
			}
			d.press("u", "h", "a")
			if n := len(d.sent); n != 1 || !slices.Equal(d.sent[0].Set, []event.Setting{{Knob: "gamma", Expr: "*0.8"}}) {
				t.Fatalf("sent %+v", d.sent)
			}
			d.apply(event.Record{Edit: &event.Edit{At: 399, Algorithm: "sample", Knob: "gamma", By: "ann", ID: d.sent[0].ID,
				Expr: "exp:100*0.999/round,from0,x0.8", Typed: "exp:100*(1-1/1000)/round,from0,x0.8"}})
			if text := d.prose(); !strings.Contains(text, "exp:100*(1-1/1000)/round x 0.8") || strings.Contains(text, "from0") {
				t.Errorf("%v %s: the scaled schedule is not shown as typed:\n%s", size, at, d.screenText())
			}
		}
	}
}

// TestScaleRefusals checks what scaling refuses: += on a schedule, and a factor that leaves the bounds.
func TestScaleRefusals(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.apply(event.Record{Edit: &event.Edit{
		At:        100,
		Algorithm: "sample",
		Knob:      "eta",
		Expr:      "linear:50..9@900",
		By:        "ann",
	}})
	d.press("k", "j")
	for range 4 {
		d.press("l")
	}
	if e, _ := d.rail.StagedExpr("eta"); e != "*2" || !strings.Contains(d.prose(), "eta = 125 is out of bounds") {
		t.Errorf("four steps up from 50 of 100 stage %q: %+v", e, d.rail.Answer)
	}
	if d.press("u", "L"); d.rail.Staged[0].Expr != "*2" {
		t.Errorf("ten steps up stage %v", d.rail.Staged)
	}
	d.press("u", "enter").write("+=1").press("enter")
	if text := d.prose(); len(d.rail.Staged) > 0 || !strings.Contains(text, "eta follows a schedule: *0.5 scales it") {
		t.Errorf("staged %v", d.rail.Staged)
	}
	d.press("esc", ":").write("set gamma=*0.5 eta=/4").press("enter")
	if got := settingsOf(d.sent); !slices.Equal(got, []string{"gamma x 0.5, eta / 4"}) {
		t.Errorf("sent %q", got)
	}
}

// TestTypingPreviewsAnEdit checks that, while a value is typed, the whole width shows it with its curve, its values and
// what becomes of the schedule in effect: on the rail, on the screen Knobs and on the command line.
func TestTypingPreviewsAnEdit(t *testing.T) {
	for _, size := range screenSizes {
		for _, c := range []struct {
			open, text, values, effect string
		}{
			{"k j j j enter", "*0.5", "now 33.51 +10 % 30.93 end 22.46", "scales the schedule exp:100*0.999/round x 0.5"},
			{"k j j j enter", "20", "now 20 +10 % 20 end 20", "ends the schedule exp:100*0.999/round"},
			{"3 j j j enter", "linear:50..10@+200", "now 50 +10 % 34 end 10", "replaces the schedule exp:100*0.999/round"},
			{"3 j enter", "cosine:0.1..0.02@+400", "now 0.1 +10 % 0.0923", "starts a schedule"},
			{"3 j enter", "cosine:0.1", "now 0.1 +10 % 0.1 end 0.1", "write cosine:FROM..TO@POSITION"},
			{":", "set gamma=*0.5", "now 33.51 +10 % 30.93 end 22.46", "scales the schedule exp:100*0.999/round x 0.5"},
			{":", "set ell=7 gamma=20", "now 20 +10 % 20 end 20", "ends the schedule exp:100*0.999/round"},
			{":", "set eta 0.2", "now 0.2 +10 % 0.2 end 0.2", ":set eta 0.2"},
		} {
			d := open(t, size[0], size[1], sourcetest.Run(6, 400), nil)
			d.press(strings.Fields(c.open)...).write(c.text)
			text := d.prose()
			for _, want := range []string{c.text, c.values, c.effect} {
				if !strings.Contains(text, want) {
					t.Errorf("%v %s %s: the screen lacks %q:\n%s", size, c.open, c.text, want, d.screenText())
				}
			}
		}
	}
	d := open(t, 80, 24, sourcetest.Run(6, 400), nil)
	d.press("k", "j", "j", "j", "enter").write("*0.5")
	golden(t, "typing-80x24", d.screenText())
	d = open(t, 120, 36, sourcetest.Run(6, 400), nil)
	d.press(":").write("set gamma=*0.5")
	golden(t, "typing-set-120x36", d.screenText())
}

// TestFilterFindsAKnobByAnyName checks that / finds a knob by what the screen shows, by what users type and by its
// title.
func TestFilterFindsAKnobByAnyName(t *testing.T) {
	a := sourcetest.Algorithm()
	a.Knobs = append(a.Knobs, optim.Knob{Name: "period", Label: "evolution frequency", Title: "epochs between evolutions",
		Max: 1000, Default: 0.25})
	for _, size := range screenSizes {
		for _, text := range []string{"evolution frequency", "period", "between evo"} {
			d := open(t, size[0], size[1], sourcetest.Run(6, 400),
				func(o *panel.Options) { o.Algorithms = []*optim.Algorithm{a} })
			d.press("k", "/").write(text).press("enter")
			d.shows("▸ evolution frequency", "/"+text)
			if ks := d.rail.Knobs(d.model.Host); len(ks) != 1 || ks[0].Name != "period" {
				t.Errorf("%v: /%s finds %v", size, text, ks)
			}
		}
	}
}

// TestLauncherScalesSchedules checks that steps and *F in the launcher scale the schedule of a line.
func TestLauncherScalesSchedules(t *testing.T) {
	for _, c := range []struct{ keys, want string }{
		{"h", "exp:100*0.999/round,x0.8"},
		{"h h l", "exp:100*0.999/round,x0.8"},
		{"h l", "exp:100*0.999/round"},
		{"enter *0.5 enter", "exp:100*0.999/round,x0.5"},
		{"h enter /2 enter", "exp:100*0.999/round,x0.4"},
		{"enter 7 enter l", "8"},
		{"enter 8 enter enter *0.5 enter", "4"},
	} {
		d, _, l := openLauncher(t, 120, 36, "tab j j")
		for _, key := range strings.Fields(c.keys) {
			if key[0] == '*' || key[0] == '/' {
				d.write(key)
				continue
			}
			d.press(key)
		}
		if got, _ := l.Request.Explicit(panel.LineID{Name: "gamma", Knob: true}, "sample"); got != c.want || l.Err != nil {
			t.Errorf("%s: %q, %v; want %q", c.keys, got, l.Err, c.want)
		}
		if strings.Contains(c.want, ",x0.8") {
			d.shows("x 0.8 exp:100")
		}
	}
}

// TestTourOfTheReadme presses the keys of the tour in README.md in their order, at three sizes. Every key must have the
// effect that the tour promises, and none may be missing here.
func TestTourOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tour, ok1 := strings.Cut(string(text), "\n**Watch.**")
	tour, _, ok2 := strings.Cut(tour, "\n**Replay and verify.**")
	if !ok1 || !ok2 {
		t.Fatal("README.md has no tour from Watch to Replay")
	}
	tour = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(tour, "")
	var keys []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(tour, -1) {
		if word := m[1]; !strings.Contains(word, "brood") && word != "SESSION" {
			keys = append(keys, word)
		}
	}
	for _, size := range screenSizes {
		d, s := openTraining(t, size[0], size[1], "")
		origin := d.Focus
		knob := func() string { return d.rail.SelectedKnob(d.model.Host).Name }
		steps := []struct {
			key string
			ok  func() bool
		}{
			{"?", func() bool { d.shows("knobs: open"); d.press("esc"); return d.Popup == nil }},
			{"k", func() bool { return d.Focus == panel.Knobs && strings.Contains(d.screenText(), "▸ knobs") }},
			{"j", func() bool { d.press("j"); return knob() == "ell" }},
			{"k", func() bool { return knob() == "eta" }},
			{"h", func() bool { e, _ := d.rail.StagedExpr("eta"); return e == "0.08" }},
			{"l", func() bool { return len(d.rail.Staged) == 0 }},
			{"enter", func() bool { return d.rail.Typing != nil }},
			{"cosine:0.1..0.001@+200", func() bool {
				d.press("enter")
				e, _ := d.rail.StagedExpr("eta")
				return e == "cosine:0.1..0.001@+200"
			}},
			{"*0.5", func() bool {
				d.press("u", "j", "j", "enter").write("*0.5").press("enter")
				e, _ := d.rail.StagedExpr("gamma")
				return e == "*0.5"
			}},
			{"a", func() bool { return len(d.rail.Staged) == 0 && d.rail.Answer.Text != "" && !d.rail.Answer.Bad }},
			{"esc", func() bool { return d.Focus == origin }},
			{"left", func() bool { return d.Cursor.On }},
			{"right", func() bool { return len(d.rail.Staged) == 0 }},
			{"B", func() bool { d.press("y"); return len(s.asked) == 1 }},
			{"q", func() bool { _, quits := d.last().(tea.QuitMsg); return quits }},
		}
		var want []string
		for _, c := range steps {
			want = append(want, c.key)
		}
		if !slices.Equal(keys, want) {
			t.Fatalf("the tour has the keys %q, this test %q", keys, want)
		}
		for _, c := range steps {
			if len(c.key) == 1 || c.key == "enter" || c.key == "esc" || c.key == "left" || c.key == "right" {
				d.press(c.key)
			} else if d.rail.Typing != nil {
				d.write(c.key)
			}
			if !c.ok() {
				t.Fatalf("%v: %s does not do what the tour says; %q:\n%s", size, c.key, d.Toast.Text, d.screenText())
			}
		}
	}
}
