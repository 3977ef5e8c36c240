package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// shelf is a library in memory. Running sessions are attached to, others replayed.
type shelf struct {
	list    []session.Info
	err     error
	opened  []string
	closed  []string
	deleted []string
	branch  func(context.Context, Branch) (Opened, error)
	asked   []Branch
}

func (s *shelf) Sessions(context.Context) ([]session.Info, error) { return slices.Clone(s.list), s.err }

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
		{Name: "2026-11-20-quickstart-7f3a", Dir: "/s/2026-11-20-quickstart-7f3a", Algorithm: "parle", Model: "mlp-small", Data: "glyphs", Seed: 1, Started: at(12), Round: 300, Phase: event.Finished, TestError: &err, Size: 6e6},
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
	d.press(strings.Fields(keys)...)
	return d, s
}

func TestGoldenSessions(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {60, 12}, {80, 24}, {120, 40}, {200, 50}} {
		d, _ := shelved(t, size[0], size[1], "9 j")
		golden(t, fmt.Sprintf("sessions-%dx%d", size[0], size[1]), d.screenText())
	}
}

func TestSessionsAreSorted(t *testing.T) {
	d, s := shelved(t, 120, 40, "9")
	names := func() (out []string) {
		rows, _ := d.sessions.rows(d.model)
		for _, x := range rows {
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
	if len(d.sessions.all) != 4 {
		t.Error("the list is read again at once")
	}
	d.now = d.now.Add(3 * time.Second)
	d.deliver(d.relisted())
	if got := names(); got[0] != "new-0001" || d.sessions.chosen != "/s/2026-11-20-run-d00d" {
		t.Errorf("listed %v, chosen %s", got, d.sessions.chosen)
	}
	// Only while its screen is shown.
	d.press("1")
	d.now = d.now.Add(time.Hour)
	if d.sessions.relist(d.model) != nil {
		t.Error("the list is read while another screen is shown")
	}
}

// relisted is what a tick of the clock reads.
func (d *desk) relisted() tea.Msg {
	if cmd := d.sessions.relist(d.model); cmd != nil {
		return cmd()
	}
	return nil
}

func TestSessionsFilterAndMouse(t *testing.T) {
	d, _ := shelved(t, 120, 40, "9")
	d.press("/").write("killed").press("enter")
	d.shows("1 of 4 · /killed", "run-d00d", "seed 2  /s/2026-11-20-run-d00d")
	d.hides("quickstart")
	d.press("/").write("x")
	d.shows(`no session holds "killedx"`)
	for _, k := range []string{"enter", "j", "G"} {
		d.press(k)
	}
	d.press("esc", "G")
	if d.sessions.chosen != "/s/2026-11-20-cut-ffff" {
		t.Errorf("G chooses %s", d.sessions.chosen)
	}
	d.shows("is damaged at byte 77")
	d.Update(tea.MouseClickMsg{X: 10, Y: 5})
	if d.sessions.chosen != "/s/2026-11-20-quickstart-7f3a" {
		t.Errorf("a click on the second row chooses %s", d.sessions.chosen)
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
		{"9 j d y", []string{"/s/2026-11-20-quickstart-7f3a"}, "deleted 2026-11-20-quickstart-7f3a"},
		{"9 G d y", []string{"/s/2026-11-20-cut-ffff"}, "deleted"},
		{"9 d y", nil, "copied"}, // y is a key again: nothing was asked
		{"9 d", nil, "es-0b1c is running: stop it first"},
	} {
		d, s := shelved(t, 120, 40, c.keys)
		if !slices.Equal(s.deleted, c.deleted) || !strings.Contains(d.toast.text, c.says) || d.overlay != nil || len(d.sessions.all) != 4-len(c.deleted) {
			t.Errorf("%q deletes %v, says %q, lists %d", c.keys, s.deleted, d.toast.text, len(d.sessions.all))
		}
	}
	d, s := shelved(t, 120, 40, "9 j d")
	d.shows("Delete session 2026-11-20-quickstart-7f3a?", "6.0 MB", "y delete it")
	s.err = errors.New("permission denied")
	if d.press("y"); !strings.Contains(d.toast.text, "permission denied") {
		t.Errorf("says %q", d.toast.text)
	}
	d, s = shelved(t, 120, 40, "9 j enter 9 d y")
	if len(s.deleted) > 0 || !strings.Contains(d.toast.text, "copied") {
		t.Errorf("the session in view is deleted: %v, %q", s.deleted, d.toast.text)
	}
}
