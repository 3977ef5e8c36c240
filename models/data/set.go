// Package data holds labelled images and the order in which they are drawn. Pixels stay bytes; they are normalised when a
// batch is gathered. Sets are read-only and may be shared by goroutines.
//
//	s, err := data.Load("glyphs")
//	err = s.Gather(s.Train()[:128], x, y)
//
// Sample ids are int32: the training images come first, the test images after them. The validation ids are a permuted
// share of the training images; the test images are never part of it.
package data

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/zeebo/blake3"

	"brood/models/noise"
)

// DefaultShare of the training images is set aside for validation: 5,000 of MNIST's 60,000.
const DefaultShare = 1.0 / 12

// Raster is labelled images as bytes: image i is Pixels[i*features:], channel by channel, row by row.
type Raster struct {
	Pixels []byte
	Labels []byte
}

// Info describes a set.
type Info struct {
	Name      string
	Shape     []int // of an image: [channels, height, width]
	Classes   int
	Mean, Std []float32 // per channel, of pixels scaled to [0, 1]
}

// Set is a data set split in three.
type Set struct {
	Info
	features                int
	pixels, labels          []byte // training images, then test images
	train, validation, test []int32
	scale                   [][256]float32 // normalised value of a byte, per channel
	digest                  string
}

// New checks and owns the rasters; share of the training images, in [0, 1), becomes the validation set.
func New(info Info, train, test Raster, share float64) (*Set, error) {
	s := &Set{Info: info, features: 1}
	if len(info.Shape) != 3 {
		return nil, fmt.Errorf("data %s: shape %v, want [channels, height, width]", info.Name, info.Shape)
	}
	for _, d := range info.Shape {
		if d < 1 || d > 1<<12 {
			return nil, fmt.Errorf("data %s: shape %v has a size outside 1 to 4096", info.Name, info.Shape)
		}
		s.features *= d
	}
	if len(info.Mean) != info.Shape[0] || len(info.Std) != info.Shape[0] {
		return nil, fmt.Errorf("data %s: %d means and %d deviations for %d channels", info.Name, len(info.Mean), len(info.Std), info.Shape[0])
	}
	for _, r := range []struct {
		name string
		Raster
	}{{"training", train}, {"test", test}} {
		if len(r.Pixels) != len(r.Labels)*s.features {
			return nil, fmt.Errorf("data %s: %d %s labels for %d bytes of images of %d bytes", info.Name, len(r.Labels), r.name, len(r.Pixels), s.features)
		}
		for i, l := range r.Labels {
			if int(l) >= info.Classes {
				return nil, fmt.Errorf("data %s: %s label %d is %d, there are %d classes", info.Name, r.name, i, l, info.Classes)
			}
		}
	}
	if len(train.Labels) == 0 {
		return nil, fmt.Errorf("data %s: no training images", info.Name)
	}
	s.pixels = slices.Concat(train.Pixels, test.Pixels)
	s.labels = slices.Concat(train.Labels, test.Labels)
	s.scale = make([][256]float32, info.Shape[0])
	for c := range s.scale {
		for p := range s.scale[c] {
			s.scale[c][p] = (float32(p)/255 - info.Mean[c]) / info.Std[c]
		}
	}
	s.test = ids(len(train.Labels), len(s.labels))
	if err := s.split(len(train.Labels), share); err != nil {
		return nil, err
	}
	s.digest = s.sum(len(train.Labels))
	return s, nil
}

// WithShare is the same data with another validation share; it shares memory with s.
func (s *Set) WithShare(share float64) (*Set, error) {
	c := *s
	return &c, c.split(len(s.labels)-len(s.test), share)
}

// split takes the images at the first places of a permutation that all runs share: the split belongs to the data.
func (s *Set) split(n int, share float64) error {
	if !(share >= 0 && share < 1) {
		return fmt.Errorf("data %s: validation share %v, want at least 0 and below 1", s.Name, share)
	}
	v := int(share*float64(n) + 0.5)
	if v == n {
		return fmt.Errorf("data %s: a validation share of %v leaves none of %d images to train on", s.Name, share, n)
	}
	p := noise.Key{Purpose: noise.Split}.Permutation(uint64(n))
	held := make([]bool, n)
	for i := range v {
		held[p.At(uint64(i))] = true
	}
	s.train, s.validation = make([]int32, 0, n-v), make([]int32, 0, v)
	for i, h := range held {
		if h {
			s.validation = append(s.validation, int32(i))
		} else {
			s.train = append(s.train, int32(i))
		}
	}
	return nil
}

func ids(lo, hi int) []int32 {
	out := make([]int32, 0, hi-lo)
	for i := lo; i < hi; i++ {
		out = append(out, int32(i))
	}
	return out
}

// Train is the ascending ids to train on; read-only.
func (s *Set) Train() []int32 { return s.train }

// Validation is the ascending ids that selection may look at; read-only.
func (s *Set) Validation() []int32 { return s.validation }

// Test is the ids read for reporting only; read-only.
func (s *Set) Test() []int32 { return s.test }

// Len counts all samples; ids are below it.
func (s *Set) Len() int { return len(s.labels) }

// Features is the elements of an image.
func (s *Set) Features() int { return s.features }

// Image is the bytes of sample id; read-only. Nil when there is no such sample.
func (s *Set) Image(id int32) []byte {
	if id < 0 || int(id) >= len(s.labels) {
		return nil
	}
	return s.pixels[int(id)*s.features : (int(id)+1)*s.features]
}

// Label is the class of sample id; -1 when there is no such sample.
func (s *Set) Label(id int32) int32 {
	if id < 0 || int(id) >= len(s.labels) {
		return -1
	}
	return int32(s.labels[id])
}

// Gather writes the normalised pixels of the samples into dst (len(ids) x features) and their classes into labels. Both
// belong to the caller.
func (s *Set) Gather(ids []int32, dst []float32, labels []int32) error {
	if len(dst) != len(ids)*s.features || len(labels) != len(ids) {
		return fmt.Errorf("data %s: gather %d samples of %d values into %d values and %d labels", s.Name, len(ids), s.features, len(dst), len(labels))
	}
	plane := s.features / s.Shape[0]
	for i, id := range ids {
		px := s.Image(id)
		if px == nil {
			return fmt.Errorf("data %s: no sample %d, ids are below %d", s.Name, id, len(s.labels))
		}
		labels[i] = int32(s.labels[id])
		row := dst[i*s.features:]
		for c := range s.scale {
			table, out := &s.scale[c], row[c*plane:(c+1)*plane]
			for j, p := range px[c*plane : (c+1)*plane] {
				out[j] = table[p]
			}
		}
	}
	return nil
}

// Digest names the content: BLAKE3 over shape, counts, pixels and labels.
func (s *Set) Digest() string { return s.digest }

func (s *Set) sum(train int) string {
	h := blake3.New()
	for _, n := range append(slices.Clone(s.Shape), s.Classes, train, len(s.labels)-train) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
	h.Write(s.pixels)
	h.Write(s.labels)
	return "blake3:" + hex.EncodeToString(h.Sum(nil))
}
