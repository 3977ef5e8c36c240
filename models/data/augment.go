package data

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"brood/models/noise"
	"brood/models/usererr"
)

// Augment is how an image changes each time it is drawn for training.
type Augment struct {
	Pad       int  // crop the image's size from the image with so many pixels around it, at a random place
	Reflect   bool // these are the image's own, mirrored at its border, and not black
	Flip      bool // mirror left and right, half of the time
	Alternate bool // and in every second pass over a stream's samples, in the first by chance (Jordan, 2024)
}

// ParseAugment reads what a person writes: pad=N or reflect=N, and flip or alternate, separated by commas; none, or
// nothing, is the zero Augment.
func ParseAugment(text string) (a Augment, err error) {
	if text == "" || text == "none" {
		return a, nil
	}
	for _, border := range []string{"pad", "reflect"} {
		for _, word := range []string{"flip", "alternate"} {
			if flip, n, ok := flips(text, word, border); ok {
				return Augment{Pad: n, Reflect: n > 0 && border == "reflect", Flip: flip, Alternate: flip && word == "alternate"}, nil
			}
		}
	}
	return a, usererr.Errorf("augment = %q: write pad=N or reflect=N, flip or alternate, one of each with a comma between them, such as pad=4,flip, or none", text)
}

// flips reads a flag and a number above 0, as NAME=N, in any order and each at most once; one of them at least.
func flips(text, flag, name string) (flip bool, n int, ok bool) {
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		number, named := strings.CutPrefix(word, name+"=")
		switch {
		case word == flag && !flip:
			flip = true
			continue
		case named && n == 0:
			var err error
			if n, err = strconv.Atoi(number); err == nil && n > 0 {
				continue
			}
		}
		return false, 0, false
	}
	return flip, n, true
}

// String is what ParseAugment reads; empty for the zero Augment.
func (a Augment) String() string {
	var words []string
	if border := "pad="; a.Pad > 0 {
		if a.Reflect {
			border = "reflect="
		}
		words = append(words, border+strconv.Itoa(a.Pad))
	}
	switch {
	case a.Alternate:
		words = append(words, "alternate")
	case a.Flip:
		words = append(words, "flip")
	}
	return strings.Join(words, ",")
}

// Augmented is the same data, whose samples change by a where they are drawn for training: see [Set.Drawn]. It shares
// memory with s, and its digest is that of s.
func (s *Set) Augmented(a Augment) (*Set, error) {
	switch {
	case a == (Augment{}):
		return s, nil
	case len(s.Shape) != 3:
		return nil, usererr.Errorf("data %s: its samples are %d numbers each and no images, so that %s says nothing of them: take augment none", s.Name, s.features, a)
	case s.pixels == nil:
		return nil, usererr.Errorf("data %s: its pixels are numbers, and augment = %q takes bytes: save them as whole numbers from 0 to 255, or take augment none", s.Name, a)
	case a.Pad < 0 || a.Pad > min(s.Shape[1], s.Shape[2]):
		return nil, usererr.Errorf("data %s: augment with pad=%d on images of %d x %d: give at most the smaller side", s.Name, a.Pad, s.Shape[1], s.Shape[2])
	case a.Reflect && a.Pad >= min(s.Shape[1], s.Shape[2]):
		return nil, usererr.Errorf("data %s: augment with reflect=%d on images of %d x %d: give less than the smaller side", s.Name, a.Pad, s.Shape[1], s.Shape[2])
	}
	c := *s
	c.augment = a
	return &c, nil
}

// Augment is how samples change where they are drawn for training.
func (s *Set) Augment() Augment { return s.augment }

// Drawn is the bytes of sample id as drawn at an address: at names the seed and the member of a stream of data and, as
// its Round, the position of the sample in that stream, its cursor plus the place in the batch; its Stream is of how
// many samples that makes a pass, 0 for the training set. The bits are a function of image and address alone. They are
// written to buf (Features bytes, the caller's) and returned; read-only. Where the set is not augmented, or the address
// has no Purpose, they are those of Image.
func (s *Set) Drawn(buf []byte, id int32, at noise.Key) []byte {
	px := s.Image(id)
	if s.augment == (Augment{}) || at.Purpose == 0 || px == nil {
		return px
	}
	s.augment.apply(buf[:len(px)], px, s.Shape, id, s.PassOf(at), at)
	return buf[:len(px)]
}

// PassOf is how many samples make a pass of the stream that an address of a drawn sample is in.
func (s *Set) PassOf(at noise.Key) int { return cmp.Or(int(at.Stream), len(s.train), 1) }

// apply writes to dst what becomes of the image src, sample id of a stream that makes a pass of so many, of a shape
// [channels, height, width]; they must not overlap. Its coins are words of stream 1 of the data order: of pixels down,
// pixels to the right, and mirrored or not.
func (a Augment) apply(dst, src []byte, shape []int, id int32, pass int, at noise.Key) {
	at.Purpose, at.Stream = noise.Order, 1
	words := at.Words(0)
	below := func(i, n int) int { return int(uint64(words[i]) * uint64(n) >> 32) }
	dy, dx := below(0, 2*a.Pad+1)-a.Pad, below(1, 2*a.Pad+1)-a.Pad
	flip := a.Flip && words[2] > math.MaxUint32/2
	if a.Alternate {
		flip = mirrored(id, at.Round/uint64(pass), at)
	}
	height, width := shape[1], shape[2]
	for row := range shape[0] * height {
		out := dst[row*width : (row+1)*width]
		moved(out, src, row, height, dy, dx, a.Reflect)
		if flip {
			slices.Reverse(out)
		}
	}
}

// moved writes row number row of channels of so many rows, of what lies dy rows below and dx pixels to the right of it
// in src; what is outside is black, or the image's own, mirrored at its border.
func moved(out, src []byte, row, height, dy, dx int, reflect bool) {
	width, y := len(out), row%height+dy
	lo, hi := max(0, -dx), min(width, width-dx)
	if reflect {
		from := src[row/height*height*width+reflected(y, height)*width:]
		for x := range out {
			out[x] = from[reflected(x+dx, width)]
		}
	} else if y < 0 || y >= height || lo >= hi {
		clear(out)
	} else {
		clear(out[:lo])
		clear(out[hi:])
		copy(out[lo:hi], src[(row+dy)*width+lo+dx:])
	}
}

// mirrored says whether a sample that alternates is mirrored in a pass of the stream that an address is of: in the
// first by a coin of its own, word 0 of stream 2 of the data order at the sample's number, in each other as it was not
// in the one before.
func mirrored(id int32, pass uint64, at noise.Key) bool {
	at.Stream, at.Round = 2, uint64(id)
	return (at.Uint32(0) > math.MaxUint32/2) != (pass%2 == 1)
}

// reflected is the place in [0, n) of which i, within n-1 of it, is the mirror image at a border.
func reflected(i, n int) int {
	if i < 0 {
		return -i
	}
	return min(i, 2*n-2-i)
}
