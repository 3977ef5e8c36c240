package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
)

// saves gives a retention checkpoints of so many bytes at the rounds.
func saves(k *retention, bytes int64, rounds ...uint64) {
	for _, r := range rounds {
		files := []event.File{{Path: fmt.Sprint("checkpoints/", r, "/x"), Bytes: bytes}}
		k.take(event.Record{Checkpoint: &event.Checkpoint{Round: r, Files: files}})
	}
}

// again is how many rounds a branch after a round executes again.
func (k *retention) again(at uint64) uint64 {
	from := uint64(0)
	for _, cp := range k.cps {
		if cp.round <= at {
			from = max(from, cp.round)
		}
	}
	return at - from
}

// As long as the bounds allow, a branch after any round executes no more rounds again than lie between it and the
// newest checkpoint, or than between two checkpoints; and they are few.
func TestCheckpointsStayNear(t *testing.T) {
	const every = 10
	k := retention{maxCount: 1000, maxBytes: 1 << 40}
	for r := uint64(every); r <= 1000*every; r += every {
		saves(&k, 1, r)
		for at := uint64(1); at <= r; at++ {
			if n := k.again(at); n > max(r-at, every) {
				t.Fatalf("with the newest at %d, a branch after %d executes %d rounds again", r, at, n)
			}
		}
	}
	if n := len(k.cps); n > 20 {
		t.Errorf("of 1000 checkpoints %d stay", n)
	}
}

func TestCheckpointsAreBounded(t *testing.T) {
	rounds := func(k retention) (out []uint64) {
		for _, cp := range k.cps {
			out = append(out, cp.round)
		}
		return out
	}
	few, small := retention{maxCount: 5, maxBytes: 1 << 40}, retention{maxCount: 100, maxBytes: 35}
	none, old := retention{maxCount: 2, maxBytes: 1 << 40}, retention{maxCount: 100, maxBytes: 5}
	for r := uint64(10); r <= 10_000; r += 10 {
		for _, k := range []*retention{&few, &small, &none, &old} {
			saves(k, 10, r)
		}
		if len(few.cps) > 5 || len(small.cps) > 5 || len(none.cps) > 2 || len(old.cps) > 2 {
			t.Fatalf("at %d there are %d, %d, %d and %d", r, len(few.cps), len(small.cps), len(none.cps), len(old.cps))
		}
	}
	for name, k := range map[string]retention{"2 at most": none, "large ones": old} {
		if got := rounds(k); !slices.Equal(got, []uint64{9990, 10_000}) {
			t.Errorf("%s: %v stay", name, got)
		}
	}
	if got := rounds(few); len(got) != 5 || got[0] > 9500 {
		t.Errorf("of many 5 stay: %v", got)
	}
}

// A run that went back has nothing of what it undid, and one whose disk is full keeps what it goes on from.
func TestCheckpointsAfterTrouble(t *testing.T) {
	k := newRetention(option.Options{})
	for r := uint64(10); r <= 200; r += 10 {
		saves(&k, 1, r)
	}
	k.take(event.Record{Plan: &event.Plan{At: 185}})
	if n := len(k.cps); n < 3 || k.cps[n-1].round > 185 {
		t.Errorf("after it went back to 185: %+v", k.cps)
	}
	saves(&k, 1, 190, 200, 210)
	k.take(event.Record{Alert: &event.Alert{Kind: event.AlertDisk}})
	if n := len(k.cps); n != 2 || k.cps[0].round != 200 {
		t.Errorf("on a full disk: %+v", k.cps)
	}
	k.dropMissing(t.TempDir())
	if len(k.cps) > 0 || k.paths() != nil {
		t.Error("what has no file stays")
	}
	if k = newRetention(option.Options{More: map[string]string{"checkpoints": "3"}}); k.maxCount != 3 {
		t.Errorf("3 are %d", k.maxCount)
	}
}

// A run keeps as many as it was told, says so in its log, and goes on with that.
func TestRunKeepsCheckpoints(t *testing.T) {
	home := t.TempDir()
	kept := func(name, told string) (n int) {
		o := tiny(200)
		if told != "" {
			if err := option.Checkpoints.Set(&o, told); err != nil {
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
			t.Fatalf("%s: only %d were saved", name, saved)
		}
		there, err := os.ReadDir(filepath.Join(dir, session.CheckpointDir))
		if err != nil {
			t.Fatal(err)
		}
		h, err := read(dir, 0)
		if err != nil || h.config.Told["checkpoints"] != told {
			t.Errorf("%s: the log was told %v, %v", name, h.config.Told, err)
		}
		if _, err := Verify(t.Context(), dir, 1, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return len(there)
	}
	if n := kept("few", "2"); n > 3 { // with the newest sane one
		t.Errorf("of a run that keeps 2 there are %d", n)
	}
	if n := kept("many", ""); n < 3 || n > defaultCheckpoints+1 {
		t.Errorf("of a run that was told nothing there are %d", n)
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

// What stays is what is on the disk. When that is full, older checkpoints make room at once, and not with the next one,
// which may never be.
func TestFullDiskTakesOlderCheckpoints(t *testing.T) {
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
	r := &Run{Session: s, retained: newRetention(option.Options{})}
	for round := uint64(10); round <= 1000; round += 10 {
		rel := session.CheckpointFile(round, 1, 0)
		path := filepath.Join(s.Dir(), filepath.FromSlash(rel))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o644)); err != nil {
			t.Fatal(err)
		}
		r.prune(event.Record{Commit: &event.Commit{To: round}})
		r.prune(event.Record{Checkpoint: &event.Checkpoint{Round: round, Files: []event.File{{Path: rel, Bytes: 1}}}})
	}
	var want []uint64
	for _, x := range r.retained.cps {
		want = append(want, x.round)
	}
	if got := there(); len(got) < 6 || !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
	r.prune(event.Record{Alert: &event.Alert{Kind: event.AlertDisk}})
	if got := there(); !slices.Equal(got, []uint64{990, 1000}) {
		t.Errorf("on a full disk %v are left", got)
	}
}
