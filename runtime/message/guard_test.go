package message

import (
	"bytes"
	"fmt"
	goruntime "runtime"
	"testing"

	"brood/models/engine"
	"brood/runtime/event"
)

// frame is the largest body that a frame carries.
const frame = 8 << 20

func list(head []byte, item []byte) []byte {
	n := min((frame-16-len(head))/len(item), 1<<21-1)
	return append(append(head, 0x9a, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)), bytes.Repeat(item, n)...)
}

// TestHeavyMessages: no message of a worker takes more than 64 MiB to decode, whatever its content.
func TestHeavyMessages(t *testing.T) {
	digests := []byte{0xa1, 5, 0xba, 0, 0, 0xff, 0xff}
	for i := range 1<<16 - 1 {
		digests = append(append(digests, 0x64), fmt.Sprintf("%04x", i)...)
		digests = append(append(digests, 0x98, 32), make([]byte, 32)...)
	}
	for name, m := range map[string]struct {
		kind uint16
		body []byte
	}{
		"null points":    {kindDone, list([]byte{0xa1, 7}, []byte{0xf6})},
		"empty points":   {kindDone, list([]byte{0xa1, 7}, []byte{0xa0})},
		"null tests":     {kindDone, list([]byte{0xa1, 8}, []byte{0xf6})},
		"small values":   {kindDone, list([]byte{0xa1, 7, 0x81, 0xa1, 3}, []byte{0})},
		"null links":     {kindTelemetry, list([]byte{0xa1, 1}, []byte{0xf6})},
		"null files":     {kindSaved, list([]byte{0xa1, 3}, []byte{0xf6})},
		"digests":        {kindDone, digests},
		"a long failure": {kindFailed, append([]byte{0xa1, 2, 0x7a, 0, 0x7f, 0, 0}, bytes.Repeat([]byte("a"), 0x7f0000)...)},
	} {
		if len(m.body) > frame {
			t.Fatalf("%s: %d bytes", name, len(m.body))
		}
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		_, err := Decode(m.kind, m.body)
		goruntime.ReadMemStats(&after)
		grown := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s of %d KiB: %d MiB, %v", name, len(m.body)>>10, grown, err)
		if grown > 64 {
			t.Errorf("%s takes %d MiB", name, grown)
		}
	}
}

// TestGuardAdmits: messages of correct workers pass, even the largest ones.
func TestGuardAdmits(t *testing.T) {
	d := Done{}
	for i := range 20000 {
		d.Digests = append(d.Digests, Digest{fmt.Sprint("momentum/", i), [32]byte{byte(i)}})
	}
	for r := range 100 {
		p := event.Points{Round: uint64(r), Series: "loss"}
		for m := range 4000 {
			p.Members, p.Values = append(p.Members, engine.Member(m)), append(p.Values, 0.1*float64(m))
		}
		d.Points = append(d.Points, p)
	}
	for r := range 20000 {
		d.Points = append(d.Points, event.Points{
			Round:   uint64(r),
			Series:  "loss",
			Members: []engine.Member{1},
			Values:  []float64{0.3},
		})
	}
	kind, body, err := Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(kind, body); err != nil {
		t.Errorf("%d bytes: %v", len(body), err)
	}
}

// TestCleaned: texts lose control characters.
func TestCleaned(t *testing.T) {
	for _, m := range []any{Failed{Err: "a\x1b[2J\nb"}, Saved{Err: "a\x1b[2J\nb"}} {
		kind, body, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(kind, body)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(got)
		if bytes.ContainsAny([]byte(text), "\x1b\n") || !bytes.Contains([]byte(text), []byte("a[2J b")) {
			t.Errorf("%q", text)
		}
	}
}
