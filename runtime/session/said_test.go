package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSaid: lines come back clean, with their times, of several processes, and the file stays small.
func TestSaid(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 11, 24, 16, 0, 0, 0, time.UTC)
	if lines, err := Said(dir); err != nil || len(lines) != 0 {
		t.Fatalf("of a session of which nothing was said there is %v, %v", lines, err)
	}
	check(t, Say(dir, "worker 1 joined\n\n  a second\x1b[2J line\xff", now))
	check(t, os.WriteFile(filepath.Join(dir, HostLog), []byte("panic: x\n\tat y\n"), 0o600))
	lines, err := Said(dir)
	if err != nil || len(lines) != 4 || lines[0] != (Line{now.UnixNano(), "worker 1 joined"}) || lines[1].Text != "a second [2J line" || lines[3].Text != "at y" || lines[3].At == 0 {
		t.Fatalf("%+v, %v", lines, err)
	}

	// What the process before said goes to what is kept.
	check(t, KeepSaid(dir))
	if _, err := os.Stat(filepath.Join(dir, HostLog)); err != nil {
		t.Errorf("where there is no session yet it is kept: %v", err)
	}
	s, err := Create(t.TempDir())
	check(t, err)
	check(t, s.Close())
	check(t, os.Rename(filepath.Join(dir, HostLog), filepath.Join(s.Dir(), HostLog)))
	check(t, os.Rename(filepath.Join(dir, SaidFile), filepath.Join(s.Dir(), SaidFile)))
	dir = s.Dir()
	check(t, KeepSaid(dir))
	check(t, KeepSaid(dir))
	if again, err := Said(dir); err != nil || len(again) != 4 || again[3].Text != "at y" {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := os.Stat(filepath.Join(dir, HostLog)); !os.IsNotExist(err) {
		t.Errorf("it is there twice: %v", err)
	}

	f, err := os.OpenFile(filepath.Join(dir, SaidFile), os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	_, err = f.WriteString("no time here\n" + strings.Repeat("2026-11-24T16:00:00.000Z old\n", 12000))
	check(t, err)
	check(t, f.Close())
	for i := range 3 {
		check(t, Say(dir, fmt.Sprint("new ", i), now))
	}
	lines, err = Said(dir)
	stat, failed := os.Stat(filepath.Join(dir, SaidFile))
	if err != nil || failed != nil || stat.Size() > saidMost || len(lines) < 1000 || lines[0].Text != "old" || lines[len(lines)-1].Text != "new 2" {
		t.Errorf("%d lines from %+v to %+v in %d bytes, %v", len(lines), lines[0], lines[len(lines)-1], stat.Size(), err)
	}
}
