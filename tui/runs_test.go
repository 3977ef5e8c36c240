package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/optim"
	"brood/runtime/compare"
	"brood/runtime/event"
	"brood/runtime/library"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
)

// shelf is a library in memory. Running sessions are attached to, others replayed.
type shelf struct {
	list    []session.Info
	folders map[string][]session.Info
	records map[string][]event.Record // by directory: what its log holds, for those that are laid over each other
	err     error
	scans   int
	touched time.Time // when a run was added to the folders
	read    []string  // directories, in the order in which summaries were asked for
	saved   int
	opened  []string
	closed  []string
	deleted []string
	done    []string // what a keeper was asked for
	branch  func(context.Context, Branch) (Opened, error)
	asked   []Branch
	nearest uint64 // checkpoint, as a branch is told
}

func (s *shelf) Scan(_ context.Context, folder string) (out []library.Entry, err error) {
	s.scans++
	list := s.list
	if folder != "" {
		list = s.folders[folder]
	}
	for _, x := range list {
		out = append(out, library.Entry{Name: x.Name, Dir: x.Dir, Bytes: 1 + int64(x.Round), Written: x.Started, Running: x.Running})
	}
	for dir := range s.folders {
		if folder == "" {
			out = append(out, library.Entry{Name: filepath.Base(dir), Dir: dir, Folder: "sweep", Written: cmp.Or(s.touched, time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC))})
		}
	}
	library.Sort(out)
	return out, s.err
}

func (s *shelf) Summary(e library.Entry) library.Summary {
	s.read = append(s.read, e.Dir)
	sum := library.Summary{Info: session.Info{Name: e.Name, Dir: e.Dir}, Loss: math.NaN(), Runs: len(s.folders[e.Dir])}
	for _, list := range append(slices.Collect(maps.Values(s.folders)), s.list) {
		if i := slices.IndexFunc(list, func(x session.Info) bool { return x.Dir == e.Dir }); i >= 0 {
			sum.Info = list[i]
		}
	}
	for _, r := range s.records[e.Dir] {
		if r.Config != nil {
			sum.Parent = r.Config.Parent
		}
	}
	if sum.Round > 5 {
		sum.Members, sum.Series, sum.Loss, sum.Curve = 4, view.CentreLoss, 1/float64(sum.Seed+1), []float64{2, 1, 0.7, 0.5, math.NaN(), 0.3, 0.2, 1 / float64(sum.Seed+1)}
	}
	return sum
}

// Curves writes the records as the real writer does, and reads them back.
func (s *shelf) Curves(e library.Entry) (*compare.Run, error) {
	if s.err != nil || s.records[e.Dir] == nil {
		return nil, errors.Join(s.err, fmt.Errorf("session %s %w: there is nothing to compare", e.Name, compare.ErrNoRound))
	}
	tmp, err := os.MkdirTemp("", "shelf-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, e.Name)
	w, err := session.Create(dir)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.Append(s.records[e.Dir]...), w.Close()); err != nil {
		return nil, err
	}
	run, err := compare.Read(dir)
	if err == nil {
		run.Dir = e.Dir
	}
	return run, err
}

func (s *shelf) Save() error { s.saved++; return s.err }

func (s *shelf) Resume(_ context.Context, dir string, limit event.Limit) (Opened, error) {
	s.done = append(s.done, fmt.Sprintf("resume %s to %d", filepath.Base(dir), limit.Rounds))
	return Opened{Session: dir, Source: sourcetest.NewMemory(sourcetest.Run(2, 40)...), Commander: &desk{}}, s.err
}

func (s *shelf) Stop(_ context.Context, dir string) error {
	s.done = append(s.done, "stop "+filepath.Base(dir))
	return s.err
}

func (s *shelf) Export(_ context.Context, dir string) (string, error) {
	s.done = append(s.done, "export "+filepath.Base(dir))
	return "model.safetensors: lenet after round 300", s.err
}

func (s *shelf) Describe(_ context.Context, dir string, a session.About) error {
	s.done = append(s.done, fmt.Sprintf("describe %s %q %q %q", filepath.Base(dir), a.Name, a.Tags, a.Note))
	for i := range s.list {
		if s.list[i].Dir == dir && s.err == nil {
			s.list[i].About = a
		}
	}
	return s.err
}

func (s *shelf) Open(_ context.Context, dir string) (Opened, error) {
	i := slices.IndexFunc(s.list, func(x session.Info) bool { return x.Dir == dir })
	if s.err != nil || i < 0 {
		return Opened{}, errors.Join(s.err, fmt.Errorf("there is no %s", dir))
	}
	s.opened = append(s.opened, dir)
	o := Opened{Session: dir, Close: func() error { s.closed = append(s.closed, dir); return nil }}
	if s.list[i].Running {
		o.Source, o.Commander = sourcetest.NewMemory(sourcetest.Run(2, 40)...), &desk{}
	} else {
		o.Source = fast(&tape{rs: sourcetest.Run(4, 60)})
	}
	return o, nil
}

func (s *shelf) Delete(_ context.Context, dir string) error {
	s.deleted = append(s.deleted, dir)
	s.list = slices.DeleteFunc(s.list, func(x session.Info) bool { return x.Dir == dir })
	return s.err
}

func (s *shelf) Branch(ctx context.Context, b Branch) (Opened, error) {
	s.asked = append(s.asked, b)
	return s.branch(ctx, b)
}

func recordedOnes() []session.Info {
	err := 2.5
	at := func(h int) time.Time { return time.Date(2026, 11, 20, h, 30, 0, 0, time.UTC) }
	return []session.Info{
		{Name: "2026-11-20-quickstart-7f3a", Dir: "/s/2026-11-20-quickstart-7f3a", Algorithm: "parle", Model: "mlp-small", Data: "glyphs", Seed: 1, Started: at(12), Round: 300, Phase: event.Finished, TestError: &err, TestRound: 300, Size: 6e6},
		{Name: "2026-11-20-es-0b1c", Dir: "/s/2026-11-20-es-0b1c", Running: true, Algorithm: "openai-es", Model: "lenet", Data: "mnist", Seed: 7, Started: at(9), Round: 12840, Phase: event.Training, Size: 41e6},
		{Name: "2026-11-20-run-d00d", Dir: "/s/2026-11-20-run-d00d", Algorithm: "dp-sgd", Model: "softmax", Data: "glyphs", Seed: 2, Started: at(11), Round: 5, Phase: event.Training, Size: 120e3},
		{Name: "2026-11-20-cut-ffff", Dir: "/s/2026-11-20-cut-ffff", Started: at(10), Err: "session: 000001.log is damaged at byte 77 (frame 3): its checksum is wrong", Size: 999},
	}
}

func shelved(t testing.TB, w, h int, keys string) (*desk, *shelf) {
	s := &shelf{list: recordedOnes()}
	d := open(t, w, h, sourcetest.Run(6, 100), func(o *Options) {
		o.Library, o.Session = s, s.list[1].Dir
		o.Close = func() error { s.closed = append(s.closed, s.list[1].Dir); return nil }
	})
	d.now = time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	d.press(strings.Fields(keys)...)
	return d, s
}

func TestGoldenRuns(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {60, 20}, {80, 24}, {120, 36}, {200, 50}} {
		d, _ := shelved(t, size[0], size[1], "9 j")
		golden(t, fmt.Sprintf("runs-%dx%d", size[0], size[1]), d.screenText())
	}
}

func TestRunsAreListed(t *testing.T) {
	d, s := shelved(t, 120, 40, "9")
	names := func() (out []string) {
		for _, x := range d.runs.sorted(d.model) {
			out = append(out, x.Name[11:])
		}
		return out
	}
	if got := names(); !slices.Equal(got, []string{"es-0b1c", "quickstart-7f3a", "run-d00d", "cut-ffff"}) {
		t.Errorf("listed %v, want those that run first, then the newest", got)
	}
	// A run that begins is listed after a while, and the cursor stays where it was.
	d.press("j", "j")
	s.list = append(s.list, session.Info{Name: "2026-11-21-new-0001", Dir: "/s/new", Running: true, Started: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Phase: event.Waiting})
	d.deliver(d.relisted())
	if len(d.runs.found[""]) != 4 {
		t.Error("the list is read again at once")
	}
	d.now = d.now.Add(3 * time.Second)
	d.deliver(d.relisted())
	if got := names(); got[0] != "new-0001" || d.runs.chosen != "/s/2026-11-20-run-d00d" {
		t.Errorf("listed %v, chosen %s", got, d.runs.chosen)
	}
	// Only while its screen is shown.
	d.press("1")
	d.now = d.now.Add(time.Hour)
	if d.runs.poll(d.model) != nil {
		t.Error("the list is read while another screen is shown")
	}
}

// relisted is what a tick of the clock reads.
func (d *desk) relisted() tea.Msg {
	if cmd := d.runs.poll(d.model); cmd != nil {
		return cmd()
	}
	return nil
}

func TestRunsFilterAndMouse(t *testing.T) {
	d, _ := shelved(t, 120, 40, "9")
	d.press("/").write("killed").press("enter")
	d.shows("1 of 4 · /killed", "run-d00d", "seed 2  120 kB  2026-11-20-run-d00d")
	d.hides("quickstart")
	d.press("/").write("x")
	d.shows(`no run holds "killedx"`)
	for _, k := range []string{"enter", "j", "G"} {
		d.press(k)
	}
	d.press("esc", "G")
	if d.runs.chosen != "/s/2026-11-20-cut-ffff" {
		t.Errorf("G chooses %s", d.runs.chosen)
	}
	d.shows("is damaged at byte 77")
	d.Update(tea.MouseClickMsg{X: 10, Y: 5})
	if d.runs.chosen != "/s/2026-11-20-quickstart-7f3a" {
		t.Errorf("a click on the second row chooses %s", d.runs.chosen)
	}
}

func TestOpenASession(t *testing.T) {
	// A recording: the run that was shown is left, and nothing of it stays.
	d, s := shelved(t, 120, 40, "m + k j l 1 9 j enter")
	d.take()
	if !slices.Equal(s.opened, []string{"/s/2026-11-20-quickstart-7f3a"}) || !slices.Equal(s.closed, []string{"/s/2026-11-20-es-0b1c"}) {
		t.Fatalf("opened %v, closed %v", s.opened, s.closed)
	}
	if d.replay == nil || d.opt.Commander != nil || d.screen != 0 || len(d.rail.staged) > 0 || d.window != (window{}) || d.live.Position != 0 {
		t.Errorf("replay %v, screen %d, staged %v, window %+v, at record %d", d.replay != nil, d.screen, d.rail.staged, d.window, d.live.Position)
	}
	d.shows("recording", "2026-11-20-quickstart-7f3a")
	if d.smoothing != 2 {
		t.Error("what the viewer likes is forgotten too")
	}
	d.press("end")
	if d.live.Progress.Rounds != 60 {
		t.Errorf("at the end of the recording: round %d", d.live.Progress.Rounds)
	}
	// And back to the running one.
	d.press("9", "g", "enter")
	if d.replay != nil || d.opt.Commander == nil || len(s.closed) != 2 || d.live.Progress.Rounds != 40 || d.mayCommand() != "" {
		t.Errorf("replay %v, closed %v, round %d, %s", d.replay != nil, s.closed, d.live.Progress.Rounds, d.mayCommand())
	}
}

// What the session before still sends must not be folded into another.
func TestLateMessagesOfASessionThatWasLeft(t *testing.T) {
	d, _ := shelved(t, 120, 40, "")
	old, gen := d.reading, d.feed.gen
	d.press("9", "j", "enter")
	d.take()
	at := d.live.Position
	d.Update(batchMsg{gen: gen, batch: view.Batch{Records: sourcetest.Run(6, 100)}})
	d.Update(snapshotMsg{gen: gen, view: view.New()})
	d.Update(seekMsg{gen: gen, at: 50})
	d.Update(batchMsg{gen: gen, err: errors.New("broken pipe")})
	d.Update(receiptMsg{err: context.Canceled})
	d.Update(scannedMsg{context.Canceled})
	if d.live.Position != at || d.feed.err != nil || d.toast.text != "" {
		t.Errorf("at record %d after %d, %v, toast %q", d.live.Position, at, d.feed.err, d.toast.text)
	}
	if old.ctx.Err() == nil || old.jobs.run(func() tea.Msg { return tickMsg{} })() != nil {
		t.Error("the jobs of the session before may still run")
	}
}

func TestSessionsThatCannotBeOpened(t *testing.T) {
	d, s := shelved(t, 120, 40, "9 G enter")
	if len(s.opened) > 0 || !strings.Contains(d.toast.text, "cannot be read: session: 000001.log") {
		t.Errorf("opened %v, says %q", s.opened, d.toast.text)
	}
	d.press("g", "enter")
	if len(s.opened) > 0 || d.screen != 0 {
		t.Errorf("the session in view is opened again: %v", s.opened)
	}
	s.err = errors.New("the disk is gone")
	d.press("9", "j", "enter")
	if !strings.Contains(d.toast.text, "the disk is gone") || d.feed.err != nil || d.reading.ctx.Err() != nil {
		t.Errorf("says %q", d.toast.text)
	}
	for want, s := range map[string]*shelf{"the disk is gone": {err: errors.New("the disk is gone")}, "nothing is recorded yet": {}} {
		d := open(t, 80, 24, sourcetest.Run(3, 20), func(o *Options) { o.Library = s })
		d.press("9", "j", "enter", "d")
		d.shows(want)
	}
	if d := open(t, 80, 24, sourcetest.Run(3, 20), nil); true {
		d.press("9")
		if d.screen != 0 || !strings.Contains(d.toast.text, "1 Live, 2 Fleet, 3 Knobs") {
			t.Errorf("without a library 9 opens screen %d and says %q", d.screen, d.toast.text)
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
		d, s := shelved(t, 120, 40, c.keys)
		if !slices.Equal(s.deleted, c.deleted) || !strings.Contains(d.toast.text, c.says) || d.popup != nil || len(d.runs.found[""]) != 4-len(c.deleted) {
			t.Errorf("%q deletes %v, says %q, lists %d", c.keys, s.deleted, d.toast.text, len(d.runs.found[""]))
		}
	}
	d, s := shelved(t, 120, 40, "9 j d")
	d.shows("Delete quickstart-7f3a?", "6.0 MB", "y delete it")
	s.err = errors.New("permission denied")
	if d.press("y"); !strings.Contains(d.toast.text, "permission denied") {
		t.Errorf("says %q", d.toast.text)
	}
	d, s = shelved(t, 120, 40, "9 j enter 9 d y")
	if len(s.deleted) > 0 || !strings.Contains(d.toast.text, "copied") {
		t.Errorf("the session in view is deleted: %v, %q", s.deleted, d.toast.text)
	}
}

// study is a shelf of runs that can be laid over each other: two seeds of one setting, one of another with a fork, one
// that runs, a folder, and one that has done nothing.
func study() *shelf {
	s := &shelf{records: map[string][]event.Record{}, folders: map[string][]session.Info{}}
	put := func(i int, name string, seed uint64, rounds int, change func(rs []event.Record)) {
		x := session.Info{Name: name, Dir: "/s/" + name, Algorithm: "sample", Model: "lenet", Data: "glyphs", Seed: seed, Phase: event.Finished,
			Round: uint64(rounds), Started: time.Date(2026, 11, 20, 12-i, 0, 0, 0, time.UTC), Size: int64(1e6 * (i + 1))}
		if rounds > 0 {
			rs := sourcetest.Run(4, rounds)
			tested := 1.42 + float64(i)/10
			x.TestError, x.TestRound = &tested, uint64(rounds)
			for _, r := range rs {
				switch {
				case r.Config != nil:
					r.Config.Seed = seed
				case r.Points != nil && r.Points.Series == view.CentreLoss:
					r.Points.Values[0] *= 1 + float64(i)/5
				}
			}
			first := &event.Evaluation{Round: uint64(rounds) / 4, TestError: 8 + float64(i), Samples: 1000}
			at := slices.IndexFunc(rs, func(r event.Record) bool { return r.Evaluation != nil })
			rs = slices.Insert(rs, at, event.Record{At: rs[at].At, Evaluation: first})
			if change != nil {
				change(rs)
			}
			s.records[x.Dir] = rs
		}
		s.list = append(s.list, x)
	}
	put(0, "seed-1", 1, 200, nil)
	put(1, "seed-2", 2, 200, nil)
	put(2, "wide", 1, 120, func(rs []event.Record) { rs[0].Config.Model = "wide" })
	put(3, "fork", 1, 200, func(rs []event.Record) {
		for i, r := range rs { // its log begins where it was forked
			if r.Points != nil && r.Points.Round <= 100 || r.Evaluation != nil && r.Evaluation.Round < 100 || r.Commit != nil && r.Commit.To <= 100 {
				rs[i] = event.Record{At: r.At, State: &event.State{Phase: event.Training}}
			}
		}
		rs[0].Config.Parent, rs[0].Config.ParentAt = "seed-1", 100
		rs[1].Plan.At = 100
		rs[2] = event.Record{At: rs[2].At, Checkpoint: &event.Checkpoint{Round: 100, Progress: event.Progress{Rounds: 100, Steps: 10000, Samples: 1280000, Epochs: 1}}}
		rs[1], rs[2] = rs[2], rs[1]
	})
	put(4, "begun", 1, 0, nil)
	s.list[1].About = session.About{Tags: []string{"best"}, Note: "as in the paper"}
	s.list[3].Running, s.list[3].Phase = true, event.Training
	s.folders["/s/sweep-grid"] = []session.Info{
		{Name: "eta=0.1,seed=1", Dir: "/s/sweep-grid/eta=0.1,seed=1", Phase: event.Finished, Round: 60, Seed: 1, Started: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)},
		{Name: "eta=0.1,seed=2", Dir: "/s/sweep-grid/eta=0.1,seed=2", Phase: event.Failed, Round: 3, Seed: 2, Started: time.Date(2026, 11, 20, 7, 0, 0, 0, time.UTC)},
	}
	return s
}

// browse opens the workbench on a library, without a run.
func browse(t testing.TB, w, h int, s *shelf, keys string) *desk {
	d := &desk{t: t, now: time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)}
	d.model = newModel(context.Background(), Options{Library: s, Algorithms: []*optim.Algorithm{sourcetest.Algorithm()}, By: "ann", NoColor: true,
		Width: w, Height: h, Clock: func() time.Time { return d.now }})
	d.runs = newRuns()
	for _, own := range d.runs.panels() {
		d.replace(own)
	}
	d.deliver(d.look()())
	return d.press(strings.Fields(keys)...)
}

func TestGoldenOverlay(t *testing.T) {
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 36}, {200, 50}} {
		name := func(what string) string { return fmt.Sprintf("%s-%dx%d", what, size[0], size[1]) }
		golden(t, name("runs-alone"), browse(t, size[0], size[1], study(), "j").screenText())
		d := browse(t, size[0], size[1], study(), "space space space space G enter")
		golden(t, name("runs-marked"), d.screenText())
		golden(t, name("runs-cursor"), d.press("S", "a", "a", "left", "left", "left", "left", "left", "left", "tab").screenText())
	}
}

// At 80 columns there is no place for the table beside rail and charts: a key shows all of its columns, and leads back.
func TestWholeTable(t *testing.T) {
	d := browse(t, 80, 24, study(), "space space space space G enter")
	d.hides("train loss")
	d.press("v")
	for _, c := range d.runs.overlay.cols {
		d.shows(strings.TrimSpace(c.head))
	}
	d.hides("they also differ in", "▸ runs")
	golden(t, "runs-table-80x24", d.screenText())
	for _, key := range []string{"v", "esc"} {
		d.press(key)
		if d.shows("loss of the centre"); d.expanded || d.focus != runsPanel {
			t.Errorf("%s leads to %s", key, d.focus)
		}
		d.press("v")
	}
}

// Without a run there is the rail alone: other screens say so, and a run that is opened is left by esc.
func TestBrowseWithoutARun(t *testing.T) {
	d := browse(t, 120, 36, study(), "")
	d.shows("▸9 Runs", "no run is open", "seed-1", "sweep-grid/", "2 runs", "q leave")
	for _, key := range []string{"1", "2", "3"} {
		if d.press(key); d.screen != d.home() || !strings.Contains(d.toast.text, "no run is open") {
			t.Errorf("%s leads to screen %d and says %q", key, d.screen, d.toast.text)
		}
	}
	for _, key := range []string{"Z", "k", "f", ":", "esc", "ctrl+p", "esc", "?", "esc", "e", "e", "tab", "tab", "y", "E", "]", "b", "+", "0"} {
		d.press(key)
		d.screenText()
	}
	d.press("esc", "g", "/").write("seed-2").press("enter")
	if d.press("enter"); d.replay == nil || d.screen != 0 || d.opt.Session != "/s/seed-2" {
		t.Fatalf("enter leads to screen %d of %s, says %q", d.screen, d.opt.Session, d.toast.text)
	}
	d.press("e", "esc")
	if d.screen != 0 {
		t.Error("esc leaves the run before it has closed what is open")
	}
	d.toast = toast{}
	if d.press("esc"); d.screen != d.home() {
		t.Error("esc does not lead back to the runs")
	}
	d.shows("/seed-2", "1 of 5", "◇")
}

// Nothing that is not in view is read before what is, and nothing twice.
func TestVisibleRunsAreReadFirst(t *testing.T) {
	s := &shelf{}
	for i := range 300 {
		s.list = append(s.list, session.Info{Name: fmt.Sprintf("run-%03d", i), Dir: fmt.Sprintf("/s/run-%03d", i), Phase: event.Finished,
			Started: time.Date(2026, 11, 20, 0, 0, 300-i, 0, time.UTC)})
	}
	d := browse(t, 80, 24, s, "")
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
	d.now = d.now.Add(time.Hour)
	d.deliver(d.relisted())
	if len(s.read) != 301 || s.read[300] != s.list[7].Dir {
		t.Errorf("read %v besides", s.read[300:])
	}
	if d.now = d.now.Add(time.Second); d.relisted() != nil {
		t.Error("it is listed again at once")
	}
}

func TestRunsAreSorted(t *testing.T) {
	d := browse(t, 200, 50, study(), "")
	for _, want := range []string{
		"fork seed-1 seed-2 wide begun sweep-grid", "begun fork seed-1 seed-2 sweep-grid wide", "seed-1 seed-2 wide fork begun sweep-grid",
		"seed-2 fork seed-1 wide begun sweep-grid", "fork seed-1 seed-2 wide begun sweep-grid", "fork seed-1 seed-2 wide begun sweep-grid",
	} {
		var got []string
		for _, x := range d.runs.sorted(d.model) {
			got = append(got, x.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", sortings[d.runs.sort], got, want)
		}
		d.shows(sortings[d.runs.sort])
		d.press("s")
	}
}

// The overlay: a line for each run or for the seeds of a setting, values at the cursor, differences and the best.
func TestOverlay(t *testing.T) {
	d := browse(t, 200, 50, study(), "/")
	d.write("seed-").press("enter", "g", "space", "space", "space") // fork is found by its parent
	if want := []string{"/s/fork", "/s/seed-1", "/s/seed-2"}; !slices.Equal(d.runs.marks, want) {
		t.Fatalf("marked %v, want %v", d.runs.marks, want)
	}
	d.shows("3 runs over each other", "loss of the centre", "test error  %", "bytes sent", "seeds as mean (least–most) and band", "mean of b c", "they also differ in: fork of", "by round")
	o := &d.runs.overlay
	if len(o.lines) != 2 || len(o.lines[1].runs) != 2 {
		t.Fatalf("%d lines", len(o.lines))
	}
	fork, mean := o.plots[0].lines[0], o.plots[0].lines[1]
	if n := len(fork); !fork[n/2-10].Empty() || fork[n-1].Empty() {
		t.Error("the fork is not drawn from its fork point on")
	}
	if b := mean[len(mean)-1]; !(b.Min < b.Mean() && b.Mean() < b.Max) {
		t.Errorf("the mean of the seeds ends with %+v", b)
	}
	// At a place both have their own value; where a run has none there is none.
	d.press("right")
	if v, ok := o.read(o.plots[0].read[0]); ok {
		t.Errorf("at the beginning the fork is at %g", v.Mean())
	}
	d.shows("at round", "a –")
	d.press("esc", "esc", "left") // the filter, and then the cursor
	if v, _ := o.read(o.plots[0].read[0]); o.at != o.width-1 || math.Abs(v.Mean()-fork[len(fork)-1].Mean()) > 0.01 {
		t.Errorf("at the end the fork is at %g", v.Mean())
	}
	d.press("S")
	if d.screenText(); len(o.lines) != 3 {
		t.Errorf("each seed alone: %d lines", len(o.lines))
	}
	d.hides("seeds as mean and band")
	for _, by := range []string{"by step", "by sample", "by byte", "by second", "by round"} {
		d.press("a")
		d.shows(by)
	}
	d.press("U")
	if len(d.runs.marks) > 0 {
		t.Error("the marks are still there")
	}
}

// What stands beside a chart was measured: between two tests it is the first of them, with its round, and without a
// cursor it is the last value, however wide the window is.
func TestOverlayReadsWhatWasMeasured(t *testing.T) {
	last := ""
	for _, size := range [][2]int{{80, 24}, {120, 36}, {140, 50}, {200, 50}} {
		s := study()
		d := browse(t, size[0], size[1], s, "j e e")
		d.focus = overlayPanel
		d.press("e")
		tests, loss := -1, -1
		d.screenText()
		o := &d.runs.overlay
		for i, p := range o.plots {
			switch p.title {
			case "test error  %":
				tests = i
			case "loss of the centre":
				loss = i
			}
		}
		points := sourcetest.Run(4, 200)
		var want float64
		for _, r := range points {
			if r.Points != nil && r.Points.Series == view.CentreLoss {
				want = r.Points.Values[0]
			}
		}
		v, ok := o.read(o.plots[loss].read[0])
		if text := num(v.Mean()); !ok || v.Mean() != want || last != "" && text != last {
			t.Errorf("%v: the loss ends at %g, recorded was %g", size, v.Mean(), want)
		} else {
			last = text
		}
		var rounds []uint64
		var errs []float64
		for _, r := range s.records["/s/seed-1"] {
			if e := r.Evaluation; e != nil {
				rounds, errs = append(rounds, e.Round), append(errs, e.TestError)
			}
		}
		if len(rounds) < 2 {
			t.Fatalf("tests at %v", rounds)
		}
		between := float64(rounds[0]+rounds[1]) / 2
		for o.at = 0; ; o.at++ {
			if _, end := o.cell(); end >= between {
				break
			}
		}
		if v, ok := o.read(o.plots[tests].read[0]); !ok || v.Mean() != errs[0] || v.x != float64(rounds[0]) {
			t.Errorf("%v: at round %g the test error reads %g of round %g, want %g of %d", size, between, v.Mean(), v.x, errs[0], rounds[0])
		}
		d.shows(fmt.Sprintf("%s @%d", num(errs[0]), rounds[0]))
		o.at = 0
		if v, ok := o.read(o.plots[tests].read[0]); ok {
			t.Errorf("before the first test the test error reads %g", v.Mean())
		}
	}
}

// A recording does not claim that it trains, and stands still while nobody sees it.
func TestReplayOfARunThatHasEnded(t *testing.T) {
	end := event.Record{At: 2e18, State: &event.State{Phase: event.Finished, Round: 60}}
	d := open(t, 120, 36, nil, func(o *Options) {
		o.Library = study()
		o.Source = fast(&tape{rs: append(sourcetest.Run(4, 60), end)})
	})
	d.toast = toast{}
	if err := d.replay.Scan(context.Background()); err != nil {
		t.Fatal(err)
	}
	d.deliver(seekMsg{gen: d.feed.gen, at: 40})
	d.shows("▶ replay", "recording, finished")
	d.hides("● training", " left")
	d.replay.Pause(false)
	d.press("esc")
	if on, _ := d.replay.Playing(); on || d.screen != d.home() {
		t.Errorf("on screen %d the replay plays on: %v", d.screen, on)
	}
	d.press("1", "end")
	d.shows("✓ finished", "recording")
}

// A test error of a round before the last is marked, and the foot says of which round it is.
func TestAnOldTestErrorIsNotTheCurrentOne(t *testing.T) {
	s := study()
	s.list[0].TestRound = 150
	d := browse(t, 120, 36, s, "j")
	d.shows("1.42@", "test 1.42 % @150")
	d.press("j")
	d.shows("1.52 ")
	d.hides("1.52@", "@150")
}

// The legend has the letters that there are.
func TestTheLegendHasTheLettersThereAre(t *testing.T) {
	d := browse(t, 120, 36, study(), "g space")
	d.shows("a: marked")
	d.press("space")
	d.shows("a, b: marked")
	d.press("space", "space")
	d.shows("a to d: marked")
}

// A filter's words are looked for each on its own; a folder that has them keeps its runs, and where nothing passes that
// is said.
func TestTheFilterTakesWords(t *testing.T) {
	d := browse(t, 120, 36, study(), "G enter /")
	d.write("GLYPHS seed-2")
	if rows := d.runs.sorted(d.model); len(rows) != 1 || rows[0].Name != "seed-2" {
		t.Errorf("two words pass %v", rows)
	}
	d.press("esc", "/").write("sweep-grid").press("enter")
	d.shows("eta=0.1,seed=1", "eta=0.1,seed=2")
	d.press("/").write(" nowhere").press("enter")
	d.shows(`no run holds "sweep-grid nowhere"`, "in any order", "esc clear it")
	d.hides("space mark")
}

// A folder to which another process adds runs has them counted again.
func TestRunsOfAFolderAreCountedAgain(t *testing.T) {
	s := study()
	d := browse(t, 120, 36, s, "")
	d.shows("2 runs")
	dir := "/s/sweep-grid"
	s.folders[dir] = append(s.folders[dir], session.Info{Name: "eta=0.2", Dir: dir + "/eta=0.2", Phase: event.Finished})
	s.touched = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	d.now = d.now.Add(time.Minute)
	d.deliver(d.relisted())
	d.shows("3 runs")
}

// The name that a person gives is that of the charts and of the table too.
func TestANameIsTakenEverywhere(t *testing.T) {
	d := browse(t, 200, 50, study(), "j R")
	d.write("the first").press("enter")
	d.screenText()
	if o := &d.runs.overlay; len(o.rows) == 0 || o.rows[0].name != "the first" {
		t.Errorf("the table has %+v", o.rows)
	}
}

// A name that is too long is refused where it was typed, and stays there.
func TestALongNameIsNotLost(t *testing.T) {
	s := study()
	d := browse(t, 120, 36, s, "j R")
	long := strings.Repeat("long", 200)
	d.write(long).press("enter")
	if e, ok := d.popup.(*ask); !ok || !strings.Contains(e.err, "characters") || e.text() != long || len(s.done) > 0 {
		t.Errorf("after a long name: %T, has done %v", d.popup, s.done)
	}
}

// A mark stays in a folder that is closed, and goes with its run.
func TestMarksStay(t *testing.T) {
	s := study()
	dir := "/s/sweep-grid/eta=0.1,seed=1"
	s.records[dir] = sourcetest.Run(2, 60)
	d := browse(t, 120, 36, s, "G enter")
	d.press("j", "space", "g", "space")
	if want := []string{dir, "/s/fork"}; !slices.Equal(d.runs.marks, want) {
		t.Fatalf("marked %v, want %v", d.runs.marks, want)
	}
	d.runs.chosen = "/s/sweep-grid"
	d.press("enter")
	d.now = d.now.Add(time.Minute)
	d.deliver(d.relisted())
	d.screenText()
	if len(d.runs.marks) != 2 || len(d.runs.overlay.set) != 2 || len(d.runs.sorted(d.model)) != 6 {
		t.Errorf("after the folder was closed: marks %v, %d lines", d.runs.marks, len(d.runs.overlay.lines))
	}
	s.folders["/s/sweep-grid"] = s.folders["/s/sweep-grid"][1:]
	d.now = d.now.Add(time.Minute)
	d.deliver(d.relisted())
	d.screenText()
	if !slices.Equal(d.runs.marks, []string{"/s/fork"}) || len(d.runs.overlay.set) != 1 {
		t.Errorf("after the run is gone: marks %v, %d runs", d.runs.marks, len(d.runs.overlay.set))
	}
}

func TestWhatMayNotBeDoneSaysWhy(t *testing.T) {
	for keys, says := range map[string]string{
		"g r": "is running: enter attaches", "g d": "is running: stop it first", "j X": "does not run", "G space": "is a folder",
		"G d": "is a folder", "G w": "is a folder", "G k r": "", "G k w": "trains no model",
	} {
		s := study()
		s.list[4].Data = ""
		d := browse(t, 120, 36, s, keys)
		if !strings.Contains(d.toast.text, says) || says != "" && d.popup != nil || len(s.done) > 0 {
			t.Errorf("%s says %q, and has done %v", keys, d.toast.text, s.done)
		}
	}
	var only struct{ Library }
	only.Library = study()
	d := browse(t, 120, 36, study(), "")
	d.opt.Library = only
	for _, key := range []string{"r", "X", "w", "R", "t", "n"} {
		if d.press("j", key); !strings.Contains(d.toast.text, "only be looked at") || d.popup != nil {
			t.Errorf("%s says %q", key, d.toast.text)
		}
	}
}

// What changes a run goes to the keeper, once a person has said so.
func TestRunsAreKept(t *testing.T) {
	for _, c := range []struct{ keys, text, after, done, says string }{
		{"g X", "", "y", "stop fork", "stopped fork"},
		{"g X", "", "n", "", ""},
		{"j r", "200", "enter", "", "give a round beyond 200"},
		{"j r", "", "enter", "", "give a round beyond 200"},
		{"j r", "500", "enter", "resume seed-1 to 500", "seed-1 goes on"},
		{"j r", "500", "esc", "", ""},
		{"j w", "", "", "export seed-1", "model.safetensors: lenet after round 300"},
		{"j R", "the first", "enter", `describe seed-1 "the first" [] ""`, "kept beside the session seed-1"},
		{"j t", "good, seed7", "enter", `describe seed-1 "" ["good" "seed7"] ""`, "kept beside"},
		{"j t", "good  old", "enter", `describe seed-1 "" ["good" "old"] ""`, "kept beside"},
		{"j j n", ", they say", "enter", `describe seed-2 "" ["best"] "as in the paper, they say"`, "kept beside"},
	} {
		s := study()
		d := browse(t, 120, 36, s, c.keys)
		d.write(c.text).press(strings.Fields(c.after)...)
		said := d.toast.text
		if e, ok := d.popup.(*ask); ok {
			said = e.err
		}
		if got := strings.Join(s.done, "; "); got != c.done || !strings.Contains(said, c.says) {
			t.Errorf("%s %q: has done %q and says %q", c.keys, c.text, got, said)
		}
		if strings.Contains(c.done, "first") {
			d.shows("the first")
			if d.press("/").write("the first"); len(d.runs.sorted(d.model)) != 1 {
				t.Error("a run is not found by the name that it was given")
			}
		}
	}
	s := study()
	s.list[0].Phase = event.Stopped // goes on to the end that it has
	d := browse(t, 120, 36, s, "j r enter")
	if !slices.Equal(s.done, []string{"resume seed-1 to 0"}) || d.screen != 0 {
		t.Errorf("has done %v, shows screen %d", s.done, d.screen)
	}
	s.err = errors.New("the disk is full")
	if d.press("9", "j", "t", "x", "enter"); !strings.Contains(d.toast.text, "the disk is full") {
		t.Errorf("says %q", d.toast.text)
	}
}

// A run that ends while somebody looks says what may be done next.
func TestWhatNext(t *testing.T) {
	for _, w := range []int{80, 120, 200} {
		s := study()
		d := open(t, w, 24, append(sourcetest.Run(3, 40), event.Record{At: 2e18, State: &event.State{Phase: event.Finished, Round: 40}}), func(o *Options) { o.Library = s })
		d.shows("esc", "space compare", "B fork")
		d.hides("pause")
		if d.press("esc"); d.screen != d.home() {
			t.Error("esc does not lead to the runs")
		}
		d.shows("w model file")
	}
	d := open(t, 120, 24, append(sourcetest.Run(3, 40), event.Record{At: 2e18, State: &event.State{Phase: event.Finished, Round: 40}}), nil)
	d.shows("brood fork", "brood compare")
}

// A frame is as large as the terminal, and where only ASCII may be written nothing else is.
func TestRunsFitWhateverTheSize(t *testing.T) {
	for _, keys := range []string{"", "space space space space G enter", "space space left right S", "/ x", "j R", "g X", "space space tab e", "space space tab tab e", "?"} {
		d := browse(t, 80, 24, study(), keys)
		a := browse(t, 80, 24, study(), keys)
		a.opt.ASCII = true
		a.restyle()
		for i := range 60 {
			w, h := 1+i*37%230, 1+i*23%70
			lines := strings.Split(d.resize(w, h).screenText(), "\n")
			if len(lines) != h {
				t.Fatalf("%q: %d lines at %dx%d", keys, len(lines), w, h)
			}
			for _, l := range lines {
				if cell.Width(l) != w {
					t.Fatalf("%q: a line of %d cells at %dx%d: %q", keys, cell.Width(l), w, h, l)
				}
			}
			if at := strings.IndexFunc(a.resize(w, h).screenText(), func(r rune) bool { return r > 0x7e }); at >= 0 {
				t.Fatalf("%q: not in ASCII at %dx%d: %q", keys, w, h, a.screenText()[at:at+3])
			}
		}
	}
}

// TestExportOfTheOverlay: E writes what the charts over each other are drawn from, every point of every run, and the
// table of settings and figures to the last digit.
func TestExportOfTheOverlay(t *testing.T) {
	t.Chdir(t.TempDir())
	d := browse(t, 200, 50, study(), "/")
	d.write("seed-").press("enter", "g", "space", "space", "space")
	d.focus = overlayPanel
	d.press("E")
	all := readCSV(t, "run-overlay.csv")
	runs, points := map[string]int{}, 0
	for _, row := range all[1:] {
		if row[1] == "loss of the centre" {
			runs[row[0]]++
			points++
		}
	}
	want := 0
	for _, run := range d.runs.overlay.set {
		want += len(run.Measured("centre.loss", d.runs.overlay.axis))
	}
	if len(runs) != 3 || points != want || strings.Join(all[0], ",") != "run,quantity,round,round,points,min,mean,max" {
		t.Errorf("%d points of %v, want %d of 3 runs, below %v", points, runs, want, all[0])
	}
	d.focus = figuresPanel
	d.press("E")
	table := readCSV(t, "run-figures.csv")
	if len(table) != 4 || table[0][0] != "run" || !slices.Contains(table[0], "test_error") || !slices.Contains(table[0], "seed") {
		t.Errorf("the table is %v", table)
	}
	d.focus = runsPanel
	if d.press("E"); !strings.Contains(d.toast.text, "nothing to export of runs: tab leads to charts and tables") {
		t.Errorf("on the rail E says %q", d.toast.text)
	}
}
