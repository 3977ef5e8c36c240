package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// forge returns a segment with one frame of the header and the stored payload, with valid checksums.
func forge(h header, stored []byte) []byte {
	h.stored, h.payload = uint32(len(stored)), crc(stored)
	b := make([]byte, frameHeader)
	h.put(b)
	return append(append(putSegmentHeader(1, 0, 0), b...), stored...)
}

func zip(t testing.TB, plain []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(plain, nil)
}

// records returns a plain payload of the encoded records.
func records(each ...[]byte) (out []byte) {
	for _, r := range each {
		out = append(binary.LittleEndian.AppendUint32(out, uint32(len(r))), r...)
	}
	return out
}

// TestHostileFrames: each case is refused as damage, and none makes the process grow by more than 64 MiB.
func TestHostileFrames(t *testing.T) {
	zeros := make([]byte, 256<<20)
	nested := append(bytes.Repeat([]byte{0x81}, 100_000), 0)
	edits := []byte{0xa1, 0x02, 0xa1, 0x08, 0x9a} // Plan.Timeline: one byte claims one edit
	edits = binary.BigEndian.AppendUint32(edits, 8_000_000)
	edits = append(edits, bytes.Repeat([]byte{0xf6}, 8_000_000)...)
	one := header{kinds: 2, count: 1}
	with := func(f func(h *header)) header { h := one; f(&h); return h }
	cases := map[string][]byte{
		"bomb":                forge(with(func(h *header) { h.flags, h.plain = flagZstd, 100 }), zip(t, zeros)),
		"declared bomb":       forge(with(func(h *header) { h.flags, h.plain = flagZstd, maxPayload }), zip(t, zeros)),
		"endless bomb":        forge(with(func(h *header) { h.flags, h.plain = flagZstd, maxPayload }), stream(t, zeros)),
		"endless, small":      forge(with(func(h *header) { h.flags, h.plain = flagZstd, 100 }), stream(t, zeros)),
		"less than declared":  forge(with(func(h *header) { h.flags, h.plain = flagZstd, 100 }), zip(t, zeros[:99])),
		"no zstd":             forge(with(func(h *header) { h.flags, h.plain = flagZstd, 100 }), []byte("nothing of the kind")),
		"length 4 GiB":        forge(with(func(h *header) { h.plain = 8 }), []byte{255, 255, 255, 255, 1, 2, 3, 4}),
		"length 0":            forge(with(func(h *header) { h.plain = 4 }), make([]byte, 4)),
		"too few records":     forge(with(func(h *header) { h.plain, h.count = 5, 3 }), records([]byte{0xa0})),
		"too many records":    forge(with(func(h *header) { h.plain = 10 }), records([]byte{0xa0}, []byte{0xa0})),
		"nesting":             forge(with(func(h *header) { h.plain = uint32(len(nested) + 4) }), records(nested)),
		"eight million edits": forge(with(func(h *header) { h.plain = uint32(len(edits) + 4) }), records(edits)),
		"duplicate key":       forge(with(func(h *header) { h.plain = 9 }), records([]byte{0xa2, 0, 1, 0, 2})),
		"two kinds":           forge(with(func(h *header) { h.plain = 9 }), records([]byte{0xa2, 2, 0xa0, 3, 0xa0})),
		"a tag":               forge(with(func(h *header) { h.plain = 8 }), records([]byte{0xa1, 0, 0xc1, 0})),
		"endless map":         forge(with(func(h *header) { h.plain = 6 }), records([]byte{0xbf, 0xff})),
		"not a record":        forge(with(func(h *header) { h.plain = 5 }), records([]byte{0x01})),
	}
	for name, b := range cases {
		b := append(b, forge(header{kinds: 2, count: 1, first: 1, plain: 5}, records([]byte{0xa0}))[segmentHeader:]...)
		dir := place(t, b)
		var before, after goruntime.MemStats
		goruntime.GC()
		goruntime.ReadMemStats(&before)
		got, err := read(t, dir)
		goruntime.ReadMemStats(&after)
		var bad *CorruptError
		if !errors.As(err, &bad) || len(got) != 0 {
			t.Errorf("%s: %d records, %v", name, len(got), err)
		}
		if total := (after.TotalAlloc - before.TotalAlloc) >> 20; (name == "bomb" || name == "endless, small") && total > 8 {
			t.Errorf("a payload of 100 bytes took %d MiB", total)
		}
		if grown := after.Sys - before.Sys; after.Sys > before.Sys && grown > 64<<20 {
			t.Errorf("%s: grown by %d MiB", name, grown>>20)
		}
	}
}

// stream returns a zstd frame without its length.
func stream(t *testing.T, plain []byte) []byte {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	check(t, err)
	_, err = w.Write(plain)
	check(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

// TestHostileHeaders: headers with valid checksums and invalid fields are bad frames.
func TestHostileHeaders(t *testing.T) {
	good := header{kinds: 2, count: 1, plain: 5, stored: 5}
	for name, f := range map[string]func(h *header){
		"flags":            func(h *header) { h.flags = 2 },
		"two lengths":      func(h *header) { h.plain = 6 },
		"huge stored":      func(h *header) { h.stored, h.plain = 1<<32-1, 1<<32-1 },
		"huge plain":       func(h *header) { h.flags, h.plain = flagZstd, maxPayload+1 },
		"no records":       func(h *header) { h.count = 0 },
		"65 records":       func(h *header) { h.count = 65 },
		"keyframe, counts": func(h *header) { h.kinds = 1 },
		"both":             func(h *header) { h.kinds = 3 },
		"round 2^63":       func(h *header) { h.first = 1 << 63 },
	} {
		b := make([]byte, frameHeader)
		good.put(b)
		if _, err := parseHeader(b); err != nil {
			t.Fatal(err)
		}
		h := good
		f(&h)
		h.put(b)
		if _, err := parseHeader(b); !errors.As(err, new(badFrame)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnknownKindsPass: unknown kinds of records and unknown keys are skipped.
func TestUnknownKindsPass(t *testing.T) {
	r := []byte{0xa2, 0x00, 0x05, 0x18, 0x63, 0xa0} // {0: 5, 99: {}}
	dir := place(t, forge(header{kinds: 1 << 31, count: 1, plain: uint32(len(r) + 4)}, records(r)))
	got, err := read(t, dir)
	if err != io.EOF || len(got) != 1 || got[0].At != 5 {
		t.Fatal(got, err)
	}
}

// TestOnlyRegularFiles: a reader does not wait on a device in place of a file of a session.
func TestOnlyRegularFiles(t *testing.T) {
	for _, name := range []string{segmentName(1), segmentName(2), indexName(1), LockName} {
		dir := write(t, manual(), some(5), 1)
		path := filepath.Join(dir, name)
		_ = os.Remove(path)
		if err := os.Symlink(os.DevNull, path); err != nil {
			t.Skip(err)
		}
		x := Inspect(dir)
		if broken := name == segmentName(1) || name == segmentName(2); broken != (x.Err != "") {
			t.Errorf("%s: %q", name, x.Err)
		}
	}
}

// FuzzFrame passes any bytes to the decoders of a frame: they do not panic, and what they accept respects the limits.
func FuzzFrame(f *testing.F) {
	code, err := newCoder()
	if err != nil {
		f.Fatal(err)
	}
	whole := content(f, write(f, manual(), some(70), 70), 1)
	f.Add(whole[segmentHeader:])
	f.Add(forge(header{kinds: 2, count: 1, plain: 5}, records([]byte{0xa0}))[segmentHeader:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= frameHeader { // let the fuzzer past the checksum
			copy(b[32:], le32(crc(b[:32])))
		}
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		plain, err := code.open(h, b[frameHeader:min(len(b), frameHeader+int(h.stored))])
		if err != nil {
			return
		}
		if len(plain) > maxPayload {
			t.Fatal(len(plain))
		}
		each, err := split(plain, int(h.count))
		if err != nil {
			return
		}
		for _, e := range each {
			if r, err := code.decode(e); err == nil {
				if _, ok := kindOf(r); ok {
					if _, _, err := code.record(r); err != nil {
						t.Fatal("read but not written:", err)
					}
				}
			}
		}
	})
}

// FuzzOpen passes any segment and index to a reader and a writer: they do not panic, and they agree.
func FuzzOpen(f *testing.F) {
	dir := write(f, manual(), some(30), 7)
	index, err := os.ReadFile(filepath.Join(dir, indexName(1)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content(f, dir, 1), index)
	f.Add(content(f, dir, 1)[:300], []byte{})
	f.Fuzz(func(t *testing.T, log, index []byte) {
		dir := place(t, log)
		check(t, os.WriteFile(filepath.Join(dir, indexName(1)), index, 0o600))
		before, readErr := read(t, dir)
		if r, err := OpenReader(dir); err == nil {
			_, _, _, _ = r.Keyframe(r.Records())
			_ = r.Seek(r.Records() / 2)
			r.Close()
		}
		Describe(dir)
		s, err := open(dir, manual())
		if err != nil {
			return
		}
		check(t, errors.Join(s.Append(commit(1)), s.Close()))
		after, err := read(t, dir)
		if readErr != io.EOF {
			return // a record inside a valid frame was bad
		}
		if err != io.EOF || len(after) != len(before)+1 {
			t.Fatal(len(before), len(after), err)
		}
	})
}
