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

	"brood/optim"
	"brood/runtime/archive"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/panel/runs"
)

// fakeLibrary is a library in memory. It attaches to running sessions and replays others.
type fakeLibrary struct {
	list    []session.Info
	folders map[string][]session.Info
	records map[string][]event.Record // records by directory, for overlays
	err     error
	scans   int
	touched time.Time // when a run was added to the folders
	read    []string  // directories, in the order of the requested summaries
	saved   int
	opened  []string
	closed  []string
	deleted []string
	done    []string // calls of the Keeper
	branch  func(context.Context, panel.Branch) (panel.Opened, error)
	asked   []panel.Branch

	checkpoints []uint64
}

func (s *fakeLibrary) Scan(_ context.Context, folder string) (out []archive.Entry, err error) {
	s.scans++
	list := s.list
	if folder != "" {
		list = s.folders[folder]
	}
	for _, x := range list {
		out = append(out, archive.Entry{Name: x.Name, Dir: x.Dir, Bytes: 1 + int64(x.Round), Written: x.Started,
			Running: x.Running})
	}
	for dir := range s.folders {
		if folder == "" {
			out = append(out, archive.Entry{Name: filepath.Base(dir), Dir: dir, Folder: "sweep",
				Written: cmp.Or(s.touched, time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC))})
		}
	}
	archive.SortEntries(out)
	return out, s.err
}

func (s *fakeLibrary) Summary(e archive.Entry) archive.Summary {
	s.read = append(s.read, e.Dir)
	sum := archive.Summary{Info: session.Info{Name: e.Name, Dir: e.Dir}, Loss: math.NaN(), Runs: len(s.folders[e.Dir])}
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
		sum.Members, sum.Series, sum.Loss, sum.Curve = 4, view.CentreLoss, 1/float64(sum.Seed+1), []float64{2, 1, 0.7,
			0.5, math.NaN(), 0.3, 0.2, 1 / float64(sum.Seed+1)}
	}
	return sum
}

// Curves writes the records with the real writer and reads them back.
func (s *fakeLibrary) Curves(e archive.Entry) (*archive.Run, error) {
	if s.err != nil || s.records[e.Dir] == nil {
		return nil, errors.Join(s.err, fmt.Errorf("session %s %w: there is nothing to compare", e.Name,
			archive.ErrNoRound))
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
	run, err := archive.Read(dir)
	if err == nil {
		run.Dir = e.Dir
	}
	return run, err
}

func (s *fakeLibrary) Save() error { s.saved++; return s.err }

func (s *fakeLibrary) Resume(_ context.Context, dir string, limit event.Limit) (panel.Opened, error) {
	s.done = append(s.done, fmt.Sprintf("resume %s to %d", filepath.Base(dir), limit.Rounds))
	return panel.Opened{Session: dir, Source: sourcetest.NewMemory(sourcetest.Run(2, 40)...), Commander: &desk{}}, s.err
}

func (s *fakeLibrary) Stop(_ context.Context, dir string) error {
	s.done = append(s.done, "stop "+filepath.Base(dir))
	return s.err
}

func (s *fakeLibrary) Export(_ context.Context, dir string) (string, error) {
	s.done = append(s.done, "export "+filepath.Base(dir))
	return "model.safetensors: lenet after round 300", s.err
}

func (s *fakeLibrary) Describe(_ context.Context, dir string, a session.About) error {
	s.done = append(s.done, fmt.Sprintf("describe %s %q %q %q", filepath.Base(dir), a.Name, a.Tags, a.Note))
	for i := range s.list {
		if s.list[i].Dir == dir && s.err == nil {
			s.list[i].About = a
		}
	}
	return s.err
}

func (s *fakeLibrary) Noted(_ context.Context, dir string) []session.RoundNote {
	for _, x := range s.list {
		if x.Dir == dir {
			return x.About.Rounds
		}
	}
	return nil
}

func (s *fakeLibrary) Note(_ context.Context, dir string, round uint64, text string) error {
	for i := range s.list {
		if s.list[i].Dir == dir && s.err == nil {
			s.list[i].About = s.list[i].About.Noted(round, text)
		}
	}
	return s.err
}

func (s *fakeLibrary) Open(_ context.Context, dir string) (panel.Opened, error) {
	i := slices.IndexFunc(s.list, func(x session.Info) bool { return x.Dir == dir })
	if s.err != nil || i < 0 {
		return panel.Opened{}, errors.Join(s.err, fmt.Errorf("there is no %s", dir))
	}
	s.opened = append(s.opened, dir)
	o := panel.Opened{Session: dir, Close: func() error { s.closed = append(s.closed, dir); return nil }}
	if s.list[i].Running {
		o.Source, o.Commander = sourcetest.NewMemory(sourcetest.Run(2, 40)...), &desk{}
	} else {
		o.Source = fastReplay(&memoryLog{rs: sourcetest.Run(4, 60)})
	}
	return o, nil
}

func (s *fakeLibrary) Delete(_ context.Context, dir string) error {
	s.deleted = append(s.deleted, dir)
	s.list = slices.DeleteFunc(s.list, func(x session.Info) bool { return x.Dir == dir })
	return s.err
}

func (s *fakeLibrary) Branch(ctx context.Context, b panel.Branch) (panel.Opened, error) {
	s.asked = append(s.asked, b)
	return s.branch(ctx, b)
}

// tested returns the test error in the summary of a run.
func tested(percent float64) *session.Scored {
	return &session.Scored{Key: event.KeyTestError, Title: "test error", Percent: true, Value: percent}
}

func recordedOnes() []session.Info {
	at := func(h int) time.Time { return time.Date(2026, 11, 20, h, 30, 0, 0, time.UTC) }
	return []session.Info{
		{Name: "2026-11-20-quickstart-7f3a", Dir: "/s/2026-11-20-quickstart-7f3a", Algorithm: "parle",
			Model: "mlp-small", Data: "glyphs", Seed: 1, Started: at(12), Round: 300, Phase: event.Finished,
			Score: tested(2.5), TestRound: 300, Size: 6e6},
		{Name: "2026-11-20-es-0b1c", Dir: "/s/2026-11-20-es-0b1c", Running: true, Algorithm: "openai-es",
			Model: "lenet", Data: "mnist", Seed: 7, Started: at(9), Round: 12840, Phase: event.Training, Size: 41e6},
		{Name: "2026-11-20-run-d00d", Dir: "/s/2026-11-20-run-d00d", Algorithm: "dp-sgd", Model: "softmax",
			Data: "glyphs", Seed: 2, Started: at(11), Round: 5, Phase: event.Training, Size: 120e3},
		{Name: "2026-11-20-cut-ffff", Dir: "/s/2026-11-20-cut-ffff", Started: at(10),
			Err: "session: 000001.log is damaged at byte 77 (frame 3): its checksum is wrong", Size: 999},
	}
}

func openShelved(t testing.TB, w, h int, keys string) (*desk, *fakeLibrary) {
	s := &fakeLibrary{list: recordedOnes()}
	d := open(t, w, h, sourcetest.Run(6, 100), func(o *panel.Options) {
		o.Library, o.Session = s, s.list[1].Dir
		o.Close = func() error { s.closed = append(s.closed, s.list[1].Dir); return nil }
	})
	d.now = time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	d.LastRecordAt = d.now
	d.press(strings.Fields(keys)...)
	return d, s
}

// studyLibrary returns a shelf of runs that can be overlaid: two seeds of one setting, one of another with a fork, a
// running one, a folder, and one without a round.
func studyLibrary() *fakeLibrary {
	s := &fakeLibrary{records: map[string][]event.Record{}, folders: map[string][]session.Info{}}
	put := func(i int, name string, seed uint64, rounds int, change func(rs []event.Record)) {
		x := session.Info{Name: name, Dir: "/s/" + name, Algorithm: "sample", Model: "lenet", Data: "glyphs",
			Seed: seed, Phase: event.Finished,
			Round: uint64(rounds), Started: time.Date(2026, 11, 20, 12-i, 0, 0, 0,
				time.UTC), Size: int64(1e6 * (i + 1))}
		if rounds > 0 {
			rs := sourcetest.Run(4, rounds)
			x.Score, x.TestRound = tested(1.42+float64(i)/10), uint64(rounds)
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
		for i, r := range rs { // its log starts at the fork
			if r.Points != nil && r.Points.Round <= 100 || r.Evaluation != nil && r.Evaluation.Round < 100 ||
				r.Commit != nil && r.Commit.To <= 100 {
				rs[i] = event.Record{At: r.At, State: &event.State{Phase: event.Training}}
			}
		}
		rs[0].Config.Parent, rs[0].Config.ParentAt = "seed-1", 100
		rs[1].Plan.At = 100
		rs[2] = event.Record{At: rs[2].At, Checkpoint: &event.Checkpoint{Round: 100,
			Progress: event.Progress{Rounds: 100, Steps: 10000, Samples: 1280000, Epochs: 1}}}
		rs[1], rs[2] = rs[2], rs[1]
	})
	put(4, "begun", 1, 0, nil)
	s.list[1].About = session.About{Tags: []string{"best"}, Note: "as in the paper"}
	s.list[3].Running, s.list[3].Phase = true, event.Training
	s.folders["/s/sweep-grid"] = []session.Info{
		{Name: "eta=0.1,seed=1", Dir: "/s/sweep-grid/eta=0.1,seed=1", Phase: event.Finished, Round: 60, Seed: 1,
			Started: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)},
		{Name: "eta=0.1,seed=2", Dir: "/s/sweep-grid/eta=0.1,seed=2", Phase: event.Failed, Round: 3, Seed: 2,
			Started: time.Date(2026, 11, 20, 7, 0, 0, 0, time.UTC)},
	}
	return s
}

// newDesk returns a desk on a library without a run. It has not read the library.
func newDesk(t testing.TB, w, h int, lib panel.Library) *desk {
	d := &desk{t: t, now: time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)}
	d.model = newModel(context.Background(), panel.Options{Library: lib,
		Algorithms: []*optim.Algorithm{sourcetest.Algorithm()}, By: "ann", NoColor: true,
		Width: w, Height: h, Clock: func() time.Time { return d.now }})
	d.runs = runs.New()
	for _, own := range d.runs.Panels() {
		d.replace(own)
	}
	return d
}

// openLibrary opens the workbench on a library without a run.
func openLibrary(t testing.TB, w, h int, lib panel.Library, keys string) *desk {
	d := newDesk(t, w, h, lib)
	d.deliver(d.startReading()())
	return d.press(strings.Fields(keys)...)
}
