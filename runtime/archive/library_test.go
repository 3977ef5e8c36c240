package archive

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view/sourcetest"
)

// written sets the time of the last write of the log.
func written(t *testing.T, dir string, hours int) {
	t.Helper()
	at := time.Now().Add(-time.Duration(hours) * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "log-000001.brood"), at, at); err != nil {
		t.Fatal(err)
	}
}

func names(entries []Entry) (out []string) {
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

func TestScan(t *testing.T) {
	home := t.TempDir()
	for i, name := range []string{"old", "new", "live", "sweep-x/eta=1,seed=1", "sweep-x/eta=1,seed=2"} {
		sourcetest.Write(t, filepath.Join(home, name), sourcetest.Run(2, 8)...)
		written(t, filepath.Join(home, name), []int{9, 3, 20, 5, 4}[i])
	}
	if err := os.WriteFile(filepath.Join(home, "sweep-x", "sweep.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, none := range []string{".claims", "empty", "sweep-x/.claims"} {
		if err := os.Mkdir(filepath.Join(home, none), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s, err := session.Open(filepath.Join(home, "live"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lib := OpenLibrary(home, "")
	entries, err := lib.Scan(home)
	if err != nil || !slices.Equal(names(entries), []string{"live", "sweep-x", "new", "old"}) {
		t.Fatalf("scanned %v, %v; want running runs first, then the latest", names(entries), err)
	}
	folder := entries[1]
	if !entries[0].Running || entries[2].Running || folder.Folder != "sweep" || entries[2].Bytes == 0 {
		t.Errorf("scanned %+v", entries)
	}
	if n := lib.Summary(folder).Runs; n != 2 {
		t.Errorf("the sweep has %d runs, want 2", n)
	}
	if within, err := lib.Scan(folder.Dir); err != nil ||
		!slices.Equal(names(within), []string{"eta=1,seed=2", "eta=1,seed=1"}) {
		t.Errorf("the sweep has %v, %v", names(within), err)
	}
	if !lib.Any() || OpenLibrary(filepath.Join(home, "empty"), "").Any() ||
		OpenLibrary(filepath.Join(home, "nowhere"), "").Any() {
		t.Error("Any is wrong")
	}
	if none, err := lib.Scan(filepath.Join(home, "nowhere")); err != nil || len(none) > 0 {
		t.Errorf("a missing home has %v, %v", none, err)
	}
}

// TestEndedRunsRunAgain: a scan does not try the lock of a run that has ended, but reports it as running as soon as it
// is resumed.
func TestEndedRunsRunAgain(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "one")
	sourcetest.Write(t, dir, append(sourcetest.Run(2, 8),
		event.Record{At: 2e18, State: &event.State{Phase: event.Finished, Round: 8}})...)
	lib := OpenLibrary(home, t.TempDir())
	running := func() (Entry, bool) {
		t.Helper()
		entries, err := lib.Scan(home)
		if err != nil || len(entries) != 1 {
			t.Fatal(entries, err)
		}
		return entries[0], entries[0].Running
	}
	e, now := running()
	if s := lib.Summary(e); now || s.Phase != event.Finished || len(lib.ended()) != 1 {
		t.Fatalf("running %v, %+v; %d have ended", now, s, len(lib.ended()))
	}
	held, err := session.Lock(dir) // as a process that resumes it does before its first record
	if err != nil {
		t.Fatal(err)
	}
	if _, now := running(); !now {
		t.Error("a resumed run is not reported as running")
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if _, now := running(); now {
		t.Error("a run that has ended again is reported as running")
	}
}

// poison makes the log of a session unreadable without changing its size and time, so that results must come from the
// cache.
func poison(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "log-000001.brood")
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, st.Size()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// TestCache: a summary and curves are read from the log once. They are read again if the log has grown, if a cache file
// is damaged, or if another program wrote it.
func TestCache(t *testing.T) {
	home, cache := t.TempDir(), filepath.Join(t.TempDir(), "a", "b")
	dir := filepath.Join(home, "one")
	sourcetest.Write(t, dir, sourcetest.Run(16, 2000)...)
	scan := func(l *Library) Entry {
		entries, err := l.Scan(home)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%v, %v", entries, err)
		}
		return entries[0]
	}
	first := OpenLibrary(home, cache)
	e := scan(first)
	if e.Bytes < worth {
		t.Fatalf("the log has %d bytes, too few to cache its curves", e.Bytes)
	}
	want := first.Summary(e)
	run, err := first.Run(e)
	if err != nil || want.Round != 2000 || want.Members != 16 || want.Score == nil || len(want.Curve) != CurvePoints ||
		!(want.Loss < 0.2) || want.Series != "centre.loss" {
		t.Fatalf("%+v, %v", want, err)
	}
	if err := first.Save(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(cache, "*.cbor"))
	if len(files) != 2 {
		t.Fatalf("the cache has %v, want the list and a run", files)
	}
	poison(t, dir)
	again := OpenLibrary(home, cache)
	got := again.Summary(scan(again))
	if got.Started.Equal(want.Started) {
		got.Started = want.Started // decoded in another location
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("cached as %+v, read as %+v", got, want)
	}
	if kept, err := again.Run(e); err != nil || kept.Rounds != run.Rounds || kept.Dir != dir {
		t.Errorf("cached as %+v, %v", kept, err)
	}
	// From here on the log is damaged: reading it returns an error.
	broken := func(l *Library, what string) {
		t.Helper()
		e := scan(l)
		if _, err := l.Run(e); l.Summary(e).Err == "" || err == nil {
			t.Errorf("%s: the cache was used", what)
		}
	}
	texts := map[string][]byte{}
	for _, f := range files {
		if texts[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	for what, spoil := range map[string]func([]byte) []byte{
		"a flipped bit": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"a cut file":    func(b []byte) []byte { return b[:len(b)/2] },
		"an empty file": func([]byte) []byte { return nil },
	} {
		for f, text := range texts {
			if err := os.WriteFile(f, spoil(slices.Clone(text)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		broken(OpenLibrary(home, cache), what)
		for f, text := range texts {
			if err := os.WriteFile(f, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	was := program
	program = func() string { return "another" }
	broken(OpenLibrary(home, cache), "a cache of another program")
	program = was
	written(t, dir, 1)
	broken(OpenLibrary(home, cache), "a log that was written to since")
}

// TestSummaries: a run has a summary without a cache and without a round; a run that cannot be read has an error.
func TestSummaries(t *testing.T) {
	home := t.TempDir()
	sourcetest.Write(t, filepath.Join(home, "begun"), sourcetest.Run(2, 8)[:3]...)
	sourcetest.Write(t, filepath.Join(home, "whole"), sourcetest.Run(2, 40)...)
	sourcetest.Write(t, filepath.Join(home, "cut"), sourcetest.Run(2, 40)...)
	path := filepath.Join(home, "cut", "log-000001.brood")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/3] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (session.About{Tags: []string{"keep"}}).Write(filepath.Join(home, "begun")); err != nil {
		t.Fatal(err)
	}
	lib := OpenLibrary(home, "")
	entries, err := lib.Scan(home)
	if err != nil || len(entries) != 3 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		s := lib.Summary(e)
		switch e.Name {
		case "begun":
			if s.Err != "" || s.Model != "lenet" || !math.IsNaN(s.Loss) || !slices.Equal(s.About.Tags, []string{"keep"}) {
				t.Errorf("a run without a round: %+v", s)
			}
		case "whole":
			if s.Err != "" || s.Round != 40 || s.Members != 2 || s.Phase != event.Training {
				t.Errorf("a whole run: %+v", s)
			}
		case "cut":
			if s.Err == "" {
				t.Errorf("a damaged run: %+v", s)
			}
		}
	}
	if err := lib.Save(); err != nil {
		t.Error(err)
	}
	// The list without curves agrees with the summaries, whether they are cached or not.
	for what, lib := range map[string]*Library{"cached": lib, "not cached": OpenLibrary(home, "")} {
		list, err := lib.List()
		if err != nil || len(list) != 3 {
			t.Fatal(list, err)
		}
		for _, x := range list {
			i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == x.Name })
			if s := lib.Summary(entries[i]); x.Err != s.Err || x.Round != s.Round || !slices.Equal(x.About.Tags, s.About.Tags) {
				t.Errorf("%s: the list has %+v, the summary %+v", what, x, s.Info)
			}
		}
	}
}

// BenchmarkScan scans a home with 2000 runs.
func BenchmarkScan(b *testing.B) {
	home := b.TempDir()
	for i := range 2000 {
		dir := filepath.Join(home, "run-"+strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"log-000001.brood", "lock"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("1"), 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	lib := OpenLibrary(home, "")
	for b.Loop() {
		if entries, err := lib.Scan(home); err != nil || len(entries) != 2000 {
			b.Fatal(err)
		}
	}
}

// TestTook: the time of a preset is that of its newest finished run.
func TestTook(t *testing.T) {
	home := t.TempDir()
	of := func(preset string, end event.Phase) []event.Record {
		records := slices.Clone(sourcetest.Run(2, 8))
		for i, r := range records {
			if r.Config != nil {
				c := *r.Config
				c.Preset = preset
				records[i].Config = &c
			}
		}
		last := records[len(records)-1].At
		return append(records, event.Record{At: last, State: &event.State{Round: 8, Phase: end}})
	}
	for i, x := range []struct {
		name, preset string
		end          event.Phase
	}{{"old", "mine", event.Finished}, {"stopped", "mine", event.Stopped}, {"other", "other", event.Finished}} {
		sourcetest.Write(t, filepath.Join(home, x.name), of(x.preset, x.end)...)
		written(t, filepath.Join(home, x.name), 9-i)
	}
	lib := OpenLibrary(home, "")
	want := lib.Summary(look(home, "old", nil)).Seconds
	if got := lib.Took("mine"); got != want || !(want > 0) {
		t.Errorf("the last run of mine took %g s, want %g", got, want)
	}
	if got := lib.Took("nobody's"); got != 0 {
		t.Errorf("a preset without a run took %g s", got)
	}
}
