package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"brood/runtime/event"
)

// TestAbout: the name, the tags and the note of a session are read and listed, and writing them does not change the
// log.
func TestAbout(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "one")
	s, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(event.Record{At: 1e18, Config: &event.Config{Version: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	log := func() string {
		b, err := os.ReadFile(filepath.Join(dir, segmentName(1)))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := log()
	if err := (About{Name: " best so far ", Tags: []string{"b", "a", "b"},
		Note: "as in the paper"}).Write(dir); err != nil {
		t.Fatal(err)
	}
	want := About{Name: "best so far", Tags: []string{"a", "b"}, Note: "as in the paper"}
	if got := ReadAbout(dir); !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if list, err := List(home); err != nil || !reflect.DeepEqual(list[0].About, want) {
		t.Errorf("listed %+v, %v", list, err)
	}
	if got, err := Resolve(home, "best so far"); err != nil || got != dir {
		t.Errorf("resolved by its name to %s, %v", got, err)
	}
	for _, a := range []About{{Name: strings.Repeat("x", 61)}, {Name: "a\x1b[31m"}, {Tags: []string{"two words"}},
		{Tags: []string{""}}, {Note: strings.Repeat("x", 1001)}} {
		if a.Write(dir) == nil {
			t.Errorf("%+v is written", a)
		}
	}
	if got := ReadAbout(dir); !reflect.DeepEqual(got, want) {
		t.Errorf("after refused texts: %+v", got)
	}
	// The session can still be opened, and an invalid file is read as no text.
	if s, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || log() != before {
		t.Errorf("the log has changed, %v", err)
	}
	for _, text := range []string{"{", `{"name":"\u001b[2J"}`, `{"name":7}`} {
		if err := os.WriteFile(filepath.Join(dir, AboutName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ReadAbout(dir); !reflect.DeepEqual(got, About{}) {
			t.Errorf("%s is read as %+v", text, got)
		}
	}
	if err := (About{}).Write(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, AboutName)); err == nil {
		t.Error("an empty file stays")
	}
	if (About{Name: "x"}).Write(home) == nil {
		t.Error("a directory without a log is written to")
	}
}

// TestRoundNotes: notes on rounds are ordered, one per round, and do not change the other texts.
func TestRoundNotes(t *testing.T) {
	a := About{Name: "first"}.Noted(40, "b").Noted(7, " a ").Noted(40, "c").Noted(90, "d").Noted(90, " ")
	if want := []RoundNote{{7, "a"}, {40, "c"}}; !slices.Equal(a.Rounds, want) || a.Name != "first" {
		t.Errorf("%+v", a)
	}
	for name, bad := range map[string]About{
		"long":  About{}.Noted(1, strings.Repeat("x", maxRoundNote+1)),
		"lines": About{}.Noted(1, "a\nb"),
		"order": {Rounds: []RoundNote{{3, "a"}, {2, "b"}}},
		"twice": {Rounds: []RoundNote{{3, "a"}, {3, "b"}}},
		"too many": {Rounds: func() (all []RoundNote) {
			for i := range maxRoundNotes + 1 {
				all = append(all, RoundNote{uint64(i), "a"})
			}
			return all
		}()},
	} {
		if bad.Check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	s, err := create(filepath.Join(t.TempDir(), "s"), manual())
	check(t, err)
	check(t, s.Append(config()))
	check(t, s.Close())
	check(t, About{}.Noted(7, "a").Write(s.Dir()))
	if got := ReadAbout(s.Dir()); len(got.Rounds) != 1 {
		t.Errorf("%+v", got)
	}
	check(t, ReadAbout(s.Dir()).Noted(7, "").Write(s.Dir()))
	if _, err := os.Stat(filepath.Join(s.Dir(), AboutName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty file stays: %v", err)
	}
}
