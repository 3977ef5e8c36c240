package data

import (
	"slices"
	"strings"
	"testing"
)

// ramp is n images of 1x2x3 whose bytes count up, labels modulo 3.
func ramp(n int) Raster {
	r := Raster{Pixels: make([]byte, n*6), Labels: make([]byte, n)}
	for i := range r.Pixels {
		r.Pixels[i] = byte(i)
	}
	for i := range r.Labels {
		r.Labels[i] = byte(i % 3)
	}
	return r
}

func rampInfo() Info {
	return Info{Name: "ramp", Shape: []int{1, 2, 3}, Classes: 3, Mean: []float32{0.5}, Std: []float32{0.25}}
}

func TestSplitCoversTraining(t *testing.T) {
	s, err := New(rampInfo(), ramp(120), ramp(30), DefaultShare)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(s.Train(), s.Validation())
	slices.Sort(all)
	if !slices.Equal(all, ids(0, 120)) || len(s.Validation()) != 10 {
		t.Errorf("train %v and validation %v are not 110 + 10 of 120", s.Train(), s.Validation())
	}
	if !slices.Equal(s.Test(), ids(120, 150)) {
		t.Errorf("test %v", s.Test())
	}
	if !slices.IsSorted(s.Train()) || !slices.IsSorted(s.Validation()) {
		t.Error("ids do not ascend")
	}
	if s.Validation()[9]-s.Validation()[0] < 20 {
		t.Errorf("validation %v is not spread over the set", s.Validation())
	}
	none, err := s.WithShare(0)
	if err != nil || len(none.Validation()) != 0 || len(none.Train()) != 120 || len(s.Validation()) != 10 {
		t.Errorf("share 0: %d + %d, %v", len(none.Train()), len(none.Validation()), err)
	}
}

func TestGather(t *testing.T) {
	s, err := New(rampInfo(), ramp(12), ramp(3), 0)
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, 12), make([]int32, 2)
	if err := s.Gather([]int32{4, 13}, x, y); err != nil {
		t.Fatal(err)
	}
	want := func(p byte) float32 { return (float32(p)/255 - 0.5) / 0.25 }
	for i := range 6 {
		if x[i] != want(byte(24+i)) || x[6+i] != want(byte(6+i)) {
			t.Errorf("value %d: %v and %v", i, x[i], x[6+i])
		}
	}
	if y[0] != 1 || y[1] != 1 {
		t.Errorf("labels %v", y)
	}
	for _, bad := range []struct {
		ids  []int32
		x, y int
	}{{[]int32{15}, 6, 1}, {[]int32{-1}, 6, 1}, {[]int32{0}, 5, 1}, {[]int32{0}, 6, 2}} {
		if err := s.Gather(bad.ids, make([]float32, bad.x), make([]int32, bad.y)); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

func TestDigestSeesEverything(t *testing.T) {
	base, _ := New(rampInfo(), ramp(12), ramp(3), 0)
	pixel, label, moved := ramp(12), ramp(12), rampInfo()
	pixel.Pixels[70]++
	label.Labels[3] = 2
	moved.Shape = []int{1, 3, 2}
	a, _ := New(rampInfo(), pixel, ramp(3), 0)
	b, _ := New(rampInfo(), label, ramp(3), 0)
	c, _ := New(moved, ramp(12), ramp(3), 0)
	d, _ := New(rampInfo(), ramp(12), ramp(3), 0.5)
	for name, s := range map[string]*Set{"pixel": a, "label": b, "shape": c} {
		if s.Digest() == base.Digest() {
			t.Errorf("a changed %s keeps the digest", name)
		}
	}
	if d.Digest() != base.Digest() || !strings.HasPrefix(d.Digest(), "blake3:") {
		t.Errorf("digest %s of another split, %s before", d.Digest(), base.Digest())
	}
}

func TestNewRefuses(t *testing.T) {
	for name, change := range map[string]func(*Info, *Raster){
		"shape":    func(i *Info, _ *Raster) { i.Shape = []int{6} },
		"zero":     func(i *Info, _ *Raster) { i.Shape = []int{1, 0, 6} },
		"label":    func(_ *Info, r *Raster) { r.Labels[2] = 3 },
		"pixels":   func(_ *Info, r *Raster) { r.Pixels = r.Pixels[1:] },
		"mean":     func(i *Info, _ *Raster) { i.Mean = nil },
		"nothing":  func(_ *Info, r *Raster) { *r = Raster{} },
		"channels": func(i *Info, _ *Raster) { i.Shape = []int{3, 2, 1} },
	} {
		i, r := rampInfo(), ramp(12)
		change(&i, &r)
		if _, err := New(i, r, ramp(3), 0); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, share := range []float64{-0.1, 1, 0.99} {
		if _, err := New(rampInfo(), ramp(12), ramp(3), share); err == nil {
			t.Errorf("share %v: no error", share)
		}
	}
}
