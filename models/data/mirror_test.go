package data

import (
	"slices"
	"strings"
	"testing"
)

// TestMirrored: every row of every image is turned round, of bytes and of numbers, and the set itself stays as it is.
func TestMirrored(t *testing.T) {
	info := Info{Name: "two", Shape: []int{2, 1, 3}, Classes: 2}
	bytes, err := New(info, Raster{Pixels: []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, Labels: []uint16{0, 1}}, Raster{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := bytes.Mirrored()
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Image(1); !slices.Equal(got, []byte{9, 8, 7, 12, 11, 10}) || !slices.Equal(bytes.Image(1), []byte{7, 8, 9, 10, 11, 12}) || m.Label(1) != 1 {
		t.Errorf("%v of %v", got, bytes.Image(1))
	}
	values, err := New(info, Raster{Values: []float32{1, 2, 3, 4, 5, 6, 2, 4, 8, 1, 0, 9}, Labels: []uint16{0, 1}}, Raster{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = values.Mirrored(); err != nil {
		t.Fatal(err)
	}
	was, is, label := make([]float32, 6), make([]float32, 6), make([]int32, 1)
	if err := values.Gather([]int32{1}, was, label); err != nil {
		t.Fatal(err)
	}
	if err := m.Gather([]int32{1}, is, label); err != nil {
		t.Fatal(err)
	}
	if want := []float32{was[2], was[1], was[0], was[5], was[4], was[3]}; !slices.Equal(is, want) {
		t.Errorf("%v, want %v", is, want)
	}
	flat := Set{Info: Info{Name: "rows", Shape: []int{4}}}
	if _, err := flat.Mirrored(); err == nil || !strings.Contains(err.Error(), "no images") {
		t.Error(err)
	}
}
