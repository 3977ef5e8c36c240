package host

import (
	"path/filepath"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/door"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// A keyframe is the view of exactly the records before it: a seek that starts there misses none and folds none twice.
func TestKeyframeStandsBetweenRecords(t *testing.T) {
	s, err := session.Create(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rs := sourcetest.Run(3, 10)
	d := door.NewServer(s.Dir(), view.New(), nil)
	rec := &recorder{sess: s, door: d}
	if err := rec.Append(rs[:7]...); err != nil { // the first is due at once
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
		t.Errorf("the view is of %d records, the keyframe stands before record %d", v.Position, at)
	}
	for _, r := range rs[7:] {
		v.Apply(r)
	}
	if err := sourcetest.Same(&v, d.View()); err != nil {
		t.Error(err)
	}
}
