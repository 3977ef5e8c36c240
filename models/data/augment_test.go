package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"brood/models/noise"
)

func augmentKey(position uint64) noise.Key {
	return noise.Key{Seed: 7, Purpose: noise.Order, Round: position, Member: 3}
}

// gradient returns an image whose pixels differ within each plane and are not black.
func gradient(shape ...int) []byte {
	b := make([]byte, shape[0]*shape[1]*shape[2])
	for i := range b {
		b[i] = byte(1 + (i*7)%255)
	}
	return b
}

// naive crops from an explicitly padded or mirrored image, pixel by pixel.
func naive(src []byte, shape []int, a Augment, dy, dx int, flip bool) []byte {
	pad := a.Pad
	c, h, w := shape[0], shape[1], shape[2]
	H, W := h+2*pad, w+2*pad
	padded := make([]byte, c*H*W)
	for k := range c {
		for y := range h {
			for x := range w {
				padded[(k*H+y+pad)*W+x+pad] = src[(k*h+y)*w+x]
			}
		}
		for i := 1; i <= pad && a.Reflect; i++ { // left and right, then rows with their corners
			for y := pad; y < pad+h; y++ {
				row := padded[(k*H+y)*W:][:W]
				row[pad-i], row[pad+w-1+i] = row[pad+i], row[pad+w-1-i]
			}
		}
		for i := 1; i <= pad && a.Reflect; i++ {
			row := func(y int) []byte { return padded[(k*H+y)*W:][:W] }
			copy(row(pad-i), row(pad+i))
			copy(row(pad+h-1+i), row(pad+h-1-i))
		}
	}
	out := make([]byte, len(src))
	for k := range c {
		for y := range h {
			for x := range w {
				from := x
				if flip {
					from = w - 1 - x
				}
				out[(k*h+y)*w+x] = padded[(k*H+y+dy)*W+from+dx]
			}
		}
	}
	return out
}

// TestAugmentIsACrop: apply returns a crop of the padded image, mirrored or not; all of them occur, about equally
// often.
func TestAugmentIsACrop(t *testing.T) {
	shape := []int{2, 3, 4}
	src, dst := gradient(shape...), make([]byte, 24)
	for _, a := range []Augment{{}, {Flip: true}, {Pad: 1}, {Pad: 2, Flip: true}, {Pad: 5}, {Pad: 1, Reflect: true},
		{Pad: 2, Reflect: true, Flip: true}} {
		seen := map[string]int{}
		for dy := range 2*a.Pad + 1 {
			for dx := range 2*a.Pad + 1 {
				seen[string(naive(src, shape, a, dy, dx, false))] = 0
				if a.Flip {
					seen[string(naive(src, shape, a, dy, dx, true))] = 0
				}
			}
		}
		const each = 60
		ways := (2*a.Pad + 1) * (2*a.Pad + 1)
		if a.Flip {
			ways *= 2
		}
		for p := range ways * each {
			a.apply(dst, src, shape, 0, 1, augmentKey(uint64(p)))
			if _, ok := seen[string(dst)]; !ok {
				t.Fatalf("%+v, position %d: %v is no crop of %v", a, p, dst, src)
			}
			seen[string(dst)]++
		}
		// Six standard deviations of a fair draw; all crops outside the image are one picture.
		for img, n := range seen {
			if n < each-47 || n > each+47 && len(seen) == ways {
				t.Errorf("%+v: %v was drawn %d times of %d", a, []byte(img), n, each)
			}
		}
	}
}

// TestAugmentFrozen: the result must never change, since recorded sessions depend on it.
func TestAugmentFrozen(t *testing.T) {
	shape := []int{3, 32, 32}
	src, dst := gradient(shape...), make([]byte, 3*32*32)
	h := sha256.New()
	for p := range uint64(50) {
		Augment{Pad: 4, Flip: true}.apply(dst, src, shape, 0, 1, augmentKey(p<<31))
		h.Write(dst)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != "dd336a675f00563e0ae144b8859ad8f02e7e39c6def62e201d155dd0b105cfbe" {
		t.Errorf("digest %s differs from the recorded one", got)
	}
	small := make([]byte, 9)
	for p, want := range [][]byte{{0, 0, 0, 2, 3, 0, 5, 6, 0}, {0, 0, 0, 2, 1, 0, 5, 4, 0}, {2, 3, 0, 5, 6, 0, 8, 9, 0},
		{3, 2, 1, 6, 5, 4, 9, 8, 7}} {
		Augment{Pad: 1, Flip: true}.apply(small, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, []int{1, 3, 3}, 0, 1,
			augmentKey(uint64(p)))
		if !bytes.Equal(small, want) {
			t.Errorf("position %d: %v, recorded %v", p, small, want)
		}
	}
}

// TestGatherDrawn: a batch of an augmented set contains, for each sample, the normalised crop for its address, as
// computed by naive from coins drawn one by one; other samples are unchanged.
func TestGatherDrawn(t *testing.T) {
	for _, a := range []Augment{{Pad: 2, Flip: true}, {Pad: 2, Reflect: true, Flip: true, Alternate: true}} {
		t.Run(a.String(), func(t *testing.T) { gathers(t, a) })
	}
}

func gathers(t *testing.T, a Augment) {
	plain, err := New(Info{Name: "six", Shape: []int{2, 5, 4}, Classes: 2},
		Raster{Pixels: gradient(2, 5, 4*6), Labels: []uint16{0, 1, 0, 1, 0, 1}}, Raster{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := plain.Augmented(a)
	if err != nil {
		t.Fatal(err)
	}
	if s.Digest() != plain.Digest() || s.Augment() != a || plain.Augment() != (Augment{}) {
		t.Error("the set that was augmented is another")
	}
	ids := []int32{3, 0, 5, 3}
	gather := func(s *Set, at noise.Key) []float32 {
		x, labels := make([]float32, len(ids)*s.Features()), make([]int32, len(ids))
		if err := s.GatherDrawn(ids, at, x, labels); err != nil {
			t.Fatal(err)
		}
		return x
	}
	const cursor = 1<<32 - 2 // the batch crosses the middle of the counter
	got, changed := gather(s, augmentKey(cursor)), 0
	for i, id := range ids {
		k := augmentKey(cursor + uint64(i))
		k.Stream = 1
		flip := k.Below(2, 2) == 1
		if a.Alternate {
			own := noise.Key{Seed: 7, Purpose: noise.Order, Round: uint64(id), Stream: 2, Member: 3}
			flip = (own.Below(0, 2)+(cursor+i)/len(plain.Train()))%2 == 1
		}
		want := naive(plain.Image(id), plain.Shape, a, k.Below(0, 2*a.Pad+1), k.Below(1, 2*a.Pad+1), flip)
		for j, px := range want {
			if got[i*s.Features()+j] != plain.Normal()[j/20][px] {
				t.Fatalf("sample %d, value %d: %v, want pixel %d as %v", i, j, got[i*s.Features()+j], px, plain.Normal()[j/20][px])
			}
		}
		if !bytes.Equal(want, plain.Image(id)) {
			changed++
		}
	}
	if changed < 2 {
		t.Errorf("%d of %d samples changed", changed, len(ids))
	}
	as := gather(plain, noise.Key{})
	if !slices.Equal(gather(s, noise.Key{}), as) || !slices.Equal(gather(plain, augmentKey(cursor)), as) {
		t.Error("samples that are not drawn changed")
	}
}

// TestAlternate: an alternating sample is mirrored in every second pass, about half of the samples in the first,
// wherever they are in a pass, and members draw different coins.
func TestAlternate(t *testing.T) {
	const train, passes = 400, 6
	a, shape, src, dst := Augment{Flip: true, Alternate: true}, []int{1, 1, 2}, []byte{1, 2}, make([]byte, 2)
	of := func(id, pass, place int, member uint32) bool {
		at := augmentKey(uint64(pass*train + place))
		at.Member = member
		a.apply(dst, src, shape, int32(id), train, at)
		return dst[0] == 2
	}
	first, others := 0, 0
	for id := range train {
		began := of(id, 0, (id*7)%train, 3)
		if began {
			first++
		}
		if began != of(id, 0, id, 4) {
			others++
		}
		for pass := range passes {
			if got := of(id, pass, (id*11+pass)%train, 3); got != (began != (pass%2 == 1)) {
				t.Fatalf("sample %d is mirrored in the first pass: %v; in pass %d: %v", id, began, pass+1, got)
			}
		}
	}
	for what, n := range map[string]int{"samples are mirrored in the first pass": first,
		"samples differ between members": others} {
		if n < train/2-60 || n > train/2+60 { // six standard deviations
			t.Errorf("%d of %d %s", n, train, what)
		}
	}
}

func TestAugmentText(t *testing.T) {
	for text, want := range map[string]Augment{"": {}, "none": {}, "flip": {Flip: true}, "pad=4": {Pad: 4},
		"pad=4,flip": {Pad: 4, Flip: true}, "flip, pad=12": {Pad: 12, Flip: true},
		"reflect=2": {Pad: 2, Reflect: true}, "alternate": {Flip: true, Alternate: true},
		"reflect=2,alternate": {2, true, true, true}, "alternate,pad=1": {Pad: 1, Flip: true, Alternate: true}} {
		a, err := ParseAugment(text)
		if err != nil || a != want {
			t.Errorf("%q: %+v, %v", text, a, err)
		}
		if again, err := ParseAugment(a.String()); err != nil || again != a {
			t.Errorf("%q: %q reads as %+v, %v", text, a, again, err)
		}
	}
	for _, text := range []string{"pad", "pad=", "pad=0", "pad=-1", "pad=four", "pad=1,pad=2", "flip,flip", "flip,",
		"rotate", "none,flip", "pad = 4", "pad=1,reflect=1", "flip,alternate", "reflect", "reflect=0"} {
		if a, err := ParseAugment(text); err == nil || a != (Augment{}) {
			t.Errorf("%q: %+v, no error", text, a)
		}
	}
}

func TestAugmentedRefuses(t *testing.T) {
	labels := []uint16{0, 1, 0, 1}
	for wantErr, c := range map[string]struct {
		shape  []int
		values bool
		a      Augment
	}{
		"12 numbers each and no images":      {[]int{12}, false, Augment{Flip: true}},
		"its pixels are numbers":             {[]int{1, 3, 4}, true, Augment{Flip: true}},
		"pad=4 on images of 3 x 4":           {[]int{1, 3, 4}, false, Augment{Pad: 4}},
		"pad=-1 on images of 3 x 4: give at": {[]int{1, 3, 4}, false, Augment{Pad: -1}},
		"reflect=3 on images of 3 x 4: give": {[]int{1, 3, 4}, false, Augment{Pad: 3, Reflect: true}},
	} {
		r := Raster{Pixels: make([]byte, 48), Labels: labels}
		if c.values {
			r.Pixels, r.Values = nil, make([]float32, 48)
			r.Values[0] = 1
		} else {
			r.Pixels[0] = 255
		}
		s, err := New(Info{Name: "own", Shape: c.shape, Classes: 2}, r, Raster{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Augmented(c.a); err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%v, want %q", err, wantErr)
		}
	}
}

func BenchmarkAugment(b *testing.B) {
	shape := []int{3, 32, 32}
	src, dst := gradient(shape...), make([]byte, 3*32*32)
	b.SetBytes(int64(len(src)))
	for p := range b.N {
		Augment{Pad: 4, Flip: true}.apply(dst, src, shape, 0, 1, augmentKey(uint64(p)))
	}
}
