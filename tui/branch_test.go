package tui

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/testutil"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// openTaped opens a recording of 400 rounds at round 200 whose session is in the library.
func openTaped(t testing.TB, keys string) (*desk, *fakeLibrary) {
	r := fastReplay(&memoryLog{rs: sourcetest.Run(6, 400)})
	if err := r.Scan(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := &fakeLibrary{list: recordedOnes(), branch: func(context.Context, panel.Branch) (panel.Opened, error) {
		return panel.Opened{Session: "/s/fork-1", Source: sourcetest.NewMemory(sourcetest.Run(6, 8)...),
			Commander: &desk{}}, nil
	}}
	d := open(t, 80, 24, nil, func(o *panel.Options) {
		o.Source, o.Commander, o.Library, o.Session = r, nil, s,
			s.list[0].Dir
	})
	d.press(":").write("200").press("enter")
	if d.Live.Progress.Rounds != 200 {
		t.Fatalf("the cursor is at round %d", d.Live.Progress.Rounds)
	}
	r.Pause(false)
	d.press(strings.Fields(keys)...)
	return d, s
}

func (s *fakeLibrary) Checkpoints(string) ([]uint64, error) { return s.checkpoints, s.err }

func TestBranchAtTheCursor(t *testing.T) {
	d, s := openTaped(t, "k j l B")
	d.shows("It sets", "0.125.", "y after round 200", "n cancel")
	if on, _ := d.Replay.Playing(); on || len(s.asked) > 0 {
		t.Errorf("while it asks: playing %v, asked %v", on, s.asked)
	}
	d.press("y")
	if len(s.asked) != 1 || s.asked[0].Session != "/s/2026-11-20-quickstart-7f3a" || s.asked[0].At != 200 ||
		!slices.Equal(s.asked[0].Set, []event.Setting{{Knob: "eta", Expr: "0.125"}}) || s.asked[0].By != "ann" {
		t.Fatalf("asked for %+v", s.asked)
	}
	if d.Replay != nil || d.Opt.Session != "/s/fork-1" || d.Opt.Commander == nil || len(d.rail.Staged) > 0 ||
		d.branching != nil {
		t.Errorf("session %s, staged %v", d.Opt.Session, d.rail.Staged)
	}
	d.shows("fork-1 branched off after round 200 of quickstart-7f3a")
	for _, keys := range []string{"B n", "B esc"} {
		if d, s := openTaped(t, keys); len(s.asked) > 0 || d.Popup != nil {
			t.Errorf("%q branches: %v", keys, s.asked)
		}
	}
}

// TestBranchProgressAndCancel checks that the progress of recomputing is shown and that esc cancels.
func TestBranchProgressAndCancel(t *testing.T) {
	d, s := openTaped(t, "B")
	reached := make(chan func(uint64))
	s.branch = func(ctx context.Context, b panel.Branch) (panel.Opened, error) {
		reached <- b.Progress
		<-ctx.Done()
		return panel.Opened{}, ctx.Err()
	}
	d.Update(keyMsg("y"))
	wait, end := d.last, make(chan tea.Msg, 1)
	go func() { end <- wait() }()
	progress := testutil.Receive(t, reached, "branch")
	d.shows("branch: looking for the nearest checkpoint", "esc cancels")
	progress(150)
	d.shows("recomputing round 150 of 200", "█")
	golden(t, "branch-80x24", d.screenText())
	if d.press("B"); d.Popup != nil || !strings.Contains(d.Toast.Text, "being prepared") {
		t.Errorf("a second branch: %q", d.Toast.Text)
	}
	d.press("esc")
	d.Update(testutil.Receive(t, end, "end of the branch"))
	if d.branching != nil || d.Replay == nil || d.Toast.Text != "the branch was canceled" {
		t.Errorf("after esc: %q", d.Toast.Text)
	}
}

func TestBranchErrors(t *testing.T) {
	d, s := openTaped(t, "k j l B")
	s.branch = func(context.Context, panel.Branch) (panel.Opened, error) {
		return panel.Opened{}, errors.New("data glyphs has digest a, but the session was recorded on b")
	}
	d.press("y")
	d.shows("data glyphs has digest a")
	if d.Replay == nil || d.branching != nil || len(d.rail.Staged) != 1 || d.Reading.Ctx.Err() != nil {
		t.Errorf("a branch that came to nothing changes what is shown: staged %v", d.rail.Staged)
	}
}

func TestBranchRejections(t *testing.T) {
	d, _ := openTaped(t, "home B")
	if !strings.Contains(d.Toast.Text, "no round here to branch after") {
		t.Errorf("at the beginning it says %q", d.Toast.Text)
	}
	d, _ = openTaped(t, "")
	d.Opt.Library = nil
	for keys, want := range map[string]string{"B": "not among the sessions", "k l": "this is a recording"} {
		d.Toast = panel.Toast{}
		if d.press(strings.Fields(keys)...); !strings.Contains(d.Toast.Text, want) {
			t.Errorf("without a library %s says %q", keys, d.Toast.Text)
		}
	}
	d, s := openTaped(t, "k l a")
	if text := strings.Join(strings.Fields(d.screenText()), " "); !strings.Contains(text, d.Toast.Text) {
		t.Errorf("the screen does not show all of %q:\n%s", d.Toast.Text, text)
	}
	if len(d.rail.Staged) > 0 || !strings.Contains(d.rail.Answer.Text, "population of its parent") ||
		!strings.Contains(d.Toast.Text, "B starts a new run") || len(s.asked) > 0 {
		t.Errorf("members staged %v, %q; apply says %q", d.rail.Staged, d.rail.Answer.Text, d.Toast.Text)
	}
}

// openTraining opens a live run at round 100 whose session is on this machine, with a checkpoint at 63.
func openTraining(t testing.TB, w, h int, keys string) (*desk, *fakeLibrary) {
	d, s := openShelved(t, w, h, "")
	s.checkpoints = []uint64{21, 63}
	s.branch = func(_ context.Context, b panel.Branch) (panel.Opened, error) {
		return panel.Opened{Session: "/s/fork-1", Source: sourcetest.NewMemory(sourcetest.Run(6, 110)...),
			Commander: &desk{}}, nil
	}
	d.press(strings.Fields(keys)...)
	return d, s
}

// TestBranchOfALiveRun checks that B in a live run asks with the newest round and starts a branch with the staged
// knobs. The parent receives no command.
func TestBranchOfALiveRun(t *testing.T) {
	d, s := openTraining(t, 80, 24, "k j l B")
	d.shows("It sets eta =", "parent continues", "y after round 100  recomputes 37 rounds",
		"c after round  63  a checkpoint: recomputes nothing")
	golden(t, "branch-live-80x24", d.screenText())
	if len(s.asked) > 0 {
		t.Errorf("it asks, and has started %v", s.asked)
	}
	d.press("y")
	want := panel.Branch{Session: s.list[1].Dir, At: 100, Set: []event.Setting{{Knob: "eta", Expr: "0.125"}}}
	if len(s.asked) != 1 || s.asked[0].Session != want.Session || s.asked[0].At != want.At ||
		!slices.Equal(s.asked[0].Set, want.Set) {
		t.Fatalf("asked for %+v", s.asked)
	}
	if len(d.sent) > 0 {
		t.Errorf("the parent was sent %v", d.sent)
	}
	if d.Opt.Session != "/s/fork-1" || len(d.rail.Staged) > 0 || d.branching != nil {
		t.Errorf("session %s, staged %v", d.Opt.Session, d.rail.Staged)
	}
	d.shows("fork-1 branched off after round 100 of")
	if d, s := openTraining(t, 80, 24, "k j l B n"); len(s.asked) > 0 || len(d.rail.Staged) != 1 {
		t.Errorf("n branches: %v, or forgets: %v", s.asked, d.rail.Staged)
	}
}

func TestBranchCost(t *testing.T) {
	const none, exact = "", "y after round 100  a checkpoint: recomputes nothing"
	for _, c := range []struct {
		checkpoints []uint64
		exact, near string
	}{
		{nil, "y after round 100  recomputes 100 rounds", none},
		{[]uint64{40, 99, 120}, "y after round 100  recomputes 1 round, < 1 s", "c after round  99  a checkpoint"},
		{[]uint64{40, 100}, exact, none},
		{[]uint64{90, 105}, "y after round 100  recomputes 10 rounds", "C after round 105  a checkpoint"},
		{[]uint64{120}, "y after round 100  recomputes 100 rounds", "C after round 120  a checkpoint"},
		{[]uint64{250}, "y after round 100  recomputes 100 rounds", none},
	} {
		d, s := openTraining(t, 80, 24, "")
		s.checkpoints = c.checkpoints
		d.press("B")
		d.shows(c.exact, c.near)
		if c.near == none {
			d.hides("c after round", "C after round")
			continue
		}
		at, err := strconv.ParseUint(strings.Fields(c.near)[3], 10, 64)
		if d.press(c.near[:1]); err != nil || len(s.asked) != 1 || s.asked[0].At != at {
			t.Errorf("with checkpoints at %v %s branches at %+v", c.checkpoints, c.near[:1], s.asked)
		}
	}
	d, s := openTraining(t, 80, 24, "")
	s.checkpoints = []uint64{40, 100}
	d.press("B").shows(exact)
	d.Checkpoints = []uint64{40} // the run has removed the other one
	d.shows("y after round 100  recomputes 60 rounds", "c after round  40  a checkpoint")

	d, s = openTraining(t, 80, 24, "")
	s.err = errors.New("the checkpoints cannot be listed")
	if d.press("B"); d.Popup != nil || !strings.Contains(d.Toast.Text, "cannot be listed") {
		t.Errorf("it says %q", d.Toast.Text)
	}
}

func TestBranchOfALiveRunRejections(t *testing.T) {
	for name, c := range map[string]struct {
		keys, want string
		change     func(*desk)
	}{
		"elsewhere": {"B", "is not on this machine", func(d *desk) { d.Opt.Session = "" }},
		"no list":   {"B", "is not on this machine", func(d *desk) { d.Opt.Library = nil }},
		"read-only": {"B", "--read-only", func(d *desk) { d.Opt.ReadOnly = true }},
		"members":   {"k l B", "unstage the new size", nil},
		"the list":  {"9 B", "open the run with enter", nil},
	} {
		d, s := openTraining(t, 120, 40, "")
		if c.change != nil {
			c.change(d)
		}
		if d.press(strings.Fields(c.keys)...); !strings.Contains(d.Toast.Text, c.want) || d.Popup != nil ||
			len(s.asked) > 0 {
			t.Errorf("%s: it says %q", name, d.Toast.Text)
		}
	}
	d := open(t, 80, 24, nil, func(o *panel.Options) { o.Library, o.Session = &fakeLibrary{}, "/s/new" })
	if d.press("B"); !strings.Contains(d.Toast.Text, "no round here") {
		t.Errorf("before the first round it says %q", d.Toast.Text)
	}
}
