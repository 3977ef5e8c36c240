package host

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/runtime/checkpoint"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
)

// TestRunKeepsCheckpoints: a run retains the number of checkpoints that the option sets, or the default number, and
// records the option in its log.
func TestRunKeepsCheckpoints(t *testing.T) {
	home := t.TempDir()
	kept := func(name, count string) (n int) {
		o := tiny(200)
		if count != "" {
			if err := option.Checkpoints.Set(&o, count); err != nil {
				t.Fatal(err)
			}
		}
		dir := filepath.Join(home, name)
		saved := 0
		train(t, dir, prepare(t, o), nil, func(r *Run, rec event.Record) {
			if rec.Checkpoint != nil {
				saved++
			}
			if rec.Commit != nil && rec.Commit.To < 190 {
				go func() { _, _ = r.Command(t.Context(), event.Command{Action: event.Save}) }()
			}
		})
		if saved < 3 {
			t.Fatalf("%s: only %d checkpoints were saved", name, saved)
		}
		there, err := os.ReadDir(filepath.Join(dir, session.CheckpointDir))
		if err != nil {
			t.Fatal(err)
		}
		h, err := read(dir, 0)
		if err != nil || h.config.More["checkpoints"] != count {
			t.Errorf("%s: recorded options %v, %v", name, h.config.More, err)
		}
		if _, err := Verify(t.Context(), dir, 1, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return len(there)
	}
	if n := kept("few", "2"); n > 3 { // plus the last good one
		t.Errorf("%d checkpoints remain, want at most 3", n)
	}
	if n := kept("many", ""); n < 3 || n > checkpoint.DefaultCount+1 {
		t.Errorf("%d checkpoints remain with the default", n)
	}
	o := tiny(3)
	for text, want := range map[string]string{"1": "give 2 or more", "2000": "out of bounds"} {
		if err := option.Checkpoints.Set(&o, text); err != nil {
			t.Fatal(err)
		}
		if _, err := Prepare(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s checkpoints: %v", text, err)
		}
	}
}

// TestFullDiskRemovesOlderCheckpoints: an alert about a full disk removes older checkpoints immediately. It does not
// wait for the next checkpoint, which the full disk may prevent.
func TestFullDiskRemovesOlderCheckpoints(t *testing.T) {
	s, err := session.Create(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	there := func() []uint64 {
		rounds, err := session.Checkpoints(s.Dir())
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(rounds)
		return rounds
	}
	r := &Run{Session: s, retained: checkpoint.NewRetention(option.Options{}), shorten: newShortening(Options{}, s, nil)}
	for round := uint64(10); round <= 1000; round += 10 {
		rel := session.CheckpointFile(round, 1, 0)
		path := filepath.Join(s.Dir(), filepath.FromSlash(rel))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o644)); err != nil {
			t.Fatal(err)
		}
		r.prune(event.Record{Commit: &event.Commit{To: round}})
		r.prune(event.Record{Checkpoint: &event.Checkpoint{Round: round, Files: []event.File{{Path: rel, Bytes: 1}}}})
	}
	if got := there(); len(got) < 6 || len(got) != len(r.retained.Paths()) {
		t.Errorf("the files of rounds %v exist, want %v", got, r.retained.Paths())
	}
	r.prune(event.Record{Alert: &event.Alert{Kind: event.AlertDisk}})
	if got := there(); !slices.Equal(got, []uint64{990, 1000}) {
		t.Errorf("on a full disk the files of rounds %v remain", got)
	}
}
