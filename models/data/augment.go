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

// Augment configures the random augmentation of images drawn for training. The zero Augment leaves images unchanged.
type Augment struct {
	Pad       int  // pad each border by this many pixels, then crop the original size at a random position
	Reflect   bool // pad with the image mirrored at its border instead of black
	Flip      bool // mirror left-right with probability 1/2
	Alternate bool // with Flip: random in the first pass over a stream's samples, then alternating per pass (Jordan, 2024)
}

// ParseAugment parses the augment option: pad=N or reflect=N, and flip or alternate, separated by commas. An empty text
// or "none" is the zero Augment.
func ParseAugment(text string) (a Augment, err error) {
	if text == "" || text == "none" {
		return a, nil
	}
	for _, border := range []string{"pad", "reflect"} {
		for _, word := range []string{"flip", "alternate"} {
			if flip, n, ok := parseFlagAndNumber(text, word, border); ok {
				return Augment{
					Pad:       n,
					Reflect:   n > 0 && border == "reflect",
					Flip:      flip,
					Alternate: flip && word == "alternate",
				}, nil
			}
		}
	}
	return a, usererr.Errorf("augment = %q: write pad=N or reflect=N, flip or alternate, "+
		"one of each with a comma between them, such as pad=4,flip, or none", text)
}

// parseFlagAndNumber parses the word flag and a number above 0, written NAME=N, separated by commas. Each occurs at
// most once and at least one must occur; otherwise ok is false.
func parseFlagAndNumber(text, flag, name string) (flip bool, n int, ok bool) {
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

// String returns the text that ParseAugment parses to a; empty for the zero Augment.
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

// Augmented returns the same data with augmentation a for samples drawn for training, see [Set.Drawn]. The result
// shares memory and digest with s. It fails if samples are not images of bytes or are too small for the padding.
func (s *Set) Augmented(a Augment) (*Set, error) {
	switch {
	case a == (Augment{}):
		return s, nil
	case len(s.Shape) != 3:
		return nil, usererr.Errorf("data %s: its samples are %d numbers each and no images, so that %s does not apply: "+
			"take augment none", s.Name, s.features, a)
	case s.pixels == nil:
		return nil, usererr.Errorf("data %s: its pixels are numbers, and augment = %q takes bytes: "+
			"save them as whole numbers from 0 to 255, or take augment none", s.Name, a)
	case a.Pad < 0 || a.Pad > min(s.Shape[1], s.Shape[2]):
		return nil, usererr.Errorf("data %s: augment with pad=%d on images of %d x %d: give at most the smaller side",
			s.Name, a.Pad, s.Shape[1], s.Shape[2])
	case a.Reflect && a.Pad >= min(s.Shape[1], s.Shape[2]):
		return nil, usererr.Errorf("data %s: augment with reflect=%d on images of %d x %d: give less than the smaller side",
			s.Name, a.Pad, s.Shape[1], s.Shape[2])
	}
	c := *s
	c.augment = a
	return &c, nil
}

// Augment returns the augmentation of samples drawn for training.
func (s *Set) Augment() Augment { return s.augment }

// Drawn returns the bytes of sample id, augmented as drawn at address at; read-only. at contains the seed and member of
// a data stream; its Round is the position of the sample in the stream (cursor plus index in the batch), and its Stream
// is the number of samples per pass, 0 for the size of the training set. The result depends only on the image and the
// address. It is written to buf, which the caller allocates with Features bytes. If the set is not augmented or at has
// no Purpose, the result equals the result of Image, and buf is unused.
func (s *Set) Drawn(buf []byte, id int32, at noise.Key) []byte {
	px := s.Image(id)
	if s.augment == (Augment{}) || at.Purpose == 0 || px == nil {
		return px
	}
	s.augment.apply(buf[:len(px)], px, s.Shape, id, s.PassOf(at), at)
	return buf[:len(px)]
}

// PassOf returns the number of samples per pass of the data stream of address at, see [Set.Drawn].
func (s *Set) PassOf(at noise.Key) int { return cmp.Or(int(at.Stream), len(s.train), 1) }

// apply writes the augmented image src, sample id of a stream with pass samples per pass, to dst. Both have shape
// [channels, height, width] and must not overlap. The random words are stream 1 of purpose Order: the vertical
// shift, the horizontal shift and the flip.
func (a Augment) apply(dst, src []byte, shape []int, id int32, pass int, at noise.Key) {
	at.Purpose, at.Stream = noise.Order, 1
	words := at.Words(0)
	below := func(i, n int) int { return int(uint64(words[i]) * uint64(n) >> 32) }
	dy, dx := below(0, 2*a.Pad+1)-a.Pad, below(1, 2*a.Pad+1)-a.Pad
	flip := a.Flip && words[2] > math.MaxUint32/2
	if a.Alternate {
		flip = isMirrored(id, at.Round/uint64(pass), at)
	}
	height, width := shape[1], shape[2]
	for row := range shape[0] * height {
		out := dst[row*width : (row+1)*width]
		shiftedRow(out, src, row, height, dy, dx, a.Reflect)
		if flip {
			slices.Reverse(out)
		}
	}
}

// shiftedRow writes to out one row of src shifted: pixel x of the row is the pixel of src dy rows below and dx pixels
// to the right. row counts over all channels, of height rows each. Pixels outside the image are 0, or mirrored at its
// border if reflect is set.
func shiftedRow(out, src []byte, row, height, dy, dx int, reflect bool) {
	width, y := len(out), row%height+dy
	lo, hi := max(0, -dx), min(width, width-dx)
	if reflect {
		from := src[row/height*height*width+reflectIndex(y, height)*width:]
		for x := range out {
			out[x] = from[reflectIndex(x+dx, width)]
		}
	} else if y < 0 || y >= height || lo >= hi {
		clear(out)
	} else {
		clear(out[:lo])
		clear(out[hi:])
		copy(out[lo:hi], src[(row+dy)*width+lo+dx:])
	}
}

// isMirrored reports whether Alternate mirrors sample id in the given pass of the stream of address at. For pass 0 it
// is a random bit, word 0 of stream 2 at round id; each later pass inverts it.
func isMirrored(id int32, pass uint64, at noise.Key) bool {
	at.Stream, at.Round = 2, uint64(id)
	return (at.Uint32(0) > math.MaxUint32/2) != (pass%2 == 1)
}

// reflectIndex mirrors index i at the borders of [0, n), without repeating the border. i must be in [-(n-1), 2n-2].
func reflectIndex(i, n int) int {
	if i < 0 {
		return -i
	}
	return min(i, 2*n-2-i)
}
