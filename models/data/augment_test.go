package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"brood/models/noise"
)

var augmentKey = noise.Key{Seed: 7, Purpose: noise.Order, Member: 3}

// gradient is an image without two equal pixels in a plane, none black.
func gradient(shape ...int) []byte {
	b := make([]byte, shape[0]*shape[1]*shape[2])
	for i := range b {
		b[i] = byte(1 + (i*7)%255)
	}
	return b
}

// naive crops from an image that is really padded, pixel by pixel.
func naive(src []byte, shape []int, pad, dy, dx int, flip bool) []byte {
	c, h, w := shape[0], shape[1], shape[2]
	H, W := h+2*pad, w+2*pad
	padded := make([]byte, c*H*W)
	for k := range c {
		for y := range h {
			for x := range w {
				padded[(k*H+y+pad)*W+x+pad] = src[(k*h+y)*w+x]
			}
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

// What Apply draws is one of the crops of the padded image, mirrored or not, all of them occur, and about equally often.
func TestAugmentIsACrop(t *testing.T) {
	shape := []int{2, 3, 4}
	src, dst := gradient(shape...), make([]byte, 24)
	for _, a := range []Augment{{}, {Flip: true}, {Pad: 1}, {Pad: 2, Flip: true}, {Pad: 5}} {
		seen := map[string]int{}
		for dy := range 2*a.Pad + 1 {
			for dx := range 2*a.Pad + 1 {
				seen[string(naive(src, shape, a.Pad, dy, dx, false))] = 0
				if a.Flip {
					seen[string(naive(src, shape, a.Pad, dy, dx, true))] = 0
				}
			}
		}
		const each = 60
		ways := (2*a.Pad + 1) * (2*a.Pad + 1)
		if a.Flip {
			ways *= 2
		}
		for p := range ways * each {
			if err := a.Apply(dst, src, shape, augmentKey, uint64(p)); err != nil {
				t.Fatal(err)
			}
			if _, ok := seen[string(dst)]; !ok {
				t.Fatalf("%+v, position %d: %v is no crop of %v", a, p, dst, src)
			}
			seen[string(dst)]++
		}
		for img, n := range seen { // six deviations of a fair draw; crops beside the image are all one picture
			if n < each-47 || n > each+47 && len(seen) == ways {
				t.Errorf("%+v: %v was drawn %d times of %d", a, []byte(img), n, each)
			}
		}
	}
}

// Frozen: every session recorded with augmentation depends on it.
func TestAugmentFrozen(t *testing.T) {
	shape := []int{3, 32, 32}
	src, dst := gradient(shape...), make([]byte, 3*32*32)
	h := sha256.New()
	for p := range uint64(50) {
		if err := (Augment{Pad: 4, Flip: true}).Apply(dst, src, shape, augmentKey, p<<31); err != nil {
			t.Fatal(err)
		}
		h.Write(dst)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != "dd336a675f00563e0ae144b8859ad8f02e7e39c6def62e201d155dd0b105cfbe" {
		t.Errorf("digest %s differs from the recorded one", got)
	}
	small := make([]byte, 9)
	for p, want := range [][]byte{{0, 0, 0, 2, 3, 0, 5, 6, 0}, {0, 0, 0, 2, 1, 0, 5, 4, 0}, {2, 3, 0, 5, 6, 0, 8, 9, 0}, {3, 2, 1, 6, 5, 4, 9, 8, 7}} {
		if err := (Augment{Pad: 1, Flip: true}).Apply(small, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, []int{1, 3, 3}, augmentKey, uint64(p)); err != nil || !bytes.Equal(small, want) {
			t.Errorf("position %d: %v, recorded %v (%v)", p, small, want, err)
		}
	}
}

func TestAugmentDependsOnItsAddress(t *testing.T) {
	shape := []int{1, 16, 16}
	src := gradient(shape...)
	draw := func(k noise.Key, from uint64) (all []byte) {
		dst := make([]byte, len(src))
		for p := range uint64(20) {
			if err := (Augment{Pad: 4, Flip: true}).Apply(dst, src, shape, k, from+p); err != nil {
				t.Fatal(err)
			}
			all = append(all, dst...)
		}
		return all
	}
	base := draw(augmentKey, 0)
	round, seed, member := augmentKey, augmentKey, augmentKey
	round.Round++
	seed.Seed++
	member.Member++
	if !bytes.Equal(draw(round, 0), base) {
		t.Error("the key's round matters")
	}
	for name, other := range map[string][]byte{"seed": draw(seed, 0), "member": draw(member, 0), "position": draw(augmentKey, 20), "high position": draw(augmentKey, 1<<40)} {
		if bytes.Equal(other, base) {
			t.Errorf("another %s changes nothing", name)
		}
	}
}

func TestAugmentRefuses(t *testing.T) {
	src := make([]byte, 12)
	for name, c := range map[string]struct {
		a     Augment
		dst   int
		shape []int
	}{"flat": {Augment{}, 12, []int{12}}, "size": {Augment{}, 12, []int{1, 3, 5}}, "dst": {Augment{}, 11, []int{1, 3, 4}}, "pad": {Augment{Pad: -1}, 12, []int{1, 3, 4}}, "huge": {Augment{Pad: 1 << 20}, 12, []int{1, 3, 4}}} {
		if err := c.a.Apply(make([]byte, c.dst), src, c.shape, augmentKey, 0); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkAugment(b *testing.B) {
	shape := []int{3, 32, 32}
	src, dst := gradient(shape...), make([]byte, 3*32*32)
	b.SetBytes(int64(len(src)))
	for p := range b.N {
		if err := (Augment{Pad: 4, Flip: true}).Apply(dst, src, shape, augmentKey, uint64(p)); err != nil {
			b.Fatal(err)
		}
	}
}
