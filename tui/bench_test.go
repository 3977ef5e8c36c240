package tui

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/archive"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/replay"
)

// millionPoints returns a view of 64 members with a million points of their losses.
func millionPoints() *view.View {
	v := view.New()
	for _, r := range sourcetest.Run(64, 15625) {
		v.Apply(r)
	}
	return v
}

// frameRecords returns the records of one frame after a round: 4 rounds of 64 members.
func frameRecords(round uint64) (out []event.Record) {
	x := make([]float64, 64)
	for i := range x {
		x[i] = 0.1 + float64(i)/100
	}
	for r := round + 1; r <= round+4; r++ {
		out = append(out, event.Record{Points: &event.Points{Round: r, Series: "loss", Members: collective.IDs(64),
			Values: x}})
	}
	return append(out, event.Record{Commit: &event.Commit{To: round + 4, Rounds: 4, Nanos: 4e7,
		Progress: event.Progress{Rounds: round + 4}}})
}

// everyLink returns the measured traffic of 17 workers on their 272 links.
func everyLink(round uint64) event.Record {
	x := &event.Machines{Round: round}
	for from := range event.MostLinks + 1 {
		m := event.Machine{Worker: from, Values: map[event.Measure]float64{event.Sent: 1e6}, To: map[int]float64{}}
		for to := range event.MostLinks + 1 {
			if to != from {
				m.To[to] = float64(1e4 * (1 + (from+to)%7))
			}
		}
		x.Of = append(x.Of, m)
	}
	return event.Record{Machines: x}
}

// BenchmarkFrame measures Update with the records of a frame and View at 200x50: curves as measured, smoothed, smoothed
// in a window of the last rounds, the Population screen, the links of the largest fleet whose links are recorded,
// twelve charts, and a log of 9,000 lines. It reports the 95th percentile.
func BenchmarkFrame(b *testing.B) {
	for _, c := range []struct{ name, keys string }{
		{"raw", "M"}, {"smooth", ""}, {"zoomed", "++"}, {"population", "4"}, {"links", "5"}, {"charts", "7"},
		{"log", "8w"},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkFrame(b, c.keys) })
	}
}

func benchmarkFrame(b *testing.B, keys string) {
	v := millionPoints()
	source := &logSource{Memory: sourcetest.NewMemory(), lines: make([]session.Line, 9000)}
	for i := range source.lines {
		source.lines[i] = session.Line{At: v.Last - int64(9000-i)*1e9,
			Text: fmt.Sprintf("worker %d joined from 10.0.0.%d with 8 threads", i, i%250)}
	}
	m := newModel(b.Context(), panel.Options{Source: source, Algorithms: []*optim.Algorithm{sourcetest.Algorithm()},
		Width: 200, Height: 50})
	m.seek(0)
	m.Update(snapshotMsg{gen: m.Feed.Gen, view: v})
	if keys == "5" {
		for r := uint64(10); r <= v.Progress.Rounds; r += 10 {
			v.Apply(everyLink(r))
		}
	}
	if keys == "7" { // all of its charts have a line of each of 64 members behind them
		for i := range 11 {
			loss := *v.Clone().Find("loss")
			loss.Name = fmt.Sprintf("quantity %d", i)
			v.Series = append(v.Series, loss)
			m.Opt.Settings.Charts = append(m.Opt.Settings.Charts, loss.Name)
		}
		m.Opt.Settings.Charts = append(m.Opt.Settings.Charts, "loss")
	}
	for _, k := range keys {
		if ask := m.key(string(k), string(k)); ask != nil && k == 'w' {
			m.Update(ask())
		}
	}
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		next := frameRecords(v.Progress.Rounds)
		start := time.Now()
		m.Update(batchMsg{gen: m.Feed.Gen, batch: view.Batch{Records: next}})
		m.View()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100])/1e6, "ms-p95")
}

// BenchmarkSeek measures a move to a random round of a recording of a million records, which was scanned: from the
// request to the applied snapshot. The goal is 100 ms. It reports the time of the scan too.
func BenchmarkSeek(b *testing.B) {
	const records = 1_000_000
	rs := sourcetest.Run(4, 1000)
	rs = sourcetest.Run(4, records*1000/len(rs))
	dir := filepath.Join(b.TempDir(), "s")
	s, err := session.Create(dir)
	if err != nil {
		b.Fatal(err)
	}
	for part := range slices.Chunk(rs, 1000) {
		if err := s.Append(part...); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	log, err := session.OpenReader(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	r := replay.NewReplay(log)
	start := time.Now()
	if err := r.Scan(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(start).Seconds(), "s-scan")
	m := newModel(b.Context(), panel.Options{Source: r, Algorithms: []*optim.Algorithm{sourcetest.Algorithm()},
		Width: 200, Height: 50})
	rng := rand.New(rand.NewPCG(1, 1))
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		m.Update(m.moveTo(1 + rng.Uint64N(r.Extent().Rounds))())
		m.View()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(r.Extent().Records), "records")
	b.ReportMetric(float64(took[len(took)*95/100])/1e6, "ms-p95")
}

// recordedRuns is the library of the sessions in a directory.
type recordedRuns struct {
	*fakeLibrary
	lib  *archive.Library
	home string
}

func (r recordedRuns) Scan(context.Context, string) ([]archive.Entry, error) {
	return r.lib.Scan(r.home)
}
func (r recordedRuns) Summary(e archive.Entry) archive.Summary      { return r.lib.Summary(e) }
func (r recordedRuns) Curves(e archive.Entry) (*archive.Run, error) { return r.lib.Run(e) }
func (r recordedRuns) Save() error                                  { return r.lib.Save() }

// Sizes of BenchmarkRuns: the recorded runs, those among them that are overlaid, and their members and rounds.
const (
	benchRuns, benchMarked    = 1000, 16
	benchMembers, benchRounds = 64, 1000
)

// BenchmarkRuns opens the workbench on many recorded runs, without a cache and with the cache of the time before. It
// reports the times until the list is drawn (goal 200 ms) and until all runs are read, and the 95th percentile of a
// frame at 200x50 with several runs overlaid (goal 4 ms).
func BenchmarkRuns(b *testing.B) {
	home, cache := b.TempDir(), b.TempDir()
	for i := range benchRuns {
		members, rounds := 4, 40
		if i >= benchRuns-benchMarked {
			members, rounds = benchMembers, benchRounds
		}
		sourcetest.Write(b, filepath.Join(home, fmt.Sprintf("run-%06d", i)), sourcetest.Run(members, rounds)...)
	}
	for _, dir := range []string{"", cache} {
		b.Run(map[bool]string{true: "no-cache", false: "cache"}[dir == ""], func(b *testing.B) {
			if dir != "" {
				lib := archive.OpenLibrary(home, dir)
				openLibrary(b, 200, 50, recordedRuns{&fakeLibrary{}, lib, home}, "")
			}
			for b.Loop() {
				benchmarkRuns(b, recordedRuns{&fakeLibrary{}, archive.OpenLibrary(home, dir), home})
			}
		})
	}
}

func benchmarkRuns(b *testing.B, lib panel.Library) {
	start, first := time.Now(), time.Duration(0)
	d := newDesk(b, 200, 50, lib)
	for queue := []tea.Cmd{d.startReading()}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == nil {
			continue
		}
		switch msg := queue[0]().(type) {
		case tea.BatchMsg:
			queue = append(queue, msg...)
		case panel.Reply:
			d.Update(msg)
			queue = append(queue, d.last)
			if d.paint(); first == 0 && d.runs.Loaded {
				first = time.Since(start)
			}
		}
	}
	b.ReportMetric(first.Seconds()*1000, "ms-list")
	b.ReportMetric(time.Since(start).Seconds()*1000, "ms-all")
	for range benchMarked {
		d.press("space")
	}
	var took []time.Duration
	for range 400 {
		start := time.Now()
		d.Update(tea.KeyPressMsg{Code: tea.KeyLeft})
		d.View()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)*95/100].Seconds()*1000, "ms-p95")
}
