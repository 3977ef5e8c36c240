package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"brood/runtime/testutil"
)

// TestFollowWhileWriting: readers that follow a writer through several segments get each record once and in order.
func TestFollowWhileWriting(t *testing.T) {
	o := manual()
	o.segment, o.flush, o.sync = 20_000, time.Millisecond, 2*time.Millisecond
	dir := filepath.Join(t.TempDir(), "s")
	s, err := create(dir, o)
	check(t, err)
	all := some(6000)
	fail, late := make(chan error, 3), time.Now().Add(testutil.Timeout)
	for range 2 {
		go func() {
			r, err := OpenReader(dir)
			for n := 0; err == nil && n < len(all); {
				rec, e := r.Next()
				switch {
				case e == io.EOF && time.Now().After(late):
					err = fmt.Errorf("no record %d after %s", n, testutil.Timeout)
				case e == io.EOF:
					time.Sleep(100 * time.Microsecond)
				case e != nil:
					err = fmt.Errorf("record %d: %w", n, e)
				case rec.At != all[n].At || rec.Essential() != all[n].Essential():
					err = fmt.Errorf("record %d is another: %+v", n, rec)
				default:
					n++
				}
			}
			fail <- errors.Join(err, r.Close())
		}()
	}
	go func() {
		var err error
		for i := 0; i < len(all) && err == nil; i += 3 {
			err = s.Append(all[i:min(i+3, len(all))]...)
			if i%100 == 0 {
				err = errors.Join(err, s.AppendKeyframe([]byte{1}))
			}
		}
		fail <- err
	}()
	for range 3 {
		check(t, testutil.Receive(t, fail, "end of a reader or the writer"))
	}
	check(t, s.Close())
	if _, err := os.Stat(filepath.Join(dir, segmentName(3))); err != nil {
		t.Fatal("want several segments")
	}
}

// long writes a log of several segments, chunks and keyframes, and returns the positions of the keyframes.
func long(t *testing.T) (dir string, n uint64, keyframes []uint64) {
	o := manual()
	o.segment = 300_000
	dir = filepath.Join(t.TempDir(), "s")
	s, err := create(dir, o)
	check(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for ; n < 12_000; n++ {
		if rng.IntN(150) == 0 {
			check(t, s.AppendKeyframe(fmt.Append(nil, "keyframe ", n, bytes.Repeat([]byte("x"), rng.IntN(2000)))))
			keyframes = append(keyframes, n)
		}
		p := points(n, 5)
		p.At = int64(n)
		for i := range p.Points.Values {
			p.Points.Values[i] = rng.Float64()
		}
		if n%1000 == 999 {
			p.Points, p.Commit = nil, commit(n).Commit
		}
		check(t, s.Append(p))
		if n%500 == 0 {
			check(t, s.Sync())
		}
	}
	check(t, s.Close())
	return dir, n, keyframes
}

func TestSeekAndKeyframes(t *testing.T) {
	dir, n, keyframes := long(t)
	indexed := func(i uint32) string { return filepath.Join(dir, indexName(i)) }
	if st, err := os.Stat(indexed(1)); err != nil || st.Size() < indexHeader+2*indexEntry {
		t.Fatal("the index is too small to be tested", err)
	}
	spoil := map[string]func(b []byte) []byte{
		"as written": nil,
		"absent":     func([]byte) []byte { return nil },
		"short":      func(b []byte) []byte { return b[:indexHeader+indexEntry+5] },
		"flipped":    func(b []byte) []byte { b[indexHeader+indexEntry+1] ^= 1; return b },
		"forged": func(b []byte) []byte { // a boundary moved into a frame, with good checksums
			c := parseIndex(b, 1, segmentBytes)
			if len(c) < 2 {
				return b
			}
			c[0].length, c[1].off, c[1].length = c[0].length+40, c[1].off+40, c[1].length-40
			c[0].kinds, c[1].kinds = ^uint32(0), ^uint32(0)
			b = b[:indexHeader]
			for _, c := range c {
				b = c.append(b)
			}
			return b
		},
	}
	for name, f := range spoil {
		for i := uint32(1); f != nil; i++ {
			b, err := os.ReadFile(indexed(i))
			if err != nil {
				break
			}
			check(t, os.WriteFile(indexed(i), f(b), 0o600))
		}
		seekAll(t, name, dir, n, keyframes)
		rewriteIndexes(t, dir)
	}
}

// rewriteIndexes writes the indexes of all segments as a writer does.
func rewriteIndexes(t *testing.T, dir string) {
	t.Helper()
	for i := uint32(1); ; i++ {
		s, err := openSegment(dir, i)
		if errors.Is(err, os.ErrNotExist) {
			return
		}
		check(t, err)
		check(t, s.extend(true))
		b := putIndexHeader(i)
		for _, c := range s.index.chunks[:len(s.index.chunks)-1] {
			b = c.append(b)
		}
		check(t, os.WriteFile(filepath.Join(dir, indexName(i)), b, 0o600))
		s.file.Close()
	}
}

func seekAll(t *testing.T, name, dir string, n uint64, keyframes []uint64) {
	t.Helper()
	r, err := OpenReader(dir)
	check(t, err)
	defer r.Close()
	if r.Records() != n {
		t.Fatalf("%s: %d records, want %d", name, r.Records(), n)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		to := rng.Uint64N(n)
		if i < 2 {
			to = []uint64{0, n - 1}[i]
		}
		check(t, r.Seek(to))
		for at := to; at < min(n, to+70); at++ {
			rec, err := r.Next()
			if err != nil || rec.At != int64(at) && rec.Commit == nil || r.At() != at+1 {
				t.Fatalf("%s: seek %d, record %d: %+v, %v", name, to, at, rec, err)
			}
		}
		var want uint64
		ok := false
		for _, k := range keyframes {
			if k <= to {
				want, ok = k, true
			}
		}
		before := r.At()
		got, payload, found, err := r.Keyframe(to)
		if err != nil || found != ok || got != want || ok && !bytes.HasPrefix(payload, fmt.Append(nil, "keyframe ", want)) {
			t.Fatalf("%s: keyframe before %d is %d (%v, %v), want %d (%v)", name, to, got, found, err, want, ok)
		}
		if r.At() != before {
			t.Fatal("Keyframe moved the reader")
		}
	}
	check(t, r.Seek(n))
	if _, err := r.Next(); err != io.EOF {
		t.Fatal(name, err)
	}
	if err := r.Seek(n + 1); err == nil {
		t.Fatal(name, "sought beyond the end")
	}
}

// TestIndexOnlyOfSynced: the index lists no chunk that a power failure could remove.
func TestIndexOnlyOfSynced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s, err := create(dir, manual())
	check(t, err)
	defer s.Close()
	for _, r := range bulk(2000) {
		check(t, s.Append(r))
	}
	path := filepath.Join(dir, indexName(1))
	if b, err := os.ReadFile(path); err != nil || len(b) != indexHeader {
		t.Fatal(len(b), err)
	}
	check(t, s.Sync())
	b, err := os.ReadFile(path)
	check(t, err)
	if c := parseIndex(b, 1, segmentBytes); len(c) == 0 || len(c) != len(s.log.index.chunks)-1 {
		t.Fatal(len(c), "chunks are listed of", len(s.log.index.chunks))
	}
}

// TestRecordsGrow: a reader at the end counts the records that are written later.
func TestRecordsGrow(t *testing.T) {
	grow(t, manual())
	o := manual()
	o.segment = 500
	grow(t, o)
}

func grow(t *testing.T, o options) {
	dir := write(t, o, some(10), 3)
	s, err := open(dir, o)
	check(t, err)
	defer s.Close()
	r, err := OpenReader(dir)
	check(t, err)
	defer r.Close()
	check(t, r.Seek(10))
	for i := uint64(11); i < 40; i++ {
		check(t, s.Append(commit(i)))
		if r.Records() != i {
			t.Fatal(r.Records(), i)
		}
		rec, err := r.Next()
		if err != nil || rec.Commit.To != i {
			t.Fatal(rec, err)
		}
	}
	for i := uint64(11); i < 40; i++ {
		check(t, r.Seek(i-1))
		if rec, err := r.Next(); err != nil || rec.Commit.To != i {
			t.Fatal(i, rec, err)
		}
	}
}

// TestSeekAroundDamage: damage stops a reader, but Seek still finds the records before and after it.
func TestSeekAroundDamage(t *testing.T) {
	dir, n, _ := long(t)
	b := content(t, dir, 2)
	b[len(b)/2] ^= 1
	check(t, os.WriteFile(filepath.Join(dir, segmentName(2)), b, 0o600))
	r, err := OpenReader(dir)
	check(t, err)
	defer r.Close()
	got, err := rest(t, r)
	var bad *CorruptError
	if !errors.As(err, &bad) || bad.Segment != segmentName(2) || bad.Frame == 0 {
		t.Fatal(err)
	}
	if _, again := r.Next(); !errors.Is(again, err) {
		t.Fatal("the second error differs", again)
	}
	if err := r.Seek(uint64(len(got)) + 1); !errors.As(err, &bad) {
		t.Fatal(err)
	}
	check(t, r.Seek(n-10))
	if tail, err := rest(t, r); err != io.EOF || len(tail) != 10 {
		t.Fatal(len(tail), err)
	}
	check(t, r.Seek(3))
	if rec, err := r.Next(); err != nil || rec.At != 3 {
		t.Fatal(rec, err)
	}
	if x := Inspect(dir); x.Err != bad.Error() {
		t.Fatalf("a list reports %q, a reader %q", x.Err, bad)
	}
}

// TestInspectOfWholeLogs: Inspect reports no damage for a log that a reader reads: one of several segments, and one
// with a torn end.
func TestInspectOfWholeLogs(t *testing.T) {
	dir, _, _ := long(t)
	if x := Inspect(dir); x.Err != "" {
		t.Error(x.Err)
	}
	r, err := OpenReader(dir)
	check(t, err)
	defer r.Close()
	check(t, r.refresh())
	last := r.segs[len(r.segs)-1]
	size, err := last.size()
	check(t, err)
	check(t, os.Truncate(filepath.Join(dir, last.name()), size-3))
	if x := Inspect(dir); x.Err != "" {
		t.Error(x.Err)
	}
}
