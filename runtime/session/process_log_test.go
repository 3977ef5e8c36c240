package session

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestProcessLog: the lines of several processes are returned in printable form with their times, and the file has a
// bounded size.
func TestProcessLog(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 11, 24, 16, 0, 0, 0, time.UTC)
	if lines, err := ProcessLog(dir); err != nil || len(lines) != 0 {
		t.Fatalf("the process log of an empty session is %v, %v", lines, err)
	}
	check(t, AppendProcessLog(dir, "worker 1 joined\n\n  a second\x1b[2J line\xff", now))
	check(t, os.WriteFile(filepath.Join(dir, HostLog), []byte("panic: x\n\tat y\n"), 0o600))
	lines, err := ProcessLog(dir)
	if err != nil || len(lines) != 4 || lines[0] != (Line{At: now.UnixNano(), Text: "worker 1 joined"}) ||
		lines[1].Text != "a second [2J line" || lines[3].Text != "at y" || lines[3].At == 0 {
		t.Fatalf("%+v, %v", lines, err)
	}

	// KeepHostLog appends the standard error of the previous process to the process log.
	check(t, KeepHostLog(dir))
	if _, err := os.Stat(filepath.Join(dir, HostLog)); err != nil {
		t.Errorf("HostLog is removed from a folder without a session: %v", err)
	}
	s, err := Create(t.TempDir())
	check(t, err)
	check(t, s.Close())
	check(t, os.Rename(filepath.Join(dir, HostLog), filepath.Join(s.Dir(), HostLog)))
	check(t, os.Rename(filepath.Join(dir, ProcessLogFile), filepath.Join(s.Dir(), ProcessLogFile)))
	dir = s.Dir()
	check(t, KeepHostLog(dir))
	check(t, KeepHostLog(dir))
	if again, err := ProcessLog(dir); err != nil || len(again) != 4 || again[3].Text != "at y" {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := os.Stat(filepath.Join(dir, HostLog)); !os.IsNotExist(err) {
		t.Errorf("HostLog was not removed: %v", err)
	}

	f, err := os.OpenFile(filepath.Join(dir, ProcessLogFile), os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	_, err = f.WriteString("no time here\n" + strings.Repeat("2026-11-24T16:00:00.000Z old\n", 12000))
	check(t, err)
	check(t, f.Close())
	for i := range 3 {
		check(t, AppendProcessLog(dir, fmt.Sprint("new ", i), now))
	}
	lines, err = ProcessLog(dir)
	stat, failed := os.Stat(filepath.Join(dir, ProcessLogFile))
	if err != nil || failed != nil || stat.Size() > processLogMost || len(lines) < 1000 || lines[0].Text != "old" ||
		lines[len(lines)-1].Text != "new 2" {
		t.Errorf("%d lines from %+v to %+v in %d bytes, %v", len(lines), lines[0], lines[len(lines)-1], stat.Size(), err)
	}
}

// TestHostLogIsMerged: the reason why a process ended, which is in the process log and on standard error, is returned
// once.
func TestHostLogIsMerged(t *testing.T) {
	s, err := Create(filepath.Join(t.TempDir(), "s"))
	check(t, err)
	check(t, s.Close())
	dir, now := s.Dir(), time.Now()
	host := filepath.Join(dir, HostLog)
	check(t, AppendProcessLog(dir, "the run failed: x", now.Add(-time.Hour))) // of another process
	check(t, os.WriteFile(host, []byte("brood: the run failed: x\n"), 0o600))
	if lines, err := ProcessLog(dir); err != nil || len(lines) != 2 || !lines[1].Late {
		t.Errorf("an old line hides a line of HostLog: %+v, %v", lines, err)
	}
	check(t, AppendProcessLog(dir, "the run failed: y\ntwice", now))
	check(t, os.WriteFile(host, []byte("a warning\nbrood: the run failed: y\ntwice\n"), 0o600))
	want := "[the run failed: x the run failed: y twice a warning]"
	for range 2 {
		lines, err := ProcessLog(dir)
		var texts []string
		for _, l := range lines {
			texts = append(texts, l.Text)
		}
		if got := fmt.Sprint(texts); err != nil || got != want {
			t.Errorf("process log %s, %v: want %s", got, err, want)
		}
		check(t, KeepHostLog(dir))
	}
}

// TestLongLinesAreCut: a long line ends with the constant cut, once.
func TestLongLinesAreCut(t *testing.T) {
	dir := t.TempDir()
	check(t, AppendProcessLog(dir, strings.Repeat("ä", lineMost), time.Now()))
	lines, err := ProcessLog(dir)
	if err != nil || len(lines) != 1 || len(lines[0].Text) > lineMost || strings.Count(lines[0].Text, cut) != 1 ||
		!strings.HasSuffix(lines[0].Text, "ä"+cut) {
		t.Errorf("%+v, %v", lines, err)
	}
}

// TestConcurrentAppends: processes that truncate the file at the same time leave complete lines and no other file.
func TestConcurrentAppends(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, ProcessLogFile),
		[]byte(strings.Repeat("2026-11-24T16:00:00.000Z old\n", processLogMost/29)), 0o600))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				if err := AppendProcessLog(dir, strings.Repeat("x", lineMost-1)+"\n"+strings.Repeat("y", lineMost-1),
					time.Now()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	lines, err := ProcessLog(dir)
	check(t, err)
	for _, l := range lines {
		if n := len(l.Text); l.At == 0 || n != 3 && n != lineMost-1 {
			t.Fatalf("a line of %d bytes at %d", n, l.At)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("files %v", files)
	}
}

// TestKnownLines: a client gets only lines that it does not have, and all lines if the file was truncated.
func TestKnownLines(t *testing.T) {
	lines := []Line{{At: 1, Text: "a"}, {At: 2, Text: "b"}, {At: 9, Text: "late", Late: true}}
	h := KnownLinesOf(lines)
	more := slices.Insert(slices.Clone(lines), 2, Line{At: 3, Text: "c"})
	for _, c := range []struct {
		known KnownLines
		lines []Line
		want  int
	}{{h, lines, 2}, {h, more, 2}, {KnownLines{}, lines, 0}, {h, lines[1:], 0}, {h, lines[:1], 0},
		{KnownLines{-1, 0}, lines, 0}, {KnownLinesOf(nil), lines, 0}} {
		if n := c.known.After(c.lines); n != c.want {
			t.Errorf("%+v of %v: after %d, want %d", c.known, c.lines, n, c.want)
		}
	}
}
