package data

import (
	"slices"
	"strings"
	"testing"
)

// TestViewedFlipped: every row of every image is mirrored, for bytes and numbers, and the set itself is unchanged.
func TestViewedFlipped(t *testing.T) {
	info := Info{Name: "two", Shape: []int{2, 1, 3}, Classes: 2}
	bytes, err := New(info, Raster{Pixels: []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, Labels: []uint16{0, 1}},
		Raster{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := bytes.Viewed(View{Flip: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Image(1); !slices.Equal(got, []byte{9, 8, 7, 12, 11, 10}) ||
		!slices.Equal(bytes.Image(1), []byte{7, 8, 9, 10, 11, 12}) || m.Label(1) != 1 {
		t.Errorf("%v of %v", got, bytes.Image(1))
	}
	values, err := New(info, Raster{Values: []float32{1, 2, 3, 4, 5, 6, 2, 4, 8, 1, 0, 9}, Labels: []uint16{0, 1}},
		Raster{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = values.Viewed(View{Flip: true}); err != nil {
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
	if _, err := flat.Viewed(View{Flip: true}); err == nil || !strings.Contains(err.Error(), "no images") {
		t.Error(err)
	}
}

// TestViewedMoved: pixels are shifted channel by channel; new pixels are black or mirrored at the border, and mirroring
// is applied after the shift.
func TestViewedMoved(t *testing.T) {
	info := Info{Name: "one", Shape: []int{2, 2, 3}, Classes: 2}
	set, err := New(info, Raster{Pixels: []byte{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}, Labels: []uint16{0}},
		Raster{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		view View
		want []byte
	}{
		{View{Down: -1, Right: -1}, []byte{5, 6, 0, 0, 0, 0, 15, 16, 0, 0, 0, 0}},
		{View{Down: 1, Right: 1}, []byte{0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 11, 12}},
		{View{Down: 1, Right: 1, Flip: true}, []byte{0, 0, 0, 2, 1, 0, 0, 0, 0, 12, 11, 0}},
		{View{Down: -1, Right: -1, Reflect: true}, []byte{5, 6, 5, 2, 3, 2, 15, 16, 15, 12, 13, 12}},
		{View{Down: 1, Right: 1, Reflect: true}, []byte{5, 4, 5, 2, 1, 2, 15, 14, 15, 12, 11, 12}},
		{View{}, []byte{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}},
	} {
		m, err := set.Viewed(c.view)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Image(0); !slices.Equal(got, c.want) {
			t.Errorf("%+v gives %v, want %v", c.view, got, c.want)
		}
	}
	if _, err := set.Viewed(View{Down: 2, Right: 2}); err == nil ||
		!strings.Contains(err.Error(), "move images of 2 x 3 by 2 pixels leaves nothing") {
		t.Error(err)
	}
	if _, err := (&Set{Info: info}).Viewed(View{Down: 1, Right: 1}); err == nil ||
		!strings.Contains(err.Error(), "its pixels are numbers") {
		t.Error(err)
	}
}

// TestViews: the option gives the expected number of views, their weights sum to 1, and the first is the unchanged
// image.
func TestViews(t *testing.T) {
	for text, n := range map[string]int{"flip": 2, "shift=1": 3, "flip,shift=2": 6, "reflect=1,flip": 6, "reflect=2": 3,
		" shift=2 , flip": 6} {
		v, err := ParseViews(text)
		if err != nil {
			t.Fatal(err)
		}
		sum, list := 0.0, v.List()
		for _, one := range list {
			sum += one.Weight
		}
		if len(list) != n || sum != 1 || list[0].Flip || list[0].Down != 0 || list[0].Right != 0 ||
			n > 2 && list[1].Reflect != strings.Contains(text, "reflect") {
			t.Errorf("%s: %+v", text, list)
		}
	}
	for _, text := range []string{"", "flip,flip", "shift=0", "shift=-1", "shift", "turn", "shift=1,shift=1",
		"shift=1,reflect=1"} {
		if v, err := ParseViews(text); err == nil || !strings.Contains(err.Error(), "such as flip,shift=1") {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	}
}
