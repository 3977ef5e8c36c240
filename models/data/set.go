// Package data holds labelled samples and the order in which they are drawn. Pixels stay bytes; they are normalised
// when a batch is gathered. Sets are read-only and may be shared by goroutines. It may import noise, typed
// and wrongfile, and nothing else of ours.
//
//	s, err := data.Load("glyphs") // or a path: ./flowers.csv
//	err = s.Gather(s.Train()[:128], x, y)
//
// Sample ids are int32: the training samples come first, the test samples after them. The validation ids are a permuted
// share of the training samples; the test samples are never part of it. A text is otherwise: see [NewText].
package data

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"github.com/zeebo/blake3"

	"brood/models/noise"
)

// DefaultShare of the training images is set aside for validation: 5,000 of MNIST's 60,000.
const DefaultShare = 1.0 / 12

// maxClasses is what a label's two bytes can tell apart.
const maxClasses = 1 << 16

// byteClasses are those that one byte tells apart: a digest has a byte a label where there are no more.
const byteClasses = 1 << 8

// Raster is labelled samples, channel by channel and row by row: sample i begins at element i*features of Pixels if
// samples are bytes, else of Values or of Doubles. Two of the three are nil.
type Raster struct {
	Pixels []byte
	Labels []uint16 // of a regression all 0
	Values []float32
	// numbers that float32 would round before they are standardised: seconds since 1970, or metres of a map
	Doubles []float64
	// what a regression is to predict, samples x Info.Outputs, in units of their own; nil where labels are classes
	Targets []float32
}

// Info describes a set.
type Info struct {
	Name    string
	Shape   []int // of a sample: [channels, height, width], or [features]
	Classes int   // 0 where samples have targets
	Outputs int   // targets of a sample; 0 where samples have classes
	// a sample may be in several classes at once, or none: of each of the Outputs, which are the classes, its target is 1
	// where it is in it and else 0
	MultiLabel bool
	Names      []string  // of the classes; nil when their numbers are their names
	Mean, Std  []float64 // per channel or feature, of pixels scaled to [0, 1]; nil: those of the training samples
	From       string    // where it was read, for people
	Notes      []string  // what reading a user's own data guessed or noticed, a sentence each
	Text       bool      // samples are windows of a text: see [NewText]
	// per output; a target t is (t - TargetMean)/TargetStd to a model; nil: those of the training samples
	TargetMean, TargetStd []float32
}

// Set is a data set split in three.
type Set struct {
	Info
	features                int
	pixels                  []byte    // training samples, then test samples; or one text
	labels                  []uint16  // of the same; nil of a text
	values                  []float32 // normalised, instead of pixels
	doubles                 []float64 // what becomes values; nil after the set is built
	wide                    bool      // it was read as doubles
	white                   bool      // the ground of transparent pixels, see [Form]
	targets                 []float32 // standardised; nil where labels are classes
	train, validation, test []int32
	scale                   [][256]float32 // normalised value of a byte, per channel
	digest                  string
	augment                 Augment
	weights                 []float32        // of the classes, in the loss; nil: all alike
	byClass                 bool             // splits are of each class
	given                   int              // validation samples that the data name; 0: a share is drawn
	drawn                   bool             // nobody marked test samples
	columns                 columns          // their names, where a person gave them
	place                   func(int) string // names a sample for errors
	copied                  bool             // its parts were held beside the whole
}

// New checks the rasters and copies them; share of the training samples, in [0, 1), becomes the validation set.
func New(info Info, train, test Raster, share float64) (*Set, error) {
	all := Raster{
		Pixels:  slices.Concat(train.Pixels, test.Pixels),
		Labels:  slices.Concat(train.Labels, test.Labels),
		Values:  slices.Concat(train.Values, test.Values),
		Doubles: slices.Concat(train.Doubles, test.Doubles),
		Targets: slices.Concat(train.Targets, test.Targets),
	}
	n, total := len(train.Labels), len(all.Labels)
	if len(train.Pixels)*total != len(all.Pixels)*n || len(train.Values)*total != len(all.Values)*n || len(train.Doubles)*total != len(all.Doubles)*n {
		return nil, fmt.Errorf("data %s: training and test samples are of different sizes or types", info.Name)
	}
	s, err := own(info, all, n, share)
	s.copied = true
	return s, err
}

// own makes a set of samples, of which the first are for training, without copying them.
func own(info Info, all Raster, train int, share float64) (*Set, error) {
	s := &Set{Info: info}
	s.take(all)
	s.place = func(i int) string { return fmt.Sprintf("data %s: sample %d", s.Name, i+1) }
	return s, s.build(train, share)
}

// take makes the set hold the samples, without copying them.
func (s *Set) take(r Raster) {
	s.pixels, s.labels, s.values, s.doubles, s.targets = r.Pixels, r.Labels, r.Values, r.Doubles, r.Targets
	s.wide = s.doubles != nil
}

// build checks, splits and normalises samples, of which the first are for training.
func (s *Set) build(train int, share float64) error {
	if err := s.checkShape(); err != nil {
		return err
	}
	if err := s.checkSamples(); err != nil {
		return err
	}
	if train == 0 {
		return fmt.Errorf("data %s: no training samples", s.Name)
	}
	s.test = ids(train, len(s.labels))
	if err := s.split(train, share); err != nil {
		return err
	}
	s.digest = s.sum(train)
	if s.Mean == nil {
		s.measure()
	}
	if err := s.standardise(); err != nil {
		return err
	}
	return s.normalise()
}

func (s *Set) checkShape() error {
	if len(s.Shape) != 3 && len(s.Shape) != 1 {
		return fmt.Errorf("data %s: shape %v, want [channels, height, width] or [features]", s.Name, s.Shape)
	}
	s.features = 1
	for _, d := range s.Shape {
		if d < 1 || d > 1<<16 || s.features > maxFeatures/d {
			return fmt.Errorf("data %s: shape %v is empty or larger than a sample may be, %d values", s.Name, s.Shape, maxFeatures)
		}
		s.features *= d
	}
	switch {
	case s.MultiLabel && (s.Outputs < 1 || s.TargetMean != nil):
		return fmt.Errorf("data %s: %d classes, and means of their labels; labels of 0 and 1 are not standardised", s.Name, s.Outputs)
	case s.Outputs > 0 && s.Classes > 0:
		return fmt.Errorf("data %s: %d classes, and targets besides", s.Name, s.Classes)
	case len(s.TargetMean) != len(s.TargetStd) || s.TargetMean != nil && len(s.TargetMean) != s.Outputs:
		return fmt.Errorf("data %s: %d means and %d deviations for %d outputs", s.Name, len(s.TargetMean), len(s.TargetStd), s.Outputs)
	case s.Outputs == 0 && (s.Classes < 1 || s.Classes > maxClasses):
		return fmt.Errorf("data %s: %d classes, want 1 to %d", s.Name, s.Classes, maxClasses)
	}
	if len(s.Mean) != len(s.Std) || s.Mean != nil && len(s.Mean) != s.Shape[0] {
		return fmt.Errorf("data %s: %d means and %d deviations for %d channels", s.Name, len(s.Mean), len(s.Std), s.Shape[0])
	}
	return nil
}

func (s *Set) checkSamples() error {
	if len(s.pixels) > 0 && s.numeric() || len(s.values) > 0 && len(s.doubles) > 0 {
		return fmt.Errorf("data %s: samples are given as two of pixels, values and doubles", s.Name)
	}
	if got := len(s.pixels) + len(s.values) + len(s.doubles); got != len(s.labels)*s.features {
		return fmt.Errorf("data %s: %d labels for %d values in samples of %d", s.Name, len(s.labels), got, s.features)
	}
	for i, l := range s.labels {
		if int(l) >= max(1, s.Classes) {
			return fmt.Errorf("data %s: label %d of sample %d is out of range, there are %d classes", s.Name, l, i+1, s.Classes)
		}
	}
	for i, v := range s.values {
		if !finite(v) {
			return fmt.Errorf("%s has the value %v; leave it out or repair it", s.place(i/s.features), v)
		}
	}
	for i, v := range s.doubles {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s has the value %v; leave it out or repair it", s.place(i/s.features), v)
		}
	}
	return s.checkTargets()
}

// WithValidation is the same data with another validation split: a share below 1 of the training samples, or so many
// of them.
func (s *Set) WithValidation(share float64) (*Set, error) {
	n := s.parted()
	if share >= 1 && share == math.Trunc(share) {
		if int64(share) >= int64(n) {
			return nil, fmt.Errorf("data %s: a validation split of %g leaves none of %d samples to train on", s.Name, share, n)
		}
		share /= float64(n)
	}
	return s.WithShare(share)
}

// WithShare is the same data with another validation share; it shares memory with s and is normalised as s is. It fails
// where the data have a validation split of their own.
func (s *Set) WithShare(share float64) (*Set, error) {
	if s.given > 0 {
		return nil, fmt.Errorf("data %s has %d validation samples of its own: leave out --validation", s.Name, s.given)
	}
	c := *s
	return &c, c.split(s.parted(), share)
}

// parted is the samples that training and validation share; of a text the bytes.
func (s *Set) parted() int {
	if s.Text && len(s.test) > 0 {
		return int(s.test[0])
	}
	if s.Text {
		return len(s.pixels)
	}
	return len(s.labels) - len(s.test)
}

// held is how many of n training samples are for validation.
func held(n int, share float64) int { return int(float64(share*float64(n)) + 0.5) }

// split takes the samples at the first places of a permutation that all runs share: the split belongs to the data.
//
// Of a text n are bytes.
func (s *Set) split(n int, share float64) error {
	if !(share >= 0 && share < 1) {
		return fmt.Errorf("data %s: validation share %v, want at least 0 and below 1", s.Name, share)
	}
	if s.given > 0 {
		s.train, s.validation = ids(0, n-s.given), ids(n-s.given, n)
		return nil
	}
	v := held(n, share)
	if v == n {
		return fmt.Errorf("data %s: a validation share of %v leaves none of %d samples to train on", s.Name, share, n)
	}
	if s.Text {
		return s.splitText(n, v)
	}
	p := noise.Key{Purpose: noise.Split}.Permutation(uint64(n))
	out := make([]bool, n)
	if s.byClass && share > 0 {
		left := quota(s.labels[:n], share)
		v = 0
		for i := range n {
			id := p.At(uint64(i))
			if l := s.labels[id]; left[l] > 0 {
				left[l]--
				out[id] = true
				v++
			}
		}
	} else {
		for i := range v {
			out[p.At(uint64(i))] = true
		}
	}
	s.train, s.validation = make([]int32, 0, n-v), make([]int32, 0, v)
	for i, h := range out {
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
func (s *Set) Len() int {
	if s.Text {
		return max(0, len(s.pixels)-s.features)
	}
	return len(s.labels)
}

// Features is the elements of a sample.
func (s *Set) Features() int { return s.features }

// Bytes is the memory that the samples take; of a text with the lists of its ids, four times as long.
func (s *Set) Bytes() int64 {
	if s.Text {
		return int64(len(s.pixels)) + 4*int64(len(s.train)+len(s.validation)+len(s.test))
	}
	return int64(len(s.pixels)) + 4*int64(len(s.values)+len(s.targets))
}

// Peak is the memory that the samples took at most while they were read, and the ids of a text split.
func (s *Set) Peak() int64 {
	read := s.Bytes()
	if s.wide {
		read += 4 * int64(len(s.values)) // a double is twice as wide as the value that it becomes
	}
	if s.copied || s.Text {
		read *= 2
	}
	return read
}

// numeric reports whether samples are numbers and no bytes.
func (s *Set) numeric() bool { return s.values != nil || s.doubles != nil }

// Image is the bytes of sample id; read-only. Nil when there is no such sample or the samples are no bytes.
func (s *Set) Image(id int32) []byte {
	if id < 0 || int(id) >= s.Len() || s.pixels == nil {
		return nil
	}
	if s.Text {
		return s.pixels[id : int(id)+s.features]
	}
	return s.pixels[int(id)*s.features : (int(id)+1)*s.features]
}

// Label is the class of sample id; -1 when there is no such sample.
func (s *Set) Label(id int32) int32 {
	if id < 0 || int(id) >= s.Len() {
		return -1
	}
	if s.Text {
		return int32(s.pixels[int(id)+s.features])
	}
	return int32(s.labels[id])
}

// Gather writes the normalised samples into dst (len(ids) x features) and their classes into labels. Both belong to the
// caller.
func (s *Set) Gather(ids []int32, dst []float32, labels []int32) error {
	return s.GatherDrawn(ids, noise.Key{}, dst, labels)
}

// GatherDrawn is Gather of a batch whose first sample was drawn at an address, see [Set.Drawn].
func (s *Set) GatherDrawn(ids []int32, at noise.Key, dst []float32, labels []int32) error {
	if len(dst) != len(ids)*s.features || len(labels) != len(ids) {
		return fmt.Errorf("data %s: gather %d samples of %d values into %d values and %d labels", s.Name, len(ids), s.features, len(dst), len(labels))
	}
	plane := s.features / max(1, len(s.scale))
	var buf []byte
	if s.augment != (Augment{}) && at.Purpose != 0 {
		buf = make([]byte, s.features)
	}
	for i, id := range ids {
		if id < 0 || int(id) >= s.Len() {
			return fmt.Errorf("data %s: no sample %d, ids are below %d", s.Name, id, s.Len())
		}
		labels[i] = s.Label(id)
		row := dst[i*s.features : (i+1)*s.features]
		if s.values != nil {
			copy(row, s.values[int(id)*s.features:])
			continue
		}
		px := s.Drawn(buf, id, at)
		at.Round++
		for c := range s.scale {
			table, out := &s.scale[c], row[c*plane:(c+1)*plane]
			for j, p := range px[c*plane : (c+1)*plane] {
				out[j] = table[p]
			}
		}
	}
	return nil
}

// Normal is the normalised value of each byte, by channel, as Gather writes it; nil where the samples are no bytes.
// Read-only.
func (s *Set) Normal() [][256]float32 { return s.scale }

// Digest names the content: BLAKE3 over shape, counts, samples, labels and targets, as they were read; of a text over
// its counts and bytes.
func (s *Set) Digest() string { return s.digest }

func (s *Set) sum(train int) string {
	h := blake3.New()
	counts := append(slices.Clone(s.Shape), s.Classes, train, len(s.labels)-train)
	if s.given > 0 {
		counts = append(counts, s.given)
	}
	for _, n := range counts {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
	numbers := func(all []float32) {
		var buf []byte
		for part := range slices.Chunk(all, 1<<12) {
			buf = buf[:0]
			for _, v := range part {
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
			}
			h.Write(buf)
		}
	}
	h.Write(s.pixels)
	numbers(s.values)
	for part := range slices.Chunk(s.doubles, 1<<12) {
		buf := make([]byte, 0, 8*len(part))
		for _, v := range part {
			buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(v))
		}
		h.Write(buf)
	}
	h.Write(s.labelBytes())
	numbers(s.targets)
	return digestOf(h)
}

// labelBytes are the labels as a digest has them: a byte each, or two, the lower first, where classes need them.
func (s *Set) labelBytes() []byte {
	out := make([]byte, 0, len(s.labels))
	for _, l := range s.labels {
		if out = append(out, byte(l)); s.Classes > byteClasses {
			out = append(out, byte(l>>8))
		}
	}
	return out
}

// widened are labels that were read as bytes.
func widened(labels []byte) []uint16 {
	out := make([]uint16, len(labels))
	for i, l := range labels {
		out[i] = uint16(l)
	}
	return out
}

func digestOf(h *blake3.Hasher) string { return "blake3:" + hex.EncodeToString(h.Sum(nil)) }
