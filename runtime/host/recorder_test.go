package host

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// TestKeyframePosition: a keyframe is the view of exactly the records before its position, so that a seek from it
// applies each record once.
func TestKeyframePosition(t *testing.T) {
	s, err := session.Create(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rs := sourcetest.Run(3, 10)
	d := control.NewServer(s.Dir(), view.New(), nil)
	rec := &recorder{sess: s, control: d}
	if err := rec.Append(rs[:7]...); err != nil { // the first keyframe is due immediately
		t.Fatal(err)
	}
	if err := rec.Append(rs[7:]...); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	r, err := session.OpenReader(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	at, payload, ok, err := r.Keyframe(uint64(len(rs)))
	if err != nil || !ok || at != 7 {
		t.Fatalf("keyframe at %d, %v, %v; want one at 7", at, ok, err)
	}
	var v view.View
	if err := cbor.Unmarshal(payload, &v); err != nil {
		t.Fatal(err)
	}
	if v.Position != at {
		t.Errorf("the view has applied %d records, the keyframe precedes record %d", v.Position, at)
	}
	for _, r := range rs[7:] {
		v.Apply(r)
	}
	if err := sourcetest.Same(&v, d.View()); err != nil {
		t.Error(err)
	}
}

// TestKeyframeTooLarge: a view that exceeds the size limit of keyframes does not end the run. The log has all records.
func TestKeyframeTooLarge(t *testing.T) {
	s, err := session.Create(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rs := sourcetest.Run(3, 10)
	for n := range 17 { // each of a mebibyte, which the view retains
		rs = append(rs, event.Record{Edit: &event.Edit{Algorithm: "sample", Knob: "eta",
			Expr: fmt.Sprint(n) + strings.Repeat(" ", 1<<20)}})
	}
	rec := &recorder{sess: s, control: control.NewServer(s.Dir(), view.New(), nil)}
	for _, r := range rs[:len(rs)-1] {
		rec.framed = time.Now() // no keyframe is due
		if err := rec.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	rec.framed = time.Time{}
	if err := rec.Append(rs[len(rs)-1]); err != nil {
		t.Fatal(err)
	}
	p, err := cbor.Marshal(rec.control.View())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AppendKeyframe(p); !errors.Is(err, session.ErrKeyframe) {
		t.Fatalf("a keyframe of %d bytes: %v; the test needs one over the limit", len(p), err)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range session.Records(s.Dir()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != len(rs) {
		t.Errorf("%d records in the log of %d", n, len(rs))
	}
}

// TestKeyframesAreFew: keyframes take about as much of the log as records, or less. The large view of many members is
// not saved every few seconds.
func TestKeyframesAreFew(t *testing.T) {
	const members, rounds = 400, 150
	s, err := session.Create(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rec := &recorder{sess: s, control: control.NewServer(s.Dir(), view.New(), nil)}
	for _, r := range sourcetest.Run(members, rounds) {
		rec.framed = time.Time{} // a keyframe is due, by time
		if err := rec.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	r, err := session.OpenReader(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	frames, frameBytes, recordBytes, before := 0, 0, 0, uint64(0)
	for rec, err := range r.Rest() {
		if err != nil {
			t.Fatal(err)
		}
		p, err := cbor.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		recordBytes += len(p)
		at, p, ok, err := r.Keyframe(r.At())
		if err != nil {
			t.Fatal(err)
		}
		if ok && (frames == 0 || at > before) {
			frames, frameBytes, before = frames+1, frameBytes+len(p), at
		}
	}
	t.Logf("%d keyframes of %d bytes in all, records of %d", frames, frameBytes, recordBytes)
	if frames < 3 || frameBytes > 2*recordBytes {
		t.Errorf("%d keyframes take %d bytes, the records %d", frames, frameBytes, recordBytes)
	}
}
