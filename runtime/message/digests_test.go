package message

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"brood/runtime/event"
)

// TestDigestsAreAMap: digests are encoded and decoded exactly like a map, and a report without digests has no key.
func TestDigestsAreAMap(t *testing.T) {
	type mapped struct {
		Worker   int                 `cbor:"0,keyasint"`
		Epoch    uint32              `cbor:"1,keyasint"`
		Digests  map[string][32]byte `cbor:"5,keyasint,omitempty"`
		Progress event.Progress      `cbor:"6,keyasint,omitempty"`
		Waited   int64               `cbor:"16,keyasint,omitempty"`
	}
	all := map[string][32]byte{"": {7}, "/": {8}, "x/shared": {9}, "/shared": {1}, "shared": {2}, "xy/3": {3}, "x-/3": {4}}
	for i := range 300 {
		all[fmt.Sprint("x/", i)], all[fmt.Sprint("momentum/", 7*i)] = [32]byte{1, byte(i)}, [32]byte{byte(i), 255}
	}
	for _, m := range []map[string][32]byte{nil, {}, {"x/0": {1}}, all} {
		want, err := encoding.Marshal(mapped{Worker: 3, Epoch: 4, Digests: m, Waited: 5})
		if err != nil {
			t.Fatal(err)
		}
		kind, got, err := Encode(Done{Worker: 3, Epoch: 4, Digests: DigestsOf(m), Waited: 5})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d digests are %.99x (%v), want %.99x", len(m), got, err, want)
		}
		back, err := Decode(kind, want)
		if err != nil || !slices.Equal(back.(Done).Digests, DigestsOf(m)) {
			t.Errorf("%d digests come back as %.999v (%v)", len(m), back, err)
		}
	}
	for name, body := range map[string][]byte{
		"twice":       append(append([]byte{0xa3, 0, 3, 1, 4, 5, 0xa2}, pair("x/0")...), pair("x/0")...),
		"no map":      {0xa3, 0, 3, 1, 4, 5, 0x81, 0},
		"no hash":     {0xa3, 0, 3, 1, 4, 5, 0xa1, 0x61, 'x', 0x61, 'y'},
		"numbers":     append([]byte{0xa3, 0, 3, 1, 4, 5, 0xa1, 1}, pair("x/0")[4:]...),
		"indefinite":  append(append([]byte{0xa3, 0, 3, 1, 4, 5, 0xbf}, pair("x/0")...), 0xff),
		"not in UTF8": append([]byte{0xa3, 0, 3, 1, 4, 5, 0xa1, 0x61, 0xff}, pair("x/0")[4:]...),
	} {
		var m mapped
		if wants := decoding.Unmarshal(body, &m); (wants == nil) != (name == "not in UTF8") {
			t.Fatalf("%s: a map of them is decoded with %v", name, wants)
		} else if d, err := Decode(kindDone, body); (err == nil) != (wants == nil) {
			t.Errorf("%s: decoded as %v with %v, and a map with %v", name, d, err, wants)
		}
	}
}

// pair is a row and its hash in the wire encoding.
func pair(row string) []byte {
	return append(append([]byte{0x60 | byte(len(row))}, row...), append([]byte{0x58, 32}, make([]byte, 32)...)...)
}

// TestDigestsInOrder: shared rows come first, then the rows of each block by member number.
func TestDigestsInOrder(t *testing.T) {
	want := []string{"progress/shared", "x/shared", "m/3", "m/20", "m/100", "x/3", "x/20", "x/100"}
	d := Digests{}
	for _, row := range want {
		d = append(d, Digest{Row: row})
	}
	if !d.InOrder() {
		t.Error("these are in order")
	}
	for i := range d[1:] {
		s := slices.Clone(d)
		if s[i], s[i+1] = s[i+1], s[i]; s.InOrder() {
			t.Errorf("%q before %q passes", s[i].Row, s[i+1].Row)
		}
		if s[i] = s[i+1]; s.InOrder() {
			t.Errorf("%q twice passes", s[i].Row)
		}
	}
	s := slices.Clone(d)
	slices.Reverse(s)
	if s.Sort(); !slices.Equal(s, d) {
		t.Errorf("sorted as %v", s)
	}
}
