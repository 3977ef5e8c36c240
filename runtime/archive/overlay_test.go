package archive

import (
	"math"
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/axis"
	"brood/runtime/view"
)

// TestAt: the value under a cursor is that of the drawn line: in a column, between two, and none beyond its ends.
func TestAt(t *testing.T) {
	cols := []view.Bucket{{}, single(4), {}, {}, single(1), {}}
	for i, want := range map[int]float64{1: 4, 2: 3, 3: 2, 4: 1} {
		if x, ok := At(cols, i); !ok || math.Abs(x-want) > 1e-12 {
			t.Errorf("column %d has %g, %v; want %g", i, x, ok, want)
		}
	}
	for _, i := range []int{-1, 0, 5, 6} {
		if x, ok := At(cols, i); ok {
			t.Errorf("column %d has %g, beyond the line", i, x)
		}
	}
}

// TestMeanOfSeeds: a mean covers all runs or none, so that it does not jump where one run ends or has no value.
func TestMeanOfSeeds(t *testing.T) {
	got := Mean([][]view.Bucket{{single(1), single(2), single(3), {}}, {single(3), {}, single(7), single(9)}})
	want := []view.Bucket{{Min: 1, Max: 3, Sum: 4, Count: 2}, {Min: 2, Max: 5, Sum: 7, Count: 2},
		{Min: 3, Max: 7, Sum: 10, Count: 2}, {}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestCachedRuns: a run that was encoded and decoded has the same curves, figures and settings. Set does not change the
// runs that it copies.
func TestCachedRuns(t *testing.T) {
	m := begin(1, nil)
	m.rounds(60)
	read := m.run(t, "a")
	text, err := cbor.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	back := &Run{}
	if err := cbor.Unmarshal(text, back); err != nil {
		t.Fatal(err)
	}
	for a := axis.Rounds; a <= axis.Seconds; a++ {
		lo, hi := read.Span(a)
		x, _ := read.Curve("loss", a, lo, hi, 50)
		if y, ok := back.Curve("loss", a, lo, hi, 50); !ok || !reflect.DeepEqual(x, y) {
			t.Errorf("by %s the curves differ", a)
		}
		if bytes := back.Reached(axis.Bytes, a, lo, hi, 6); !reflect.DeepEqual(bytes[5], single(6000)) ||
			bytes[2].Mean() != 3000 {
			t.Errorf("by %s the bytes sent are %v", a, bytes)
		}
	}
	if !reflect.DeepEqual(read.Settings, back.Settings) || !reflect.DeepEqual(read.Figures, back.Figures) ||
		back.Rounds != 60 {
		t.Errorf("decoded as %+v, want %+v", back, read)
	}
	copied := *back
	read.Dir, back.Dir, copied.Dir = "/one/a", "/two/a", "/three/a"
	for range 2 { // a second set is the same
		set := Set([]*Run{read, back, &copied})
		if set[0].Name != "one/a" || set[1].Name != "two/a" || read.Name != "a" {
			t.Errorf("named %s and %s; the original run %s", set[0].Name, set[1].Name, read.Name)
		}
	}
	for _, damaged := range [][]byte{text[:len(text)/2], {0xa0}} {
		if cbor.Unmarshal(damaged, &Run{}) == nil {
			t.Errorf("%d damaged bytes are decoded as a run", len(damaged))
		}
	}
}
