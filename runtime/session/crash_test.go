package session

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// place creates a session directory with the segments.
func place(t testing.TB, segments ...[]byte) string {
	t.Helper()
	dir := t.TempDir()
	for i, b := range segments {
		if err := os.WriteFile(filepath.Join(dir, segmentName(uint32(i+1))), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func content(t testing.TB, dir string, number uint32) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, segmentName(number)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// frameEnds returns the offsets of the ends of the frames of a segment.
func frameEnds(b []byte) (out []int) {
	for at := segmentHeader; at < len(b); out = append(out, at) {
		h, err := parseHeader(b[at:])
		if err != nil {
			break
		}
		at += int(h.size())
	}
	return out
}

// TestCutAtEveryByte: a log that is cut anywhere can be opened, has a prefix of its records, reports how much it lost,
// and accepts new records.
func TestCutAtEveryByte(t *testing.T) {
	all := some(8)
	whole := content(t, write(t, manual(), all, 3), 1)
	last := -1
	for n := range whole {
		dir := place(t, whole[:n])
		before, err := read(t, dir)
		if err != io.EOF {
			t.Fatalf("cut at %d: a reader returns %v", n, err)
		}
		same(t, before, all[:len(before)])
		if len(before) < last {
			t.Fatalf("cut at %d: fewer records than before", n)
		}
		last = len(before)

		s, err := open(dir, manual())
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		end := s.log.index.end
		switch rec := s.Recovery(); {
		case n < segmentHeader && (rec == nil || rec.Lost != int64(n)):
			t.Fatalf("cut at %d: %v", n, rec)
		case n >= segmentHeader && rec == nil && end != int64(n):
			t.Fatalf("cut at %d: silent, the log ends at %d", n, end)
		case n >= segmentHeader && rec != nil &&
			(rec.Segment != segmentName(1) || rec.Offset != end || rec.Lost != int64(n)-end || rec.Lost == 0):
			t.Fatalf("cut at %d: %v, the log ends at %d", n, rec, end)
		}
		check(t, errors.Join(s.Append(commit(99)), s.Close()))
		after, err := read(t, dir)
		if err != io.EOF {
			t.Fatalf("cut at %d: %v", n, err)
		}
		same(t, after, append(before, commit(99)))
	}
	if last < len(all)-3 {
		t.Fatal("the last cut lost more than a frame")
	}
}

// TestTornTails: the same as TestCutAtEveryByte for the second of two segments, and for a tail of zeros or random
// bytes.
func TestTornTails(t *testing.T) {
	o := manual()
	o.segment = 1500
	all := some(40)
	dir := write(t, o, all, 3)
	one, two := content(t, dir, 1), content(t, dir, 2)
	if _, err := os.Stat(filepath.Join(dir, segmentName(3))); err == nil {
		t.Fatal("want two segments")
	}
	first, err := read(t, place(t, one))
	if err != io.EOF {
		t.Fatal(err)
	}
	tails := map[string][]byte{"zeros": append(two[:len(two):len(two)], make([]byte, 5000)...),
		"garbage": append(two[:len(two):len(two)], "BRFRBRFR and so on"...),
		"empty":   {}, "header": two[:20], "no frame": two[:segmentHeader], "half a frame": two[:segmentHeader+50]}
	for name, tail := range tails {
		dir := place(t, one, tail)
		before, err := read(t, dir)
		if err != io.EOF || len(before) < len(first) {
			t.Fatal(name, len(before), err)
		}
		follower, err := OpenReader(dir)
		check(t, err)
		for range 2 {
			if _, err := rest(t, follower); err != io.EOF {
				t.Fatal(name, err)
			}
		}
		s, err := open(dir, o)
		check(t, err)
		if (s.Recovery() == nil) != (name == "no frame") {
			t.Fatal(name, s.Recovery())
		}
		check(t, errors.Join(s.Append(commit(99)), s.Close()))
		if more, err := rest(t, follower); err != io.EOF || len(more) != 1 {
			t.Fatalf("%s: a reader that saw the torn tail: %d records, %v", name, len(more), err)
		}
		follower.Close()
		after, err := read(t, dir)
		if err != io.EOF {
			t.Fatal(name, err)
		}
		same(t, after, append(before, commit(99)))
		s, err = open(dir, o)
		check(t, err)
		if s.Recovery() != nil {
			t.Fatalf("%s: recovered twice: %v", name, s.Recovery())
		}
		s.Close()
	}
}

// TestFlipEveryByte: each changed byte is detected. In the last frame it is a torn tail; before, it is damage with its
// position.
func TestFlipEveryByte(t *testing.T) {
	all := some(8)
	dir := write(t, manual(), all, 3)
	whole := content(t, dir, 1)
	r, err := OpenReader(dir)
	check(t, err)
	check(t, r.Seek(uint64(len(all)-1)))
	tail := r.frame
	r.Close()
	for n := range whole {
		b := append([]byte(nil), whole...)
		b[n] ^= 1 << (n % 8)
		dir := place(t, b)
		got, err := read(t, dir)
		same(t, got, all[:len(got)])
		if len(got) == len(all) {
			t.Fatalf("byte %d: not noticed", n)
		}
		s, openErr := open(dir, manual())
		if int64(n) >= tail {
			if err != io.EOF || openErr != nil || s.Recovery() == nil || s.Recovery().Offset != tail {
				t.Fatalf("byte %d in the last frame: %v, %v", n, err, openErr)
			}
			s.Close()
			continue
		}
		for _, err := range []error{err, openErr} {
			var bad *CorruptError
			if !errors.As(err, &bad) || bad.Segment != segmentName(1) || bad.Offset > int64(n) || bad.Reason == "" {
				t.Fatalf("byte %d: %v", n, err)
			}
		}
	}
}

// TestFramesOutOfOrder: complete frames in the wrong place are damage.
func TestFramesOutOfOrder(t *testing.T) {
	b := content(t, write(t, manual(), some(24), 5), 1)
	ends := append([]int{segmentHeader}, frameEnds(b)...)
	frame := func(i int) []byte { return b[ends[i]:ends[i+1]] }
	for name, order := range map[string][]int{"twice": {0, 1, 1, 2}, "left out": {0, 2, 3}, "swapped": {0, 2, 1, 3}} {
		log := b[:segmentHeader:segmentHeader]
		for _, i := range order {
			log = append(log, frame(i)...)
		}
		dir := place(t, log)
		got, err := read(t, dir)
		var bad *CorruptError
		if !errors.As(err, &bad) || len(got) > 10 || bad.Frame != len(got)/5 {
			t.Errorf("%s: %d records, %v", name, len(got), err)
		}
		if s, err := open(dir, manual()); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
			s.Close()
		}
	}
}

func TestMissingAndForeignSegments(t *testing.T) {
	o := manual()
	o.segment = 500
	all := some(60)
	dir := write(t, o, all, 3)
	one, two, three := content(t, dir, 1), content(t, dir, 2), content(t, dir, 3)
	head, err := read(t, place(t, one))
	if err != io.EOF {
		t.Fatal(err)
	}
	gap := place(t, one, two, three)
	check(t, os.Remove(filepath.Join(gap, segmentName(2))))
	forged := append(putSegmentHeader(2, 7, 0), two[segmentHeader:]...)
	for name, c := range map[string]struct {
		dir     string
		segment string
	}{
		"gap":         {gap, segmentName(2)},
		"swapped":     {place(t, one, three, two), segmentName(2)},
		"renumbered":  {place(t, one, forged, three), segmentName(2)},
		"cut earlier": {place(t, one[:len(one)-1], two), segmentName(1)},
		"frames lost": {place(t, one[:segmentHeader], two), segmentName(2)},
	} {
		got, err := read(t, c.dir)
		var bad *CorruptError
		if !errors.As(err, &bad) || bad.Segment != c.segment {
			t.Errorf("%s: a reader returns %v", name, err)
		}
		if len(got) > len(head) {
			t.Errorf("%s: %d records", name, len(got))
		}
	}
	s, err := open(gap, o)
	if err == nil {
		s.Close()
		t.Error("a log with a gap was opened")
	}
	future := append([]byte(nil), one...)
	future[8] = 9
	copy(future[28:], le32(crc(future[:28])))
	var v *VersionError
	if _, err := read(t, place(t, future)); !errors.As(err, &v) || v.Found != 9 {
		t.Error(err)
	}
	if _, err := open(place(t, future), o); !errors.As(err, &v) {
		t.Error(err)
	}
}

func le32(n uint32) []byte { return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)} }
