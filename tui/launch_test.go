package tui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/testutil"
	"brood/runtime/timeline"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/panel/runs"
)

// launchLibrary is a library in memory that starts runs of the sample algorithm.
type launchLibrary struct {
	*fakeLibrary
	drafts   int
	asked    []panel.Request // for estimates
	begun    []panel.Request
	refuse   error // of Begin
	estimate func(context.Context, panel.Request) panel.Estimate
}

func (s *launchLibrary) Draft(r panel.Request) (d panel.Draft) {
	s.drafts++
	d.Command = "brood run " + r.Preset
	for _, name := range slices.Sorted(maps.Keys(r.Options)) {
		d.Command += " --" + name + " " + r.Options[name]
	}
	v := view.New()
	v.Edits = []view.Edit{{Edit: event.Edit{Algorithm: "sample", Knob: "gamma", Expr: "exp:100*0.999/round",
		By: "preset"}}}
	for _, x := range r.Knobs["sample"] {
		d.Command += " --set " + x.Knob + "=" + x.Expr
		e := event.Edit{Algorithm: "sample", Knob: x.Knob, Expr: x.Expr}
		if _, err := timeline.New(sourcetest.Algorithm(), []event.Edit{e}); err != nil {
			d.Err, d.At = err, panel.LineID{Name: x.Knob, Knob: true}
			return d
		}
		v.Edits = append(v.Edits, view.Edit{Edit: e})
	}
	line := func(name, value, doc string, words ...string) {
		if text, given := r.Options[name]; given {
			value = text
		}
		d.Lines = append(d.Lines, panel.FormLine{Name: name, Value: value, Doc: doc, Words: words})
	}
	line(panel.PresetLine, r.Preset, "Quick start", "leader", "parity", "quickstart")
	line("model", "mlp-small", "model by name", "lenet", "mlp-small", "softmax")
	line("members", "4", "size of the population")
	line("rounds", "1500", "stop after this many rounds")
	for name, text := range r.Options {
		if n, err := strconv.Atoi(text); (name == "rounds" || name == "members") && (err != nil || n < 1) {
			d.Err, d.At = fmt.Errorf("--%s %s: give 1 or more", name, text), panel.LineID{Name: name}
		}
		if name == "rounds" {
			d.Limit.Rounds, _ = strconv.ParseUint(text, 10, 64)
		}
	}
	if d.Limit.Rounds == 0 {
		d.Limit.Rounds = 1500
	}
	d.Knobs = v.Resolve(sourcetest.Algorithm())
	return d
}

func (s *launchLibrary) Estimate(ctx context.Context, r panel.Request) panel.Estimate {
	s.asked = append(s.asked, r)
	if s.estimate != nil {
		return s.estimate(ctx, r)
	}
	return panel.Estimate{Model: "mlp-small", Data: "glyphs", Members: 4, Parameters: 50890, Memory: 95.4e6, Took: 18}
}

func (s *launchLibrary) Begin(_ context.Context, r panel.Request) (panel.Opened, error) {
	s.begun = append(s.begun, r)
	return panel.Opened{Session: "/s/2026-11-22-quickstart-1234",
		Source: sourcetest.NewMemory(sourcetest.Run(4, 20)...), Commander: &desk{}}, s.refuse
}

// openLauncher opens the launcher with an estimate.
func openLauncher(t testing.TB, w, h int, keys string) (*desk, *launchLibrary, *runs.Launch) {
	s, l := &launchLibrary{fakeLibrary: &fakeLibrary{list: recordedOnes()}}, runs.NewLaunch()
	d := open(t, w, h, sourcetest.Run(6, 100), func(o *panel.Options) { o.Library = s })
	d.replace(l.Panel())
	d.press("9", "N")
	d.awaitEstimate()
	d.press(strings.Fields(keys)...)
	return d, s, l
}

// awaitEstimate advances the clock until an estimate is requested.
func (d *desk) awaitEstimate() {
	d.now = d.now.Add(time.Second)
	if cmd := d.pollPanels(); cmd != nil {
		d.deliver(cmd())
	}
}

func TestGoldenLauncher(t *testing.T) {
	one, two, ends := [][2]int{{80, 24}}, [][2]int{{80, 24}, {200, 50}}, [][2]int{{60, 20}, {200, 50}}
	for _, c := range []struct {
		name, keys string
		sizes      [][2]int
	}{
		{"launch", "j j j", ends}, {"launch-typing", "j enter s o", one}, {"launch-refused", "j j j enter 0", one},
		{"launch-knobs", "j j j j j l j enter 0 . 5 enter G", two},
	} {
		for _, size := range c.sizes {
			d, _, _ := openLauncher(t, size[0], size[1], c.keys)
			if c.name == "launch-knobs" {
				d.awaitEstimate()
			}
			golden(t, fmt.Sprintf("%s-%dx%d", c.name, size[0], size[1]), d.screenText())
		}
	}
}

func TestLaunch(t *testing.T) {
	d, s, _ := openLauncher(t, 80, 24, "j j j enter")
	d.write("300").press("enter")
	d.shows("300*", "brood run quickstart --rounds 300", "previous: 95.4 MB")
	d.press("G", "enter")
	if len(s.begun) != 1 || s.begun[0].Preset != "quickstart" ||
		!maps.Equal(s.begun[0].Options, map[string]string{"rounds": "300"}) {
		t.Fatalf("began %+v", s.begun)
	}
	if d.Opt.Session != "/s/2026-11-22-quickstart-1234" || d.screen != 0 || d.Focus != panel.Loss {
		t.Errorf("it is at %s, screen %d, focus %s", d.Opt.Session, d.screen, d.Focus)
	}
	d.shows("2026-11-22-quickstart-1234 started")
	d.press("9", "N") // the values are kept
	d.shows("300*", "brood run quickstart --rounds 300")
}

// TestLaunchCancel checks that esc leaves the form without a run and that it keeps its values.
func TestLaunchCancel(t *testing.T) {
	d, s, l := openLauncher(t, 80, 24, "j l enter x esc")
	if got := l.Request.Options["model"]; got != "softmax" {
		t.Errorf("after a canceled value the model is %q, want the one before", got)
	}
	if d.press("esc"); d.Focus != panel.Runs || len(s.begun) > 0 {
		t.Errorf("focus %s, began %v", d.Focus, s.begun)
	}
	d.shows("quickstart-7f3a")
	d.press(":").write("new").press("enter")
	d.shows("softmax*", "--model softmax")
	d.press("u")
	d.hides("softmax")
	d.press("l", "j", "l", "U")
	d.hides("*  ", "--")
	d.press("1", "9")
	if d.Focus != panel.Runs {
		t.Errorf("the screen of runs comes back with the focus on %s", d.Focus)
	}
}

// TestLaunchInvalidValues checks that an invalid value is reported on its line while it is typed, and that the run does
// not start.
func TestLaunchInvalidValues(t *testing.T) {
	d, s, l := openLauncher(t, 80, 24, "j j j enter 0")
	d.shows("--rounds 0: give 1 or more", "invalid: see rounds")
	d.press("enter", "G", "enter")
	if !strings.Contains(d.Toast.Text, "--rounds 0: give 1 or more") || len(s.begun) > 0 {
		t.Errorf("it says %q and began %v", d.Toast.Text, s.begun)
	}
	asked := len(s.asked)
	if d.awaitEstimate(); len(s.asked) != asked {
		t.Error("what is refused is estimated")
	}
	d.press("k", "k", "enter")
	if l.Chosen() != (panel.LineID{Name: "alpha", Knob: true}) {
		t.Fatalf("at %v", l.Chosen())
	}
	d.press("esc", "g", "j", "j", "j", "u", "G", "k", "k")
	d.press("enter").write("2").press("enter")
	d.shows("alpha = 2 is out of bounds")
	d.press("u")
	d.hides("out of bounds")
	s.estimate = func(context.Context, panel.Request) panel.Estimate {
		return panel.Estimate{Err: errors.New("a run with 4 members needs about 9 GiB of memory"),
			At: panel.LineID{Name: "members"}}
	}
	d.press("g", "j", "j", "l")
	d.awaitEstimate()
	d.shows("a run with 4 members needs", "invalid: see members")
	if d.press("G", "enter"); len(s.begun) > 0 {
		t.Error("an invalid request was started")
	}
	s.estimate, s.refuse = nil, errors.New("the disk is full")
	d.press("g", "j", "j", "u", "G", "enter")
	d.shows("the disk is full", "start a run")
	if l.Starting || len(s.begun) != 1 {
		t.Errorf("after a failure it still begins: %v", l.Starting)
	}
}

// TestLaunchEstimates checks that an estimate is requested after typing stops; an outdated one is canceled and its
// answer dropped.
func TestLaunchEstimates(t *testing.T) {
	d, s, l := openLauncher(t, 80, 24, "")
	d.shows("95.4 MB of memory, last run 18 s; 4 members")
	d.press("j", "j", "l", "l")
	if l.Poll(d.model.Host) != nil {
		t.Error("it requests an estimate while the user types")
	}
	d.now = d.now.Add(time.Second)
	began := make(chan struct{}, 1)
	s.estimate = func(ctx context.Context, _ panel.Request) panel.Estimate {
		began <- struct{}{}
		<-ctx.Done()
		return panel.Estimate{Memory: 1, Err: ctx.Err()}
	}
	job, late := l.Poll(d.model.Host), make(chan tea.Msg, 1)
	go func() { late <- job() }()
	testutil.Receive(t, began, "estimate")
	d.shows("previous: 95.4 MB")
	s.estimate = nil
	d.press("l")
	d.Update(testutil.Receive(t, late, "end of the estimate"))
	if l.Fresh() {
		t.Error("an estimate of before is taken for the new one")
	}
	d.awaitEstimate()
	if !l.Fresh() || s.asked[len(s.asked)-1].Options["members"] != "7" {
		t.Errorf("fresh %v, asked %+v", l.Fresh(), s.asked)
	}
	d.press("l", "esc")
	n := len(s.asked)
	if d.awaitEstimate(); len(s.asked) != n {
		t.Error("it estimates while the form is hidden")
	}
}

// TestNoEstimateWhileStarting checks that no estimate runs while a run starts, since it would compete for the
// processor.
func TestNoEstimateWhileStarting(t *testing.T) {
	d, s, l := openLauncher(t, 80, 24, "j j j l")
	s.refuse = errors.New("the disk is full")
	d.press("G")
	begin, n := l.Enter(d.model.Host), len(s.asked)
	if d.awaitEstimate(); len(s.asked) != n {
		t.Error("it estimates while the run begins")
	}
	d.deliver(begin())
	if d.awaitEstimate(); len(s.asked) == n {
		t.Error("after a failure the estimate stays away")
	}
}

// TestLaunchSteps checks that a step from an integer gives an integer that parses again, however large.
func TestLaunchSteps(t *testing.T) {
	for _, c := range [][3]string{{"900000", "l", "1000000"}, {"1000000", "l", "1250000"},
		{"1250000", "h", "1000000"}} {
		d, _, l := openLauncher(t, 80, 24, "j j j enter")
		d.write(c[0]).press("enter", c[1])
		if got := l.Request.Options["rounds"]; got != c[2] || l.Err != nil {
			t.Errorf("%s: after %s rounds come %q, want %s (%v)", c[1], c[0], got, c[2], l.Err)
		}
	}
}

// TestLaunchSwitchesColumns checks that tab moves to the knobs, of which those that fit are shown, and back to the last
// option.
func TestLaunchSwitchesColumns(t *testing.T) {
	d, _, l := openLauncher(t, 80, 24, "j j")
	option := l.Chosen()
	d.press("tab")
	if k := l.Knobs(); l.Chosen() != (panel.LineID{Name: k[0].Name, Knob: true}) {
		t.Errorf("tab goes to %v", l.Chosen())
	}
	rows := strings.Split(d.screenText(), "\n")
	if at := slices.IndexFunc(rows, func(r string) bool { return strings.Contains(r, "of sample ") }); at < 0 ||
		len(l.Knobs()) < 3 {
		t.Errorf("no heading of %d knobs", len(l.Knobs()))
	}
	d.press("j", "tab")
	if l.Chosen() != option {
		t.Errorf("back to %v, want %v", l.Chosen(), option)
	}
	if d.press("tab"); l.Chosen() != (panel.LineID{Name: l.Knobs()[1].Name, Knob: true}) {
		t.Errorf("again to %v", l.Chosen())
	}
	if d.press("G", "tab"); l.Chosen() != option {
		t.Errorf("from the last line to %v", l.Chosen())
	}
}

// TestRequestsAreValues checks that a request that was passed on is not modified.
func TestRequestsAreValues(t *testing.T) {
	a := panel.Request{Preset: "x"}.With(panel.LineID{Name: "rounds"}, "",
		"3").With(panel.LineID{Name: "eta", Knob: true}, "sample", "1")
	b := a.With(panel.LineID{Name: "rounds"}, "", "4").With(panel.LineID{Name: "eta", Knob: true}, "sample",
		"2").Without(panel.LineID{Name: panel.PresetLine}, "")
	c := b.Without(panel.LineID{Name: "rounds"}, "").Without(panel.LineID{Name: "eta", Knob: true}, "sample")
	if fmt.Sprint(a) != "{x map[rounds:3] map[sample:[{eta 1}]]}" ||
		fmt.Sprint(b) != "{ map[rounds:4] map[sample:[{eta 2}]]}" || fmt.Sprint(c) != "{ map[] map[]}" {
		t.Errorf("%v, %v, %v", a, b, c)
	}
}

func TestLaunchRejections(t *testing.T) {
	for _, c := range []struct {
		change func(*panel.Options)
		keys   string
		want   string
	}{
		{func(o *panel.Options) { o.Library, o.ReadOnly = &launchLibrary{fakeLibrary: &fakeLibrary{}}, true }, "9 N",
			panel.ReadOnlyText},
		{func(o *panel.Options) { o.Library = &fakeLibrary{} }, "9 N", "no run can be started from here"},
		{func(o *panel.Options) { o.Library = nil }, ": n e w enter", "no run can be started from here"}, // over SSH
	} {
		d := open(t, 120, 36, sourcetest.Run(3, 20), c.change)
		d.press(strings.Fields(c.keys)...)
		if d.shows(c.want); d.Focus == panel.Launch {
			t.Errorf("%s: it opens", c.keys)
		}
	}
}

func TestLaunchByMouseAndPalette(t *testing.T) {
	d, s, l := openLauncher(t, 120, 36, "")
	d.paint()
	for _, r := range l.Rows {
		d.Update(tea.MouseClickMsg{X: r.At.X + 4, Y: r.At.Y})
		if l.Chosen() != r.Of {
			t.Errorf("a click on %v chooses %v", r.Of, l.Chosen())
		}
	}
	d.press("esc", "1", "ctrl+p")
	d.write("new: start").press("enter")
	if d.Focus != panel.Launch || len(s.begun) > 0 {
		t.Errorf("the palette leads to %s", d.Focus)
	}
	d.press("g", "enter")
	if d.Update(tea.PasteMsg{Content: "mine.toml"}); l.Request.Preset != "mine.toml" {
		t.Errorf("pasted, the preset is %q", l.Request.Preset)
	}
}

// TestClearUnsetLines checks that clearing a line without a value does nothing, for every kind of line.
func TestClearUnsetLines(t *testing.T) {
	for _, at := range []panel.LineID{{Name: "eta", Knob: true}, {Name: "members"}, {Name: panel.PresetLine}} {
		if r := (panel.Request{}).Without(at, "parle"); r.Preset != "" || len(r.Knobs)+len(r.Options) != 0 {
			t.Errorf("without %v there is %+v", at, r)
		}
	}
}
