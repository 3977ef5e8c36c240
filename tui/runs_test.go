package tui

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/archive"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/panel/runs"
)

func TestGoldenRuns(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {60, 20}, {80, 24}, {120, 36}, {200, 50}} {
		d, _ := openShelved(t, size[0], size[1], "9 j")
		golden(t, fmt.Sprintf("runs-%dx%d", size[0], size[1]), d.screenText())
	}
}

func TestRunsAreListed(t *testing.T) {
	d, s := openShelved(t, 120, 40, "9")
	names := func() (out []string) {
		for _, x := range d.runs.SortedRows(d.model.Host) {
			out = append(out, x.Name[11:])
		}
		return out
	}
	if got := names(); !slices.Equal(got, []string{"es-0b1c", "quickstart-7f3a", "run-d00d", "cut-ffff"}) {
		t.Errorf("listed %v, want those that run first, then the newest", got)
	}
	// A new run is listed after the next scan, and the cursor stays on its run.
	d.press("j", "j")
	s.list = append(s.list, session.Info{Name: "2026-11-21-new-0001", Dir: "/s/new", Running: true,
		Started: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Phase: event.Waiting})
	d.deliver(d.rescan())
	if len(d.runs.Found[""]) != 4 {
		t.Error("the list is read again at once")
	}
	d.now = d.now.Add(3 * time.Second)
	d.deliver(d.rescan())
	if got := names(); got[0] != "new-0001" || d.runs.Chosen != "/s/2026-11-20-run-d00d" {
		t.Errorf("listed %v, chosen %s", got, d.runs.Chosen)
	}
	// Only while its screen is shown.
	d.press("1")
	d.now = d.now.Add(time.Hour)
	if d.runs.Poll(d.model.Host) != nil {
		t.Error("the list is read while another screen is shown")
	}
}

// rescan runs what a tick of the clock requests.
func (d *desk) rescan() tea.Msg {
	if cmd := d.runs.Poll(d.model.Host); cmd != nil {
		return cmd()
	}
	return nil
}

func TestRunsFilterAndMouse(t *testing.T) {
	d, _ := openShelved(t, 120, 40, "9")
	d.press("/").write("killed").press("enter")
	d.shows("1 of 4 · /killed", "run-d00d", "120 kB", "2026-11-20-run-d00d")
	d.hides("quickstart")
	d.press("/").write("x")
	d.shows(`no run matches "killedx"`)
	for _, k := range []string{"enter", "j", "G"} {
		d.press(k)
	}
	d.press("esc", "G")
	if d.runs.Chosen != "/s/2026-11-20-cut-ffff" {
		t.Errorf("G chooses %s", d.runs.Chosen)
	}
	d.shows("is damaged at byte 77")
	d.Update(tea.MouseClickMsg{X: 10, Y: 5})
	if d.runs.Chosen != "/s/2026-11-20-quickstart-7f3a" {
		t.Errorf("a click on the second row chooses %s", d.runs.Chosen)
	}
}

func TestOpenASession(t *testing.T) {
	// Opening a recording closes the shown run and clears its state.
	d, s := openShelved(t, 120, 40, "m + k j l 1 9 j enter")
	d.take()
	if !slices.Equal(s.opened, []string{"/s/2026-11-20-quickstart-7f3a"}) ||
		!slices.Equal(s.closed, []string{"/s/2026-11-20-es-0b1c"}) {
		t.Fatalf("opened %v, closed %v", s.opened, s.closed)
	}
	if d.Replay == nil || d.Opt.Commander != nil || d.screen != 0 || len(d.rail.Staged) > 0 ||
		d.Window != (panel.Window{}) || d.Live.Position != 0 {
		t.Errorf("replay %v, screen %d, staged %v, window %+v, at record %d", d.Replay != nil, d.screen, d.rail.Staged,
			d.Window, d.Live.Position)
	}
	d.shows("recording", " quickstart-7f3a ")
	if d.Smoothing != 2 {
		t.Error("what the viewer likes is forgotten too")
	}
	d.press("end")
	if d.Live.Progress.Rounds != 60 {
		t.Errorf("at the end of the recording: round %d", d.Live.Progress.Rounds)
	}
	// And back to the running one.
	d.press("9", "g", "enter")
	if d.Replay != nil || d.Opt.Commander == nil || len(s.closed) != 2 || d.Live.Progress.Rounds != 40 ||
		d.WhyNoCommand() != "" {
		t.Errorf("replay %v, closed %v, round %d, %s", d.Replay != nil, s.closed, d.Live.Progress.Rounds,
			d.WhyNoCommand())
	}
}

// TestLateMessagesOfAClosedSession checks that messages of the previous session are not folded into the next one.
func TestLateMessagesOfAClosedSession(t *testing.T) {
	d, _ := openShelved(t, 120, 40, "")
	old, gen := d.Reading, d.Feed.Gen
	d.press("9", "j", "enter")
	d.take()
	at := d.Live.Position
	d.Update(batchMsg{gen: gen, batch: view.Batch{Records: sourcetest.Run(6, 100)}})
	d.Update(snapshotMsg{gen: gen, view: view.New()})
	d.Update(seekMsg{gen: gen, at: 50})
	d.Update(batchMsg{gen: gen, err: errors.New("broken pipe")})
	d.Update(panel.ReceiptMsg{Err: context.Canceled})
	d.Update(scannedMsg{context.Canceled})
	if d.Live.Position != at || d.Feed.Err != nil || d.Toast.Text != "" {
		t.Errorf("at record %d after %d, %v, toast %q", d.Live.Position, at, d.Feed.Err, d.Toast.Text)
	}
	if old.Ctx.Err() == nil || old.Jobs.Run(func() tea.Msg { return tickMsg{} })() != nil {
		t.Error("the jobs of the session before may still run")
	}
}

func TestSessionsThatCannotBeOpened(t *testing.T) {
	d, s := openShelved(t, 120, 40, "9 G enter")
	if len(s.opened) > 0 || !strings.Contains(d.Toast.Text, "cannot be read: session: 000001.log") {
		t.Errorf("opened %v, says %q", s.opened, d.Toast.Text)
	}
	d.press("g", "enter")
	if len(s.opened) > 0 || d.screen != 0 {
		t.Errorf("the session in view is opened again: %v", s.opened)
	}
	s.err = errors.New("the disk is gone")
	d.press("9", "j", "enter")
	if !strings.Contains(d.Toast.Text, "the disk is gone") || d.Feed.Err != nil || d.Reading.Ctx.Err() != nil {
		t.Errorf("says %q", d.Toast.Text)
	}
	for want, s := range map[string]*fakeLibrary{"the disk is gone": {err: errors.New("the disk is gone")},
		"no runs yet": {}} {
		d := open(t, 80, 24, sourcetest.Run(3, 20), func(o *panel.Options) { o.Library = s })
		d.press("9", "j", "enter", "d")
		d.shows(want)
	}
	if d := open(t, 80, 24, sourcetest.Run(3, 20), nil); true {
		d.press("9")
		if d.screen != 0 || !strings.Contains(d.Toast.Text, "1 Live, 2 Fleet, 3 Knobs") {
			t.Errorf("without a library 9 opens screen %d and says %q", d.screen, d.Toast.Text)
		}
	}
}

func TestDeleteAsks(t *testing.T) {
	for _, c := range []struct {
		keys    string
		deleted []string
		says    string
	}{
		{"9 j d n", nil, ""},
		{"9 j d y", []string{"/s/2026-11-20-quickstart-7f3a"}, "deleted quickstart-7f3a"},
		{"9 G d y", []string{"/s/2026-11-20-cut-ffff"}, "deleted"},
		{"9 d y", nil, "copied"}, // y is a key again: nothing was asked
		{"9 d", nil, "es-0b1c is running: stop it first"},
	} {
		d, s := openShelved(t, 120, 40, c.keys)
		if !slices.Equal(s.deleted, c.deleted) || !strings.Contains(d.Toast.Text, c.says) || d.Popup != nil ||
			len(d.runs.Found[""]) != 4-len(c.deleted) {
			t.Errorf("%q deletes %v, says %q, lists %d", c.keys, s.deleted, d.Toast.Text, len(d.runs.Found[""]))
		}
	}
	d, s := openShelved(t, 120, 40, "9 j d")
	d.shows("Delete quickstart-7f3a?", "6.0 MB", "y delete it", "n keep it")
	s.err = errors.New("permission denied")
	if d.press("y"); !strings.Contains(d.Toast.Text, "permission denied") {
		t.Errorf("says %q", d.Toast.Text)
	}
	d, s = openShelved(t, 120, 40, "9 j enter 9 d y")
	if len(s.deleted) > 0 || !strings.Contains(d.Toast.Text, "copied") {
		t.Errorf("the session in view is deleted: %v, %q", s.deleted, d.Toast.Text)
	}
}

// TestBrowseWithoutARun checks that without a run only the list is available, and that esc returns to it from an opened
// run.
func TestBrowseWithoutARun(t *testing.T) {
	d := openLibrary(t, 120, 36, studyLibrary(), "")
	d.shows("▸9 Runs", "no run is open", "seed-1", "sweep-grid/", "2 runs", "q leave")
	for _, key := range []string{"1", "2", "3"} {
		if d.press(key); d.screen != d.HomeScreen() || !strings.Contains(d.Toast.Text, "no run is open") {
			t.Errorf("%s leads to screen %d and says %q", key, d.screen, d.Toast.Text)
		}
	}
	for _, key := range []string{"Z", "k", "f", ":", "esc", "ctrl+p", "esc", "?", "esc", "e", "e", "tab", "tab", "y",
		"]", "b", "+", "0"} {
		d.press(key)
		d.screenText()
	}
	d.press("esc", "g", "/").write("seed-2").press("enter")
	if d.press("enter"); d.Replay == nil || d.screen != 0 || d.Opt.Session != "/s/seed-2" {
		t.Fatalf("enter leads to screen %d of %s, says %q", d.screen, d.Opt.Session, d.Toast.Text)
	}
	d.press("e", "esc")
	if d.screen != 0 {
		t.Error("esc leaves the run before it has closed what is open")
	}
	d.Toast = panel.Toast{}
	if d.press("esc"); d.screen != d.HomeScreen() {
		t.Error("esc does not lead back to the runs")
	}
	d.shows("/seed-2", "1 of 7", "◇") // it looked into the folder too
}

// TestVisibleRunsAreReadFirst checks that the summaries of visible runs are read first, and none twice.
func TestVisibleRunsAreReadFirst(t *testing.T) {
	s := &fakeLibrary{}
	for i := range 300 {
		s.list = append(s.list, session.Info{Name: fmt.Sprintf("run-%03d", i), Dir: fmt.Sprintf("/s/run-%03d", i),
			Phase:   event.Finished,
			Started: time.Date(2026, 11, 20, 0, 0, 300-i, 0, time.UTC)})
	}
	d := openLibrary(t, 80, 24, s, "")
	if len(s.read) != 300 || s.saved != 1 {
		t.Errorf("%d summaries were read, and saved %d times", len(s.read), s.saved)
	}
	for i, dir := range s.read[:20] {
		if dir != s.list[i].Dir {
			t.Fatalf("number %d to be read was %s", i, dir)
		}
	}
	seen := map[string]bool{}
	for _, dir := range s.read {
		if seen[dir] {
			t.Errorf("%s was read twice", dir)
		}
		seen[dir] = true
	}
	// A log that has grown is read again, once it is listed.
	s.list[7].Round = 9
	d.now = d.now.Add(3 * time.Second)
	d.deliver(d.rescan())
	if len(s.read) != 301 || s.read[300] != s.list[7].Dir {
		t.Errorf("read %v besides", s.read[300:])
	}
	if d.now = d.now.Add(time.Second); d.rescan() != nil {
		t.Error("it is listed again at once")
	}
	// A name that another process gives a visible run is read soon.
	s.list[3].About.Name, s.list[200].About.Name = "theirs", "far"
	d.now = d.now.Add(runs.RereadAfter)
	d.deliver(d.rescan())
	d.shows("theirs")
	if n := len(s.read) - 301; n == 0 || n > 24 {
		t.Errorf("%d summaries were read for the sake of a name", n)
	}
}

func TestRunsAreSorted(t *testing.T) {
	d := openLibrary(t, 200, 50, studyLibrary(), "")
	sorted := func(note, want string) {
		t.Helper()
		var got []string
		for _, x := range d.runs.SortedRows(d.model.Host) {
			got = append(got, x.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", note, got, want)
		}
		d.shows(note)
	}
	sorted("live, then last written", "fork seed-1 seed-2 wide begun sweep-grid")
	if d.press("i"); !strings.Contains(d.Toast.Text, "s sorts by a column") {
		t.Errorf("the usual order is reversed, says %q", d.Toast.Text)
	}
	d.press("s")
	sorted("by name", "begun fork seed-1 seed-2 sweep-grid wide")
	d.press("i")
	sorted("by name, reversed", "wide sweep-grid seed-2 seed-1 fork begun")
	d.press("s")
	sorted("by state", "fork seed-1 seed-2 wide begun sweep-grid")
	d.Opt.Settings.Runs = panel.RunList{Sort: "centre_loss"}
	d.runs.Stale = true
	sorted("by centre loss", "seed-2 fork seed-1 wide begun sweep-grid")

	// A click on a heading sorts by it, reverses the order, and restores the usual one.
	lines := strings.Split(d.screenText(), "\n")
	at := strings.Index(lines[3], "test")
	x := cell.Width(lines[3][:at]) + 1
	for _, want := range []string{"by test ", "by test, reversed", "live, then last written"} {
		d.Update(tea.MouseClickMsg{X: x, Y: 3})
		d.shows(want)
	}
}

// TestColumnsAreChosen checks that chosen columns are shown in their order and saved.
func TestColumnsAreChosen(t *testing.T) {
	var saved panel.Settings
	d := openLibrary(t, 120, 36, studyLibrary(), "")
	d.Opt.Keep = func(s panel.Settings) error { saved = s; return nil }
	d.shows("state     algorithm")
	d.press("c", "down", "space") // hides algorithm
	d.shows("usual columns", "the algorithm that ran last")
	d.press("G", "esc")
	d.hides("usual columns", "algorithm  members")
	d.shows("state     model")
	d.deliver(d.rescan())
	if got := saved.Runs.Columns; slices.Contains(got, "algorithm") || !slices.Contains(got, "model") {
		t.Errorf("saved %v", got)
	}
	d.press("c", "D", "esc")
	if d.Opt.Settings.Runs.Columns != nil {
		t.Errorf("the usual columns are saved as %v", d.Opt.Settings.Runs.Columns)
	}
}

// TestNewestRunIsFollowed checks that the newest run stays chosen until the user chooses another one.
func TestNewestRunIsFollowed(t *testing.T) {
	s := studyLibrary()
	d := openLibrary(t, 120, 36, s, "j j F")
	if d.runs.Chosen != "/s/seed-1" {
		t.Errorf("the newest is %s", d.runs.Chosen)
	}
	add := func(name string, at int) {
		s.list = append(s.list, session.Info{Name: name, Dir: "/s/" + name, Phase: event.Finished,
			Started: time.Date(2026, 11, 20, at, 0, 0, 0, time.UTC)})
		d.now = d.now.Add(time.Minute)
		d.deliver(d.rescan())
		d.screenText()
	}
	add("later", 13)
	d.shows("follows the newest")
	if d.runs.Chosen != "/s/later" {
		t.Errorf("the newest is %s", d.runs.Chosen)
	}
	d.press("j")
	chosen := d.runs.Chosen
	if add("last", 14); d.runs.Chosen != chosen {
		t.Errorf("the list moves from %s to %s", chosen, d.runs.Chosen)
	}
}

// TestQueryOfRuns checks that the filter compares columns, and names a wrong word.
func TestQueryOfRuns(t *testing.T) {
	d := openLibrary(t, 120, 36, studyLibrary(), "/")
	names := func() (out string) {
		for _, x := range d.runs.SortedRows(d.model.Host) {
			out += " " + x.Name
		}
		return out
	}
	d.write("model=lenet test_error<1.6 tag:best")
	if got := names(); got != " seed-2" {
		t.Errorf("the query selects%s", got)
	}
	d.press("esc", "/").write("test_eror<1")
	d.shows(`test_eror<1: no column, setting or metric is called "test_eror" (did you mean test_error?)`)
	d.press("esc", "/").write("alg").press("tab")
	if got := d.Filters.Text["runs"]; got != "algorithm=" {
		t.Errorf("alg is completed to %q", got)
	}
}

// TestDetailsFollowTheSelection checks the pane with what the table does not show of the chosen run.
func TestDetailsFollowTheSelection(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 36}, {200, 50}} {
		d := openLibrary(t, size[0], size[1], studyLibrary(), "j j")
		d.shows("settings and results", "as in the paper")
		d.press("k")
		d.hides("as in the paper")
		d.press("j", "space", "space") // two are compared
		d.press("v")
		d.shows("* best")
	}
}

// TestReplayOfARunThatHasEnded checks that a recording is not shown as training, and is paused while the list hides it.
func TestReplayOfARunThatHasEnded(t *testing.T) {
	end := event.Record{At: 2e18, State: &event.State{Phase: event.Finished, Round: 60}}
	d := open(t, 120, 36, nil, func(o *panel.Options) {
		o.Library = studyLibrary()
		o.Source = fastReplay(&memoryLog{rs: append(sourcetest.Run(4, 60), end)})
	})
	d.Toast = panel.Toast{}
	if err := d.Replay.Scan(context.Background()); err != nil {
		t.Fatal(err)
	}
	d.deliver(seekMsg{gen: d.Feed.Gen, at: 40})
	d.shows("▶ replay", "recording, finished")
	d.hides("● training", " left")
	d.Replay.Pause(false)
	d.press("esc")
	if on, _ := d.Replay.Playing(); on || d.screen != d.HomeScreen() {
		t.Errorf("on screen %d the replay plays on: %v", d.screen, on)
	}
	d.press("1", "end")
	d.shows("✓ finished", "recording")
}

// TestFilterMatchesWords checks that a filter matches its words in any order; a matching folder keeps its runs, and
// without any match there is a message.
func TestFilterMatchesWords(t *testing.T) {
	d := openLibrary(t, 120, 36, studyLibrary(), "G enter /")
	d.write("GLYPHS seed-2")
	if rows := d.runs.SortedRows(d.model.Host); len(rows) != 1 || rows[0].Name != "seed-2" {
		t.Errorf("two words pass %v", rows)
	}
	d.press("esc", "/").write("sweep-grid").press("enter")
	d.shows("eta=0.1,seed=1", "eta=0.1,seed=2")
	d.press("/").write(" nowhere").press("enter")
	d.shows(`no run matches "sweep-grid nowhere"`, "esc clear it")
	d.hides("space mark")
}

// TestRunsOfAFolderAreCountedAgain checks that runs that another process adds to a folder are counted.
func TestRunsOfAFolderAreCountedAgain(t *testing.T) {
	s := studyLibrary()
	d := openLibrary(t, 120, 36, s, "")
	d.shows("2 runs")
	dir := "/s/sweep-grid"
	s.folders[dir] = append(s.folders[dir], session.Info{Name: "eta=0.2", Dir: dir + "/eta=0.2", Phase: event.Finished})
	s.touched = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	d.now = d.now.Add(time.Minute)
	d.deliver(d.rescan())
	d.shows("3 runs")
}

// TestNameIsUsedEverywhere checks that the charts and the table use the name that the user gave a run.
func TestNameIsUsedEverywhere(t *testing.T) {
	d := openLibrary(t, 200, 50, studyLibrary(), "j R")
	d.write("the first").press("enter")
	d.screenText()
	if o := &d.runs.Overlay; len(o.Rows) == 0 || o.Rows[0].Name != "the first" {
		t.Errorf("the table has %+v", o.Rows)
	}
}

// TestALongNameIsNotLost checks that a name that is too long is rejected in the dialog and stays there.
func TestALongNameIsNotLost(t *testing.T) {
	s := studyLibrary()
	d := openLibrary(t, 120, 36, s, "j R")
	long := strings.Repeat("long", 200)
	d.write(long).press("enter")
	if e, ok := d.Popup.(*panel.TextDialog); !ok || !strings.Contains(e.Err, "characters") || e.Text() != long ||
		len(s.done) > 0 {
		t.Errorf("after a long name: %T, has done %v", d.Popup, s.done)
	}
}

func TestRunActionRejections(t *testing.T) {
	for keys, says := range map[string]string{
		"g r": "is running: enter attaches", "g d": "is running: stop it first", "j X": "is not running",
		"G d": "is a folder", "G w": "is a folder", "G k r": "", "G k w": "trains no model",
	} {
		s := studyLibrary()
		s.list[4].Data = ""
		d := openLibrary(t, 120, 36, s, keys)
		if !strings.Contains(d.Toast.Text, says) || says != "" && d.Popup != nil || len(s.done) > 0 {
			t.Errorf("%s says %q, and has done %v", keys, d.Toast.Text, s.done)
		}
	}
	var only struct{ panel.Library }
	only.Library = studyLibrary()
	d := openLibrary(t, 120, 36, studyLibrary(), "")
	d.Opt.Library = only
	for _, key := range []string{"r", "X", "w", "R", "t", "n"} {
		if d.press("j", key); !strings.Contains(d.Toast.Text, "read-only from here") || d.Popup != nil {
			t.Errorf("%s says %q", key, d.Toast.Text)
		}
	}
}

// TestRunActions checks that changes of runs are passed to the Keeper after confirmation.
func TestRunActions(t *testing.T) {
	for _, c := range []struct{ keys, text, after, done, says string }{
		{"g X", "", "y", "stop fork", "stopped fork"},
		{"g X", "", "n", "", ""},
		{"j r", "200", "enter", "", "give a round after 200"},
		{"j r", "", "enter", "", "give a round after 200"},
		{"j r", "500", "enter", "resume seed-1 to 500", "seed-1 resumed"},
		{"j r", "500", "esc", "", ""},
		{"j w", "", "", "export seed-1", "model.safetensors: lenet after round 300"},
		{"j R", "the first", "enter", `describe seed-1 "the first" [] ""`, "saved in session seed-1"},
		{"j t", "good, seed7", "enter", `describe seed-1 "" ["good" "seed7"] ""`, "saved in session"},
		{"j t", "good  old", "enter", `describe seed-1 "" ["good" "old"] ""`, "saved in session"},
		{"j j n", ", they say", "enter", `describe seed-2 "" ["best"] "as in the paper, they say"`, "saved in session"},
	} {
		s := studyLibrary()
		d := openLibrary(t, 120, 36, s, c.keys)
		d.write(c.text).press(strings.Fields(c.after)...)
		shown := d.Toast.Text
		if e, ok := d.Popup.(*panel.TextDialog); ok {
			shown = e.Err
		}
		if got := strings.Join(s.done, "; "); got != c.done || !strings.Contains(shown, c.says) {
			t.Errorf("%s %q: has done %q and says %q", c.keys, c.text, got, shown)
		}
		if strings.Contains(c.done, "first") {
			d.shows("the first")
			if d.press("/").write("the first"); len(d.runs.SortedRows(d.model.Host)) != 1 {
				t.Error("a run is not found by the name that it was given")
			}
		}
	}
	s := studyLibrary()
	s.list[0].Phase = event.Stopped // resumes to its present limit
	d := openLibrary(t, 120, 36, s, "j r enter")
	if !slices.Equal(s.done, []string{"resume seed-1 to 0"}) || d.screen != 0 {
		t.Errorf("has done %v, shows screen %d", s.done, d.screen)
	}
	s.err = errors.New("the disk is full")
	if d.press("9", "j", "t", "x", "enter"); !strings.Contains(d.Toast.Text, "the disk is full") {
		t.Errorf("says %q", d.Toast.Text)
	}
}

// TestHintsAfterTheEnd checks the hints after the end of a run.
func TestHintsAfterTheEnd(t *testing.T) {
	for _, w := range []int{80, 120, 200} {
		s := studyLibrary()
		d := open(t, w, 24, append(sourcetest.Run(3, 40),
			event.Record{At: 2e18, State: &event.State{Phase: event.Finished, Round: 40}}),
			func(o *panel.Options) { o.Library = s })
		d.shows("esc", "space compare")
		d.hides("pause")
		if d.press("esc"); d.screen != d.HomeScreen() {
			t.Error("esc does not lead to the runs")
		}
		d.shows("w model file")
	}
	d := open(t, 120, 24, append(sourcetest.Run(3, 40),
		event.Record{At: 2e18, State: &event.State{Phase: event.Finished, Round: 40}}), nil)
	d.shows("brood fork", "brood compare")
}

// travellerLibrary is a shelf with runs of another machine.
type travellerLibrary struct{ *fakeLibrary }

func (travellerLibrary) Travel(archive.Entry) *exec.Cmd { return exec.Command("true") }

// TestReadOnlyOpensNoOtherMachine checks that a read-only workbench does not open the view of another machine, which
// could change its runs.
func TestReadOnlyOpensNoOtherMachine(t *testing.T) {
	r := runs.New()
	e := archive.Entry{Name: "away", Dir: "ssh://lab/away", Host: "lab"}
	r.Found[""], r.Chosen, r.Stale = []archive.Entry{e}, e.Dir, true
	m := &panel.Host{Opt: panel.Options{Library: travellerLibrary{&fakeLibrary{}}}}
	if why := r.WhyNotOpen(m); why != "" {
		t.Errorf("it is refused: %s", why)
	}
	m.Opt.ReadOnly = true
	if why := r.WhyNotOpen(m); !strings.Contains(why, panel.ReadOnlyText) {
		t.Errorf("it is opened: %q", why)
	}
	for _, c := range []struct {
		e    archive.Entry
		want string
	}{{archive.Entry{Name: "lab", Folder: archive.HostFolder, Host: "lab", Asked: true},
		"lab is not a run: choose one below it"}, {archive.Entry{Name: "night", Host: "night", Asked: true}, ""}} {
		r.Found[""], r.Stale = []archive.Entry{c.e}, true
		if why := r.WhyNotMark(m); why != c.want {
			t.Errorf("%+v is not marked since %q, want %q", c.e, why, c.want)
		}
	}
	r.Found[""], r.Stale = []archive.Entry{e}, true
	if _, _, why := r.Changeable(m); r.WhyNotMark(m) != "" || r.NoCurve(e) != runs.RemoteNote(e) || why == "" {
		t.Errorf("a run of a machine is not marked since %q, its curves are not there since %q, and it may be changed",
			r.WhyNotMark(m), r.NoCurve(e))
	}
}

// TestFilterOfUnreadRuns checks that a filter that matches nothing yet says so while runs are read.
func TestFilterOfUnreadRuns(t *testing.T) {
	d, s := openShelved(t, 120, 40, "9")
	d.press("/").write("seed>8").press("enter")
	d.shows(`no run matches "seed>8"`)
	s.list = append(s.list, session.Info{Name: "2026-11-20-new-1111", Dir: "/s/2026-11-20-new-1111", Algorithm: "parle",
		Seed: 9, Started: d.now, Round: 3, Phase: event.Finished, Size: 1e3})
	d.now = d.now.Add(3 * time.Second)
	d.Update(d.rescan())
	d.shows("none of them matches so far")
	d.deliver(d.last())
	d.shows("new-1111")
}
