package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

func TestHelpNamesEveryKey(t *testing.T) {
	d := open(t, 120, 200, sourcetest.Run(3, 20), func(o *Options) { o.Source, o.Library = NewReplay(&tape{rs: sourcetest.Run(3, 20)}), &shelf{} })
	d.press("?")
	s := d.screenText()
	for _, b := range bindings() {
		if !strings.Contains(s, b.label()) || !strings.Contains(s, b.title) {
			t.Errorf("help does not show %q, %q", b.label(), b.title)
		}
		if b.group == "" || b.title == "" {
			t.Errorf("%v has no group or title", b.keys)
		}
	}
}

// A key must not be in two rows that can apply at once, unless the first is meant to win: rows with a condition come first.
func TestKeysAreUnambiguous(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range bindings() {
		for _, k := range b.keys {
			if b.when == nil && seen[k] {
				t.Errorf("%q is bound twice without a condition", k)
			}
			if b.when == nil {
				seen[k] = true
			}
		}
		if slices.Contains(b.keys, "ctrl+i") || slices.Contains(b.keys, "ctrl+m") {
			t.Errorf("%v cannot be told from tab or enter", b.keys)
		}
	}
}

func TestDispatch(t *testing.T) {
	for _, c := range []struct {
		keys  string
		check func(*desk) bool
	}{
		{"2", func(d *desk) bool { return d.screen == 1 && d.focus == "fleet" }},
		{"3", func(d *desk) bool { return d.screen == 2 }},
		{"3 1", func(d *desk) bool { return d.screen == 0 && d.focus == "loss" }},
		{"9", func(d *desk) bool { return d.screen == 0 && d.toast.text != "" }},
		{"tab", func(d *desk) bool { return d.focus == "knobs" }},
		{"tab shift+tab", func(d *desk) bool { return d.focus == "loss" }},
		{"k", func(d *desk) bool { return d.focus == "knobs" && !d.drawer }},
		{"e", func(d *desk) bool { return d.expanded }},
		{"e esc", func(d *desk) bool { return !d.expanded }},
		{"o", func(d *desk) bool { return !d.logAxis }},
		{"]", func(d *desk) bool { return d.member == 1 }},
		{"[", func(d *desk) bool { return d.member == 5 }},
		{"] ] b", func(d *desk) bool { return d.member == 0 }},
		{"x", func(d *desk) bool { return d.alerts() == 0 }},
		{"?", func(d *desk) bool { _, ok := d.overlay.(*help); return ok }},
		{"? esc", func(d *desk) bool { return d.overlay == nil }},
		{"ctrl+p", func(d *desk) bool { _, ok := d.overlay.(*palette); return ok }},
		{":", func(d *desk) bool { return d.prompt != nil }},
		{": backspace", func(d *desk) bool { return d.prompt == nil }},
		{"space", func(d *desk) bool { return d.sent[0].Action == event.Pause && d.sent[0].By == "ann" }},
		{"s", func(d *desk) bool { return d.sent[0].Action == event.Save }},
		{"X", func(d *desk) bool { return len(d.sent) == 0 && d.overlay != nil }},
		{"X n", func(d *desk) bool { return len(d.sent) == 0 && d.overlay == nil }},
		{"X y", func(d *desk) bool { return d.sent[0].Action == event.Stop }},
	} {
		d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
		if d.press(strings.Fields(c.keys)...); !c.check(d) {
			t.Errorf("after %q: focus %s, screen %d, member %d, toast %q, sent %v", c.keys, d.focus, d.screen, d.member, d.toast.text, d.sent)
		}
	}
}

func TestLeavingDoesNotStop(t *testing.T) {
	for _, k := range []string{"q", "ctrl+c"} {
		d := open(t, 80, 24, sourcetest.Run(3, 20), nil)
		d.press(k)
		if _, ok := d.last().(tea.QuitMsg); !ok || len(d.sent) > 0 {
			t.Errorf("%s: quits %v, sent %v", k, ok, d.sent)
		}
	}
}

func TestDrawerOpensWhereTheRailHasNoPlace(t *testing.T) {
	d := open(t, 80, 24, sourcetest.Run(3, 20), nil)
	if d.press("k"); !d.drawer {
		t.Error("k does not open the drawer")
	}
	if d.press("esc"); d.drawer || d.focus == "knobs" {
		t.Errorf("esc leaves drawer %v, focus %s", d.drawer, d.focus)
	}
}

func TestStagedAppliedEffective(t *testing.T) {
	rs := sourcetest.Run(6, 400)
	d := open(t, 120, 40, rs, nil)
	d.press("k", "l", "l", "j", "l", "j", "enter").write("*0.5").press("enter")
	d.shows("6 → 8*", "0.1 → 0.125*", "10 → 5*", "3 staged")
	if len(d.sent) != 0 {
		t.Fatalf("turning sent %v", d.sent)
	}
	d.press("a")
	c := d.sent[0]
	if len(d.sent) != 1 || c.Members != 8 || !slices.Equal(c.Set, []event.Setting{{Knob: "eta", Expr: "0.125"}, {Knob: "ell", Expr: "5"}}) || c.By != "ann" || c.ID == 0 {
		t.Fatalf("sent %+v, want one transaction", d.sent)
	}
	d.shows("accepted, effective from round 403")
	d.hides("0.125*", "5*")
	d.Update(batchMsg{gen: d.feed.gen, batch: view.Batch{Records: []event.Record{{At: 1e18 + 41e9, Edit: &event.Edit{At: 402, Algorithm: "sample", Knob: "eta", Expr: "0.125", By: "ann"}}}}})
	d.shows("→ 0.125 @403")
	d.Update(batchMsg{gen: d.feed.gen, batch: view.Batch{Records: []event.Record{{At: 1e18 + 41e9, Commit: &event.Commit{To: 404, Rounds: 4, Progress: event.Progress{Rounds: 404}}}}}})
	d.shows("eta            0.125", "in effect since round 403")
}

func TestRefusalKeepsWhatIsStaged(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.say1 = func(c event.Command) (event.Receipt, error) {
		return event.Receipt{ID: c.ID, Reason: "eta must be below 1"}, nil
	}
	d.press("k", "j", "L", "a")
	d.shows("refused: eta must be below 1", "0.1 → 1*")
	d.say1 = func(event.Command) (event.Receipt, error) { return event.Receipt{}, errors.New("the pipe is broken") }
	d.press("a")
	d.shows("not sent: the pipe is broken", "0.1 → 1*")
	d.press("u")
	d.hides("1*")
}

func TestTypingChecksBounds(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.press("k", "j", "j", "enter").write("0").press("enter")
	d.shows("out of bounds")
	if d.rail.typing == nil || len(d.rail.staged) != 0 {
		t.Error("a bad value is staged, or what was typed is lost")
	}
	d.press("backspace").write("linear:5..50@800").press("enter")
	if e, _ := d.rail.of("ell"); e != "linear:5..50@800" {
		t.Errorf("staged %q", e)
	}
}

func TestStepsAreRoundAndBounded(t *testing.T) {
	a := sourcetest.Algorithm()
	eta, ell, alpha, variant := a.Knobs[0], a.Knobs[1], a.Knobs[3], a.Knobs[4]
	for _, c := range []struct {
		knob string
		from float64
		up   bool
		want float64
	}{
		{"eta", 0.02, true, 0.025}, {"eta", 0.1, false, 0.08}, {"eta", 0.03, true, 0.032}, {"eta", 100, true, 100}, {"eta", 0, true, 0.001}, {"eta", 1e-9, false, 0},
		{"ell", 1, false, 1}, {"ell", 3, true, 4}, {"ell", 25, true, 32}, {"ell", 10000, true, 10000},
		{"alpha", 0.75, true, 0.76}, {"alpha", 1, true, 1}, {"alpha", 0, false, 0},
		{"variant", 1, true, 1}, {"variant", 1, false, 0},
	} {
		k := eta
		switch c.knob {
		case "ell":
			k = ell
		case "alpha":
			k = alpha
		case "variant":
			k = variant
		}
		if got := step(k, c.from, c.up); got != c.want {
			t.Errorf("%s: from %g up %v is %g, want %g", c.knob, c.from, c.up, got, c.want)
		}
	}
	x := 0.02
	for range 10 {
		x = step(eta, x, true)
	}
	if x != 0.2 {
		t.Errorf("ten steps from 0.02 lead to %g, want a decade", x)
	}
}

func TestWithoutCommanderKeysSayWhy(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 100), func(o *Options) { o.Commander = nil })
	for _, keys := range []string{"space", "k l", "k enter", "a", "X"} {
		d.toast = toast{}
		d.press(strings.Fields(keys)...)
		if !strings.Contains(d.toast.text, "looking only") || d.overlay != nil {
			t.Errorf("%s says %q", keys, d.toast.text)
		}
	}
}

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		text  string
		check func(*desk) bool
	}{
		{"set eta 0.2", func(d *desk) bool { return d.sent[0].Set[0] == event.Setting{Knob: "eta", Expr: "0.2"} }},
		{"set eta *0.5", func(d *desk) bool { return d.sent[0].Set[0].Expr == "0.05" }},
		{"set members 9", func(d *desk) bool { return d.sent[0].Members == 9 }},
		{"members 9", func(d *desk) bool { return d.sent[0].Members == 9 }},
		{"swap sample", func(d *desk) bool { return d.sent[0].Algorithm == "sample" }},
		{"pause", func(d *desk) bool { return d.sent[0].Action == event.Pause }},
		{"resume", func(d *desk) bool { return d.sent[0].Action == event.Resume }},
		{"save", func(d *desk) bool { return d.sent[0].Action == event.Save }},
		{"stop", func(d *desk) bool { return len(d.sent) == 0 && d.overlay != nil }},
		{"kill w2", func(d *desk) bool { return len(d.sent) == 0 && d.overlay != nil }},
		{"screen 3", func(d *desk) bool { return d.screen == 2 }},
		{"member m3", func(d *desk) bool { return d.member == 3 }},
		{"help", func(d *desk) bool { return d.overlay != nil }},
	} {
		d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
		d.press(":").write(c.text).press("enter")
		if d.prompt != nil || !c.check(d) {
			t.Errorf("%q: prompt %v, sent %+v", c.text, d.prompt, d.sent)
		}
	}
	for text, want := range map[string]string{"fly": "no command", "set eta": "write set", "swap x": "no algorithm", "goto 5": "live run", "members x": "population size", "member 99": "no member", "kill x": "no worker", "50%": "live run", "speed 2": "live run", "screen x": "choose one of", "screen 4": "choose one of"} {
		d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
		if d.press(":").write(text).press("enter"); d.prompt == nil || !strings.Contains(d.prompt.err, want) {
			t.Errorf("%q: %+v, want a sentence with %q", text, d.prompt, want)
		}
	}
}

func TestCompletion(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
	for text, want := range map[string]string{"se": "set ", "set e": "set e", "set al": "set alpha ", "set variant p": "set variant paper ", "swap s": "swap sample ", "screen k": "screen knobs ", "zz": "zz"} {
		d.prompt = &prompt{}
		d.prompt.set(text)
		if d.press("tab"); d.prompt.text() != want {
			t.Errorf("%q completes to %q, want %q", text, d.prompt.text(), want)
		}
	}
}

func TestPaletteFindsAndDoes(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
	d.press("ctrl+p").write("scrknob").press("enter")
	if d.screen != 2 || d.overlay != nil {
		t.Errorf("screen %d, overlay %v", d.screen, d.overlay)
	}
	d.press("ctrl+p").write("member").press("enter")
	if d.prompt == nil || d.prompt.text() != "members " {
		t.Errorf("a command with arguments opens %+v", d.prompt)
	}
}

func TestMouseFocuses(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
	d.paint()
	for _, p := range d.placed {
		d.Update(tea.MouseClickMsg{X: p.at.X + 3, Y: p.at.Y + 2})
		if d.focus != p.panel {
			t.Errorf("a click on %s focuses %s", p.panel, d.focus)
		}
	}
	for _, p := range d.placed {
		if p.panel == "knobs" {
			if d.Update(tea.MouseClickMsg{X: p.at.X + 3, Y: p.at.Y + 3}); d.rail.cursor != 2 {
				t.Errorf("a click on the third knob chooses %d", d.rail.cursor)
			}
		}
	}
	if d.Update(tea.MouseClickMsg{X: 14, Y: 1}); d.screen != 1 {
		t.Error("a click on a screen's name does not open it")
	}
}

// A knob of an algorithm that this binary does not know is no reason to fail: what the log says is still shown.
func TestUnknownAlgorithm(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 100), func(o *Options) { o.Algorithms = nil })
	d.press("k", "j", "j", "l", "2", "j")
	d.press(":").write("set eta 0.2").press("enter")
	if len(d.sent) != 1 || d.sent[0].Set[0].Expr != "0.2" {
		t.Errorf("sent %+v: the coordinator can judge what this binary cannot", d.sent)
	}
	d.shows("members")
}

func TestAlertsStayUntilAcknowledged(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	long := strings.Repeat("the loss of member 3 is not finite ", 6)
	d.Update(batchMsg{gen: d.feed.gen, batch: view.Batch{Records: []event.Record{{At: 1e18 + 41e9, Alert: &event.Alert{Round: 400, Level: "error", Kind: "non-finite", Text: long}}}}})
	d.shows("2 alerts", "the loss of member 3")
	d.press("tab", "tab", "tab", "tab", "tab", "e")
	if s := strings.Join(strings.Fields(strings.ReplaceAll(d.screenText(), "│", " ")), " "); !strings.Contains(s, strings.TrimSpace(long)) {
		t.Errorf("the expanded lane cuts an error:\n%s", d.screenText())
	}
	d.press("x")
	d.hides("2 alerts", "acknowledges")
}

// An alert whose cause is over steps back: it is counted no more and leaves the one line, and stays in the lane.
func TestAnsweredAlertsStepBack(t *testing.T) {
	d := open(t, 80, 24, sourcetest.Run(6, 100), nil)
	d.press("x")
	text := "block x of member 3 is not finite"
	d.apply(event.Record{Alert: &event.Alert{Round: 100, Level: "error", Kind: event.AlertNonFinite, Text: text}}, event.Record{State: &event.State{Round: 100, Phase: event.Paused, Reason: "see above"}})
	d.toast = toast{}
	d.shows("1 alert, x acknowledges", text)
	d.apply(event.Record{State: &event.State{Round: 100, Phase: event.Training, Reason: "by ann"}})
	d.toast = toast{}
	d.hides("acknowledges", text)
	d.shows("training: by ann")
	d.focus = "events"
	d.press("e")
	d.shows(text)
}

// On a screen an epoch is a pass over the data, and nothing else.
func TestEpochMeansOneThing(t *testing.T) {
	d := open(t, 200, 50, sourcetest.Run(6, 100), nil)
	d.shows("plan 1: sample with 6 members on 3 workers (start)")
	if n := strings.Count(d.screenText(), "epoch"); n != 1 {
		t.Errorf("it says epoch %d times:\n%s", n, d.screenText())
	}
}

// A staged schedule is drawn and written whole before it is applied, and refused where it is over.
func TestStagedScheduleIsShown(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
		d := open(t, size[0], size[1], sourcetest.Run(6, 400), nil)
		d.press("k", "j", "enter").write("cosine:0.1..0.001@200").press("enter")
		if a := d.rail.answer; !a.bad || !strings.Contains(a.text, "is over by round 401: write @+200") || len(d.rail.staged) != 0 {
			t.Errorf("a schedule that is over is staged: %+v, %v", a, d.rail.staged)
		}
		d.press("esc")
		const expr = "piecewise:+0=0.1,+100=0.02,+200=0.01,+300=0.005,+400=0.001"
		d.press("enter").write(expr).press("enter")
		d.shows("1 staged   a apply")
		for _, p := range d.placed {
			if p.panel == "knobs" {
				d.shows(wrap(expr, p.at.Inset().W-2)...)
			}
		}
		d.press("3")
		d.shows("piecewise:+0=0.1")
	}
	d := open(t, 200, 50, sourcetest.Run(6, 400), nil)
	d.press("3", "tab", "j")
	spark := func() string {
		g := d.paint()
		for y := range g.H {
			line := strings.Split(d.theme.String(g), "\n")[y]
			if strings.Contains(line, "eta") {
				return line
			}
		}
		return ""
	}
	before := spark()
	d.press("enter").write("linear:0.1..0.001@+200").press("enter")
	if after := spark(); before == after {
		t.Errorf("the row of eta does not change")
	}
}
