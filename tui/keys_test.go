package tui

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/replay"
)

func TestHelpNamesEveryKey(t *testing.T) {
	d := open(t, 120, 200, sourcetest.Run(3, 20), func(o *panel.Options) {
		o.Source, o.Library = replay.NewReplay(&memoryLog{rs: sourcetest.Run(3, 20)}), &fakeLibrary{}
	})
	d.press("?")
	s := d.screenText()
	all := d.ownKeys()
	for _, b := range all {
		if b.Group == "" {
			t.Errorf("%v has no group", b.Keys)
		}
	}
	for _, p := range d.panels {
		all = append(all, p.Keys...)
	}
	for _, b := range all {
		if b.Title == "" || !strings.Contains(s, b.Label()) || !strings.Contains(s, b.Title) {
			t.Errorf("help does not show %q, %q", b.Label(), b.Title)
		}
	}
}

// TestKeysAreUnambiguous checks that no key is in two rows that can apply at once, unless the first one takes
// precedence: rows with a condition come first, and those of the focused panel before all others.
func TestKeysAreUnambiguous(t *testing.T) {
	d, _ := openShelved(t, 120, 40, "")
	tables := [][]panel.Binding{d.bindings()}
	for _, p := range d.panels {
		tables = append(tables, p.Keys)
	}
	for _, rows := range tables {
		seen := map[string]bool{}
		for _, b := range rows {
			for _, k := range b.Keys {
				if b.When == nil && seen[k] {
					t.Errorf("%q is bound twice without a condition", k)
				}
				if b.When == nil {
					seen[k] = true
				}
			}
			if slices.Contains(b.Keys, "ctrl+i") || slices.Contains(b.Keys, "ctrl+m") {
				t.Errorf("%v cannot be distinguished from tab or enter", b.Keys)
			}
		}
	}
}

// leaves reports whether the last key left the workbench without a command to the run.
func (d *desk) leaves() bool {
	_, quits := d.last().(tea.QuitMsg)
	return quits && len(d.sent) == 0
}

func TestDispatch(t *testing.T) {
	for _, c := range []struct {
		keys  string
		check func(*desk) bool
	}{
		{"2", func(d *desk) bool { return d.screen == 1 && d.Focus == panel.Fleet }},
		{"3", func(d *desk) bool { return d.screen == 2 }},
		{"3 1", func(d *desk) bool { return d.screen == 0 && d.Focus == panel.Loss }},
		{"9", func(d *desk) bool { return d.screen == 0 && d.Toast.Text != "" }},
		{"tab", func(d *desk) bool { return d.Focus == panel.Knobs }},
		{"tab shift+tab", func(d *desk) bool { return d.Focus == panel.Loss }},
		{"k", func(d *desk) bool { return d.Focus == panel.Knobs && !d.railOpen }},
		{"e", func(d *desk) bool { return d.Expanded }},
		{"e esc", func(d *desk) bool { return !d.Expanded }},
		{"o", func(d *desk) bool { return !d.LogAxis }},
		{"]", func(d *desk) bool { return d.Member == 1 }},
		{"[", func(d *desk) bool { return d.Member == 5 }},
		{"] ] b", func(d *desk) bool { return d.Member == 0 }},
		{"x", func(d *desk) bool { return d.AlertCount() == 0 }},
		{"?", func(d *desk) bool { _, ok := d.Popup.(*help); return ok }},
		{"? esc", func(d *desk) bool { return d.Popup == nil }},
		{"ctrl+p", func(d *desk) bool { _, ok := d.Popup.(*panel.Palette); return ok }},
		{":", func(d *desk) bool { return d.prompt != nil }},
		{": backspace", func(d *desk) bool { return d.prompt == nil }},
		{"space", func(d *desk) bool { return d.sent[0].Action == event.Pause && d.sent[0].By == "ann" }},
		{"s", func(d *desk) bool { return d.sent[0].Action == event.Save }},
		{"X", func(d *desk) bool { return len(d.sent) == 0 && d.Popup != nil }},
		{"X n", func(d *desk) bool { return len(d.sent) == 0 && d.Popup == nil }},
		{"X y", func(d *desk) bool { return d.sent[0].Action == event.Stop }},
		{"q", (*desk).leaves},
		{"ctrl+c", (*desk).leaves},
	} {
		d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
		if d.press(strings.Fields(c.keys)...); !c.check(d) {
			t.Errorf("after %q: focus %s, screen %d, member %d, toast %q, sent %v", c.keys, d.Focus, d.screen, d.Member,
				d.Toast.Text, d.sent)
		}
	}
}

// TestKeysReadOnly checks that with --read-only no key changes the run, a run opened from it, or stored data.
func TestKeysReadOnly(t *testing.T) {
	s := &fakeLibrary{list: recordedOnes()}
	d := open(t, 120, 40, sourcetest.Run(6, 100), func(o *panel.Options) { o.ReadOnly, o.Library = true, s })
	refused := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			d.Toast = panel.Toast{}
			d.press(strings.Fields(k)...)
			if !strings.Contains(d.Toast.Text, "--read-only") || d.Popup != nil {
				t.Errorf("%s says %q", k, d.Toast.Text)
			}
		}
	}
	writing := []string{"space", "s", "X", "k l", "k enter", "a"}
	refused(writing...)
	d.press(":").write("set eta=1").press("enter")
	d.shows("--read-only")
	d.press("esc", "esc")
	d.press("9")
	refused("r", "X", "d", "w", "R", "t", "n")
	for _, running := range []bool{true, false} {
		i := slices.IndexFunc(s.list, func(x session.Info) bool { return x.Running == running && x.Err == "" })
		d.deliver(d.Open(s.list[i].Dir)())
		if d.Opt.Session != s.list[i].Dir || d.Opt.Commander != nil || (d.Replay == nil) != running {
			t.Fatalf("opened %q, may command: %v", d.Opt.Session, d.Opt.Commander != nil)
		}
		if running {
			refused(writing...)
			continue
		}
		d.deliver(d.startReading()())
		refused("B")
	}
	if len(d.sent) > 0 || len(s.done) > 0 || len(s.asked) > 0 || len(s.deleted) > 0 {
		t.Errorf("sent %v, did %q, deleted %q", d.sent, s.done, s.deleted)
	}
}

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		text  string
		check func(*desk) bool
	}{
		{"set eta 0.2", func(d *desk) bool { return d.sent[0].Set[0] == event.Setting{Knob: "eta", Expr: "0.2"} }},
		{"set eta=0.2 alpha=*0.5", func(d *desk) bool {
			return len(d.sent) == 1 && len(d.sent[0].Set) == 2 && d.sent[0].Set[0].Expr == "0.2" &&
				d.sent[0].Set[1].Knob == "alpha" && d.sent[0].Set[1].Expr != "*0.5"
		}},
		{"set eta *0.5", func(d *desk) bool { return d.sent[0].Set[0].Expr == "0.05" }},
		{"set eta+=0.1", func(d *desk) bool { return d.sent[0].Set[0].Expr == "0.2" }},
		{"set members 9", func(d *desk) bool { return d.sent[0].Members == 9 }},
		{"members 9", func(d *desk) bool { return d.sent[0].Members == 9 }},
		{"swap sample", func(d *desk) bool { return d.sent[0].Algorithm == "sample" }},
		{"pause", func(d *desk) bool { return d.sent[0].Action == event.Pause }},
		{"resume", func(d *desk) bool { return d.sent[0].Action == event.Resume }},
		{"save", func(d *desk) bool { return d.sent[0].Action == event.Save }},
		{"stop", func(d *desk) bool { return len(d.sent) == 0 && d.Popup != nil }},
		{"kill w2", func(d *desk) bool { return len(d.sent) == 0 && d.Popup != nil }},
		{"screen 3", func(d *desk) bool { return d.screen == 2 }},
		{"member m3", func(d *desk) bool { return d.Member == 3 }},
		{"help", func(d *desk) bool { return d.Popup != nil }},
		{"50", func(d *desk) bool { return d.Cursor == panel.Cursor{On: true, Round: 50} }},
		{"goto 41%", func(d *desk) bool { return d.Cursor == panel.Cursor{On: true, Round: 41} }},
	} {
		d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
		d.press(":").write(c.text).press("enter")
		if d.prompt != nil || !c.check(d) {
			t.Errorf("%q: prompt %v, sent %+v", c.text, d.prompt, d.sent)
		}
	}
	for text, want := range map[string]string{"fly": "no command", "set eta": "write set",
		"set eta=": "write set KNOB=VALUE", "set =5": "write set KNOB=VALUE",
		"set eta 0.1 0.2": "unexpected", "set eta=1 momentum": "is not KNOB=VALUE",
		"set eta=1 members=3": "members cannot be set with other knobs", "swap x": "no algorithm",
		"goto 101":  "not been reached",
		"members x": "population size", "member 99": "no member", "kill x": "not a worker", "101%": "not a percentage",
		"speed 2": "live run", "screen x": "choose one of", "screen 0": "choose one of"} {
		d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
		if d.press(":").write(text).press("enter"); d.prompt == nil || !strings.Contains(d.prompt.err, want) {
			t.Errorf("%q: %+v, want a sentence with %q", text, d.prompt, want)
		}
	}
}

// TestCompletionCycles checks that tab cycles through the completions if there is no common prefix to add, shift+tab
// backwards, and that any other key accepts the shown one.
func TestCompletionCycles(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
	see := func(want string) {
		t.Helper()
		if got := d.prompt.Text(); got != want {
			t.Errorf("the line is %q, want %q", got, want)
		}
	}
	d.press(":").write("set variant=").press("tab")
	see("set variant=paper")
	d.press("tab")
	see("set variant=arxiv")
	d.press("tab")
	see("set variant=paper")
	d.press("shift+tab").write(" ")
	see("set variant=arxiv ")
	d.press("ctrl+u").write("set e").press("tab")
	see("set eta")
	d.shows("eta  ell")
	d.press("tab")
	see("set ell")
	d.press("ctrl+u").write("set e").press("shift+tab")
	see("set ell")
}

func TestMouseFocuses(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 100), nil)
	d.paint()
	for _, p := range d.Placed {
		d.Update(tea.MouseClickMsg{X: p.Area.X + 3, Y: p.Area.Y + 2})
		if d.Focus != p.Panel {
			t.Errorf("a click on %s focuses %s", p.Panel, d.Focus)
		}
	}
	for _, p := range d.Placed {
		if p.Panel == panel.Knobs {
			if d.Update(tea.MouseClickMsg{X: p.Area.X + 3,
				Y: p.Area.Y + 3}); d.rail.Selected != d.rail.Knobs(d.model.Host)[2].Name {
				t.Errorf("a click on the third knob selects %s", d.rail.Selected)
			}
		}
	}
}

// TestUnknownAlgorithm checks that a run of an algorithm that this binary lacks is shown without its knobs.
func TestUnknownAlgorithm(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 100), func(o *panel.Options) { o.Algorithms = nil })
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
	d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: []event.Record{{At: 1e18 + 41e9,
		Alert: &event.Alert{Round: 400, Level: "error", Kind: "non-finite", Text: long}}}}})
	d.shows("Alerts!2", "x acknowledges", "the loss of member 3")
	d.press("tab", "tab", "tab", "tab", "tab", "e")
	if s := strings.Join(strings.Fields(strings.ReplaceAll(d.screenText(), "│", " ")), " "); !strings.Contains(s,
		strings.TrimSpace(long)) {
		t.Errorf("the expanded lane cuts an error:\n%s", d.screenText())
	}
	d.press("x")
	d.hides("Alerts!", "acknowledges")
}

// TestResolvedAlerts checks that a resolved alert is no longer counted or shown in the one-line list, and stays
// in the list of events.
func TestResolvedAlerts(t *testing.T) {
	d := open(t, 120, 24, sourcetest.Run(6, 100), nil)
	d.press("x")
	text := "block x of member 3 is not finite"
	d.apply(event.Record{Alert: &event.Alert{Round: 100, Level: "error", Kind: event.AlertNonFinite, Text: text}},
		event.Record{State: &event.State{Round: 100, Phase: event.Paused, Reason: "see above"}})
	d.Toast = panel.Toast{}
	d.shows("Alerts!1", "x acknowledges", text)
	d.apply(event.Record{State: &event.State{Round: 100, Phase: event.Training, Reason: "by ann"}})
	d.Toast = panel.Toast{}
	d.hides("acknowledges", text)
	d.shows("training: by ann")
	d.Focus = panel.Events
	d.press("e")
	d.shows(text)
}

// TestSuspend checks that Ctrl-Z suspends the workbench in any state if a shell can resume it. Otherwise, as over SSH,
// it would stop the host of the workbench, and is rejected.
func TestSuspend(t *testing.T) {
	for _, before := range [][]string{nil, {"?"}, {":"}, {"ctrl+p"}} {
		for _, can := range []bool{true, false} {
			d := open(t, 80, 24, sourcetest.Run(3, 20), func(o *panel.Options) { o.Suspend = can })
			d.press(before...)
			cmd := d.key("ctrl+z", "")
			if !can {
				if cmd != nil {
					t.Errorf("with %v open it is suspended, and nothing resumes it", before)
				}
				continue
			}
			if cmd == nil {
				t.Fatalf("with %v open it does not suspend", before)
			}
			if _, ok := cmd().(tea.SuspendMsg); !ok {
				t.Errorf("with %v open ctrl+z does something else", before)
			}
		}
	}
}

// TestPaletteOmitsKeysThatDoNotApply: only a recording has a speed.
func TestPaletteOmitsKeysThatDoNotApply(t *testing.T) {
	live := open(t, 120, 40, sourcetest.Run(3, 20), nil)
	recording := open(t, 120, 40, sourcetest.Run(3, 20), func(o *panel.Options) {
		o.Source = replay.NewReplay(&memoryLog{rs: sourcetest.Run(3, 20)})
	})
	for d, want := range map[*desk]bool{live: false, recording: true} {
		has := slices.ContainsFunc(newPalette(d.model).Choices, func(c panel.PaletteEntry) bool {
			return c.Title == "twice the speed"
		})
		if has != want {
			t.Errorf("recording %v: the palette changes the speed: %v", d.Replay != nil, has)
		}
	}
}

// TestEscGoesBack: esc goes back through the screens that the digits opened, each once, and then to the list of runs.
func TestEscGoesBack(t *testing.T) {
	for keys, want := range map[string][]string{
		"3":       {"Live", "Runs", "Runs"},
		"3 5 2":   {"Network", "Knobs", "Live", "Runs"},
		"3 5 3":   {"Live", "Runs"},
		"3 5 1":   {"Runs"},
		"3 9 1 2": {"Live", "Runs"},
	} {
		d, _ := openShelved(t, 120, 36, keys)
		for _, name := range want {
			d.Toast = panel.Toast{}
			if d.press("esc"); d.screens()[d.screen].Name != name {
				t.Errorf("%q: esc opens %s, want %s", keys, d.screens()[d.screen].Name, name)
			}
		}
	}
}
