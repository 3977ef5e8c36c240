package tui

import (
	"context"
	"flag"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/panel/fleet"
	"brood/tui/panel/runs"
)

var update = flag.Bool("update", false, "rewrite the golden screens")

// desk is a model without a terminal, driven by the test. It stores commands that Update returns instead of running
// them.
type desk struct {
	*model
	t    testing.TB
	last tea.Cmd
	now  time.Time
	sent []event.Command
	say1 func(event.Command) (event.Receipt, error)

	fleet *fleet.Fleet // the states behind panels
	runs  *runs.Runs
}

func (d *desk) Command(_ context.Context, c event.Command) (event.Receipt, error) {
	d.sent = append(d.sent, c)
	if d.say1 != nil {
		return d.say1(c)
	}
	return event.Receipt{ID: c.ID, Accepted: true, Round: 402}, nil
}

func open(t testing.TB, w, h int, rs []event.Record, change func(*panel.Options)) *desk {
	d := &desk{t: t, now: time.Unix(1e9, 0)}
	opt := panel.Options{Source: sourcetest.NewMemory(rs...), Commander: d,
		Algorithms: []*optim.Algorithm{sourcetest.Algorithm()}, By: "ann",
		NoColor: true, Width: w, Height: h, Clock: func() time.Time { return d.now }}
	if change != nil {
		change(&opt)
	}
	d.model = newModel(context.Background(), opt)
	d.fleet, d.runs = fleet.New(), runs.New()
	for _, own := range append(d.fleet.Panels(), d.runs.Panels()...) {
		d.replace(own)
	}
	d.Init()
	d.take()
	return d
}

// replace replaces the panel with the same id, if there is one.
func (d *desk) replace(own panel.Panel) {
	if i := slices.IndexFunc(d.panels, func(p panel.Panel) bool { return p.ID == own.ID }); i >= 0 {
		d.panels[i] = own
	}
}

// take delivers the snapshot that the last seek requested.
func (d *desk) take() {
	at := view.Position(1 << 60)
	if d.Replay != nil {
		at = d.Live.Position
	}
	v, err := d.Opt.Source.Snapshot(context.Background(), at)
	d.Update(snapshotMsg{d.Feed.Gen, v, err})
}

func (d *desk) Update(msg tea.Msg) {
	_, d.last = d.model.Update(msg)
}

// press sends keys as Bubble Tea would. It delivers the result of a key's command if it is a receipt or a seek.
func (d *desk) press(keys ...string) *desk {
	for _, k := range keys {
		d.Update(keyMsg(k))
		d.settle()
	}
	return d
}

func (d *desk) settle() {
	if d.last == nil {
		return
	}
	d.deliver(d.last())
}

func (d *desk) deliver(msg tea.Msg) {
	switch msg := msg.(type) {
	case panel.ReceiptMsg, snapshotMsg, exportedMsg, leaseMsg:
		d.Update(msg)
	case seekMsg, panel.OpenedMsg, branchedMsg, panel.Reply:
		d.Update(msg)
		d.settle()
	case tea.BatchMsg:
		for _, cmd := range msg {
			if cmd != nil {
				d.deliver(cmd())
			}
		}
	case tea.QuitMsg:
		d.last = tea.Quit
	}
}

func (d *desk) write(text string) *desk {
	for _, r := range text {
		d.press(string(r))
	}
	return d
}

func keyMsg(name string) tea.KeyPressMsg {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab,
		"backspace": tea.KeyBackspace, "up": tea.KeyUp, "down": tea.KeyDown,
		"left": tea.KeyLeft, "right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd}
	if name == "space" || name == " " {
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	}
	if c, ok := codes[name]; ok {
		return tea.KeyPressMsg{Code: c}
	}
	if r, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(r[0]), Mod: tea.ModCtrl}
	}
	if name == "shift+left" || name == "shift+right" {
		return tea.KeyPressMsg{Code: codes[name[6:]], Mod: tea.ModShift}
	}
	if name == "shift+tab" {
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

func (d *desk) screenText() string { return d.theme.String(d.paint()) }

func (d *desk) shows(want ...string) {
	d.t.Helper()
	s := d.screenText()
	for _, w := range want {
		if !strings.Contains(s, w) {
			d.t.Errorf("the screen does not show %q:\n%s", w, s)
		}
	}
}

func (d *desk) hides(words ...string) {
	d.t.Helper()
	s := d.screenText()
	for _, w := range words {
		if strings.Contains(s, w) {
			d.t.Errorf("the screen still shows %q:\n%s", w, s)
		}
	}
}

func TestGoldenScreens(t *testing.T) {
	run := sourcetest.Run(6, 400)
	crowd := sourcetest.Run(64, 400)
	pairs, hops := sourcetest.Gossip(8, 400), sourcetest.Partners(sourcetest.Run(16, 400), exponential(16))
	for _, c := range []struct {
		name string
		w, h int
		rs   []event.Record
		keys string
	}{
		{"live", 40, 10, run, ""}, {"live", 60, 12, run, ""}, {"live", 80, 24, run, ""}, {"live", 120, 40, run,
			""}, {"live", 200, 50, crowd, ""},
		{"knobs", 80, 24, run, "3 j j l"}, {"knobs", 120, 40, run, "3 j j j"}, {"knobs", 200, 50, run, "3 j j"},
		{"drawer", 80, 24, run, "k l l j l"}, {"help", 120, 40, run, "?"}, {"palette", 80, 24, run, "ctrl+p"}, {"stop",
			80, 24, run, "X"},
		{"empty", 80, 24, nil, ""}, {"expanded", 80, 24, run, "tab tab e"}, {"short", 120, 24, run, ""},
		{"zoomed", 80, 24, run, "+ + H m"}, {"zoomed", 200, 50, crowd, "+ + m"},
		{"meetings", 80, 24, pairs, "e tab"}, {"meetings", 200, 50, pairs, ""},
		{"meetings-crowd", 80, 24, sourcetest.Gossip(64, 400), "e tab"}, {"meetings-crowd", 200, 50,
			sourcetest.Gossip(64, 400), ""},
		{"meetings-hops", 80, 24, hops, "e tab"}, {"meetings-hops", 200, 50, hops, "] ]"},
		{"population", 80, 24, run, "4 j"}, {"population", 120, 40, pairs,
			"4"}, {"population", 200, 50, crowd, "4 t"},
		{"network", 80, 24, run, "5"}, {"network", 200, 50, crowd, "5"},
		{"machines", 80, 24, run, "6 j j"}, {"machines", 120, 36, run,
			"6 j"}, {"machines", 200, 50, crowd, "6 j j"},
		{"charts", 80, 24, run, "7 j"}, {"charts", 120, 36, run, "7 left"}, {"charts",
			200, 50, crowd, "7"},
		{"charts-alone", 80, 24, run, "7 j enter v"},
		{"alerts", 80, 24, run, "8"}, {"alerts", 120, 40, run, "8 x"},
		{"filtered", 80, 24, run, "tab tab tab / e d i t"}, {"filtered", 120, 40, run, "k / a g"},
	} {
		name := fmt.Sprintf("%s-%dx%d", c.name, c.w, c.h)
		t.Run(name, func(t *testing.T) {
			d := open(t, c.w, c.h, c.rs, nil)
			d.press(strings.Fields(c.keys)...)
			golden(t, name, d.screenText())
		})
	}
}

// golden compares a screen with its file. It also checks that no title of a panel is cut.
func golden(t *testing.T, name, got string) {
	t.Helper()
	for line := range strings.Lines(got) {
		if strings.ContainsAny(line, "╭╮") && strings.Contains(line, "…") {
			t.Errorf("%s has a title that is cut: %s", name, line)
		}
	}
	path := filepath.Join("testdata", name+".golden")
	got += "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s differs (%v); look at it, then go test -update:\n%s", path, err, got)
	}
}

// fits checks that frames of many sizes are as large as the terminal, and ASCII if requested.
func (d *desk) fits(state string) {
	d.t.Helper()
	for i := range 24 {
		w, h := 1+i*37%230, 1+i*23%70
		text := d.resize(w, h).screenText()
		if lines := strings.Split(text, "\n"); len(lines) != h ||
			slices.ContainsFunc(lines, func(l string) bool { return cell.Width(l) != w }) {
			d.t.Fatalf("%s: a frame does not measure %dx%d:\n%s", state, w, h, text)
		}
		if at := strings.IndexFunc(text, func(r rune) bool { return r > 0x7e }); d.Opt.ASCII && at >= 0 {
			d.t.Fatalf("%s: ASCII at %dx%d has %q", state, w, h, text[at:at+3])
		}
	}
}

// TestFramesFitWhateverTheSize checks frames in many states of a run, of the launcher and of a list of runs.
func TestFramesFitWhateverTheSize(t *testing.T) {
	for _, ascii := range []bool{false, true} {
		begin := func(d *desk) *desk {
			d.Opt.ASCII = ascii
			d.restyle()
			return d
		}
		run := begin(open(t, 80, 24, nil, func(o *panel.Options) {
			o.Source, o.Library = &fleetSource{Memory: sourcetest.NewMemory(sourcetest.Gossip(9, 60)...),
				now: fleetOf(12)}, &fakeLibrary{list: recordedOnes()}
		}))
		launcher, _, _ := openLauncher(t, 80, 24, "")
		for d, keys := range map[*desk]string{
			run:             "m k e tab 3 / esc ? 1 9 j d n G / esc 2 v tab l enter esc e tab 1 + H ctrl+p esc : esc X",
			begin(launcher): "G k k enter x esc g enter down q esc ? esc j j enter -",
		} {
			for _, key := range strings.Fields(keys) {
				d.press(key).fits(key)
			}
		}
		for _, keys := range []string{"", "space space space space G enter", "space space left right S", "/ x", "j R",
			"g X", "space space tab e", "space space tab tab e", "?"} {
			begin(openLibrary(t, 80, 24, studyLibrary(), keys)).fits(keys)
		}
	}
	d := open(t, 80, 24, nil, nil)
	if d.resize(0, 0); d.W != 80 || d.H != 24 {
		t.Errorf("a terminal that says 0x0 is taken for %dx%d", d.W, d.H)
	}
}

func TestPanelsDoNotMoveWhileValuesChange(t *testing.T) {
	rs := sourcetest.Run(6, 400)
	d := open(t, 120, 40, rs[:40], nil)
	d.paint()
	before := slices.Clone(d.Placed)
	for i := 40; i < len(rs); i += 50 {
		d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: rs[i:min(len(rs), i+50)]}})
		d.paint()
		if !slices.Equal(before, d.Placed) {
			t.Fatalf("panels moved at record %d", i)
		}
	}
}

func TestPlainOutputs(t *testing.T) {
	rs := sourcetest.Gossip(6, 100)
	rs = append(rs, event.Record{At: 2e18, Alert: &event.Alert{Level: "error", Text: "bad \x1b[31mred\x1b[0m name\x07",
		Member: view.Whole}})
	d := open(t, 120, 40, rs, nil)
	if s := d.screenText(); strings.ContainsAny(s, "\x1b\x07") {
		t.Errorf("without colours there is an escape sequence: %q", s[strings.IndexAny(s, "\x1b\x07"):][:20])
	}
	c := open(t, 120, 40, rs, func(o *panel.Options) { o.NoColor = false })
	if s := c.screenText(); !strings.Contains(s, "\x1b[") {
		t.Errorf("with colours there is no escape sequence")
	}
}

// TestNamedBackgroundStays checks that a background that the user set overrides what the terminal reports.
func TestNamedBackgroundStays(t *testing.T) {
	white, black := color.White, color.Black
	for _, c := range []struct {
		light, fixed bool
		background   color.Color
		dark         bool
	}{{false, false, white, false}, {true, false, black, true}, {false, true, white, true}, {true, true, black,
		false}} {
		d := open(t, 120, 40, sourcetest.Run(3, 20), func(o *panel.Options) {
			o.NoColor, o.Light, o.Fixed = false,
				c.light, c.fixed
		})
		d.Update(tea.BackgroundColorMsg{Color: c.background})
		if want := cell.Coloured(c.dark, false).String(d.paint()); d.screenText() != want {
			t.Errorf("%+v is drawn for the other background", c)
		}
	}
}

func TestFreezeAndFollow(t *testing.T) {
	rs := sourcetest.Run(3, 100)
	d := open(t, 120, 40, rs[:200], nil)
	d.press("f")
	at := d.Shown.Position
	d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: rs[200:]}})
	if d.Shown.Position != at || d.Live.Position != uint64(len(rs)) {
		t.Fatalf("frozen at %d, shows %d; the live view is at %d", at, d.Shown.Position, d.Live.Position)
	}
	d.shows("frozen")
	if d.press("f"); d.Shown != d.Live {
		t.Error("a second f does not follow again")
	}
}

// TestReadCoalesces checks that the reader sends one message for all records of a frame.
func TestReadCoalesces(t *testing.T) {
	rs := sourcetest.Run(3, 50)
	src := sourcetest.NewMemory(rs[:10]...)
	d := open(t, 80, 24, nil, func(o *panel.Options) { o.Source = src })
	src.Append(rs[10:90]...)
	msg := d.read()().(batchMsg)
	if len(msg.batch.Records) != 80 || msg.err != nil {
		t.Errorf("one read brought %d records, %v; want all 80", len(msg.batch.Records), msg.err)
	}
	src.Close()
	d.Update(msg)
	if end := d.read()().(batchMsg); end.err == nil {
		t.Error("a closed source does not end the reading")
	} else if d.Update(end); !d.Feed.Ended || d.Feed.Err != nil {
		t.Errorf("the end is taken for a loss: %v", d.Feed.Err)
	}
}
