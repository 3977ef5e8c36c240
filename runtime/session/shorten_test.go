package session

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"brood/runtime/event"
)

// head are the records that the tests put before a shortened log.
func head() []event.Record {
	return []event.Record{config(), {At: 2, State: &event.State{Round: 9, Phase: event.Training}}}
}

// TestShorten: at every record the log can be shortened, once or again. It then has the head and all later records,
// under their numbers, and takes new ones; what was removed is gone from the disk.
func TestShorten(t *testing.T) {
	all := some(60)
	for n := uint64(2); n < 60; n++ {
		o := manual()
		o.segment = 500
		dir := write(t, o, all, 3)
		bytes, _, _ := LogSize(dir)
		s, err := open(dir, o)
		check(t, err)
		check(t, s.Shorten(n, head()))
		if m := n + 20; m < 60 {
			check(t, s.Shorten(m, head()))
			n = m
		}
		check(t, errors.Join(s.Append(commit(99)), s.Close()))
		want := slices.Concat(head(), all[n:], []event.Record{commit(99)})
		got, err := read(t, dir)
		if err != io.EOF {
			t.Fatalf("from %d: %v", n, err)
		}
		same(t, got, want)
		r, err := OpenReader(dir)
		check(t, err)
		if r.At() != n-2 || r.First() != n-2 || r.Records() != 61 {
			t.Fatalf("from %d: at %d, from %d to %d", n, r.At(), r.First(), r.Records())
		}
		for k := n - 2; k < 61; k++ {
			check(t, r.Seek(k))
			rec, err := r.Next()
			check(t, err)
			same(t, []event.Record{rec}, want[k-n+2:k-n+3])
		}
		if err := r.Seek(n - 3); n > 2 && err == nil {
			t.Fatalf("from %d: record %d is still there", n, n-3)
		}
		check(t, r.sound())
		r.Close()
		if now, _, ok := LogSize(dir); !ok || n > 30 && now >= bytes {
			t.Fatalf("from %d: %d bytes of %d", n, now, bytes)
		}
	}
}

// TestShortenInterrupted: a writer that is killed while it shortens a log leaves the old or the new one, and the next
// writer removes the rest.
func TestShortenInterrupted(t *testing.T) {
	o := manual()
	o.segment = 500
	all := some(60)
	whole := write(t, o, all, 3)
	n := uint64(40)
	shortened := t.TempDir()
	check(t, os.CopyFS(shortened, os.DirFS(whole)))
	s, err := open(shortened, o)
	check(t, err)
	check(t, s.Shorten(n, head()))
	check(t, s.Close())
	begin := content(t, shortened, 1)
	for name, c := range map[string]struct {
		file string
		data []byte
		want []event.Record
	}{
		"before the new beginning is complete": {beginning, begin[:len(begin)/2], all},
		"before it is renamed":                 {beginning, begin, all},
		"before the others are removed":        {segmentName(1), begin, slices.Concat(head(), all[n:])},
	} {
		dir := filepath.Join(t.TempDir(), "s")
		check(t, os.CopyFS(dir, os.DirFS(whole)))
		check(t, os.WriteFile(filepath.Join(dir, c.file), c.data, 0o600))
		got, err := read(t, dir)
		if err != io.EOF {
			t.Fatalf("%s: %v", name, err)
		}
		same(t, got, c.want)
		s, err := open(dir, o)
		check(t, err)
		check(t, errors.Join(s.Append(commit(99)), s.Close()))
		got, err = read(t, dir)
		if err != io.EOF {
			t.Fatalf("%s: %v", name, err)
		}
		same(t, got, append(slices.Clone(c.want), commit(99)))
		var files int64
		for _, e := range must(os.ReadDir(dir)) {
			if filepath.Ext(e.Name()) == ".brood" {
				files += must(e.Info()).Size()
			}
			if e.Name() == beginning {
				t.Errorf("%s: %s stays", name, beginning)
			}
		}
		if bytes, _, _ := LogSize(dir); bytes != files {
			t.Errorf("%s: the log has %d bytes, its files %d", name, bytes, files)
		}
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// TestShortenBehindReaders: a reader that is open reads all records on; one whose next records were written and removed
// meanwhile gets an error and not silence.
func TestShortenBehindReaders(t *testing.T) {
	o := manual()
	o.segment = 500
	all := some(120)
	dir := write(t, o, all[:60], 3)
	early, err := OpenReader(dir)
	check(t, err)
	defer early.Close()
	s, err := open(dir, o)
	check(t, err)
	check(t, s.Shorten(40, head()))
	got, err := rest(t, early)
	if err != io.EOF {
		t.Fatal(err)
	}
	same(t, got, all[:60])
	for i := 60; i < 120; i += 3 {
		check(t, s.Append(all[i:i+3]...))
	}
	check(t, s.Sync())
	late, err := OpenReader(dir)
	check(t, err)
	defer late.Close()
	check(t, s.Shorten(110, head()))
	if got, err = rest(t, late); err != io.EOF {
		t.Fatal(err)
	}
	same(t, got, slices.Concat(head(), all[40:]))
	if _, err := rest(t, early); !errors.Is(err, ErrShortened) {
		t.Errorf("a reader whose records were removed returns %v", err)
	}
	check(t, s.Close())
}

// TestOpenWhileShortened: a reader that is opened while the log is shortened reads the old or the new one.
func TestOpenWhileShortened(t *testing.T) {
	o := manual()
	o.segment = 500
	all := some(400)
	for range 12 {
		dir := write(t, o, all, 3)
		s, err := open(dir, o)
		check(t, err)
		var shortened sync.WaitGroup
		shortened.Go(func() {
			if err := s.Shorten(390, head()); err != nil {
				t.Error(err)
			}
		})
		for range 50 {
			if got, err := read(t, dir); err != io.EOF || len(got) != 400 && len(got) != 12 {
				t.Errorf("%d records, %v", len(got), err)
			}
		}
		shortened.Wait()
		check(t, s.Close())
	}
}

// TestShortenOnAFullDisk: without space the log stays as it is, and the run goes on.
func TestShortenOnAFullDisk(t *testing.T) {
	o := manual()
	disk := newFaulty()
	o.disk, o.segment = disk, 500
	all := some(60)
	dir := filepath.Join(t.TempDir(), "s")
	s, err := create(dir, o)
	check(t, err)
	check(t, s.Append(all...))
	disk.setCapacity(1)
	var full *DiskError
	if err := s.Shorten(10, head()); !errors.As(err, &full) {
		t.Errorf("on a full disk: %v", err)
	}
	disk.setCapacity(1 << 30)
	for _, n := range []uint64{0, 1, 61} {
		if s.Shorten(n, head()) == nil {
			t.Errorf("the log begins with record %d", n)
		}
	}
	check(t, errors.Join(s.Append(commit(99)), s.Close()))
	got, err := read(t, dir)
	if err != io.EOF {
		t.Fatal(err)
	}
	same(t, got, append(slices.Clone(all), commit(99)))
}
