package wire

import (
	"bytes"
	"reflect"
	"testing"
)

// FuzzFrame: no input makes the reader panic, and the writer can write every frame that the reader accepts.
func FuzzFrame(f *testing.F) {
	for _, b := range sampleFrames(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b))
		for {
			h, p, err := r.Next()
			if err != nil {
				return
			}
			head, err := h.Append(nil, p)
			if err != nil {
				t.Fatalf("%+v was read but is not written: %v", h, err)
			}
			h2, p2, err := next(append(head, p...))
			if err != nil || !reflect.DeepEqual(h, h2) || !bytes.Equal(p, p2) {
				t.Fatalf("%+v becomes %+v, %v", h, h2, err)
			}
		}
	})
}

// FuzzMessage: a decoded and cleaned message is unchanged after it is encoded and decoded again.
func FuzzMessage(f *testing.F) {
	for name, b := range sampleFrames(f) {
		if _, ok := samples()[name]; ok {
			f.Add(b[5], b[HeaderSize:])
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, p []byte) {
		m, err := Unmarshal(Header{Kind: Kind(kind)}, p)
		if err != nil {
			return
		}
		frame, err := Marshal(Header{}, m)
		if err != nil {
			return // longer than a frame may be
		}
		h, p, err := next(frame)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Unmarshal(h, p)
		if err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		if _, beat := m.(Heartbeat); !beat && h.Kind != KindRefused && !same(m, again) {
			t.Fatalf("%+v becomes %+v", m, again)
		}
	})
}

// same compares encoded values, so that nil and empty are equal.
func same(a, b Body) bool {
	x, err := enc.Marshal(a)
	y, err2 := enc.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

// FuzzRoster: every roster that ParseRoster accepts can be encoded.
func FuzzRoster(f *testing.F) {
	f.Add(samples()["roster"].(Message).Body)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRoster(b)
		if err != nil {
			return
		}
		for _, s := range r {
			if got, ok := r.Find(s.Index); !ok || got.Index != s.Index {
				t.Fatalf("index %d is not found", s.Index)
			}
		}
	})
}
