// Package data provides labelled samples and the order in which they are drawn. Pixels are stored as bytes and
// normalised when a batch is gathered. Sets are read-only and safe for concurrent use. Of this module, the package may
// import only noise, usererr and wrongfile.
//
//	s, err := data.Load("glyphs") // or a path: ./flowers.csv
//	err = s.Gather(s.Train()[:128], x, y)
//
// Sample ids are int32: training samples first, then test samples. The validation ids are a pseudo-random share of the
// training samples and never include test samples. Text data sets are split differently, see [NewText].
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

// DefaultShare is the share of the training samples used for validation: 5,000 of MNIST's 60,000.
const DefaultShare = 1.0 / 12

// maxClasses is the number of classes that a 2-byte label can represent.
const maxClasses = 1 << 16

// byteClasses is the number of classes that a 1-byte label can represent. Up to it the digest hashes one byte per
// label, above it two.
const byteClasses = 1 << 8

// Raster is a list of labelled samples, each stored channel by channel and row by row: sample i begins at element
// i*features of Pixels if samples are bytes, else of Values or Doubles. Exactly one of the three is non-nil.
type Raster struct {
	Pixels []byte
	Labels []uint16 // one per sample; all 0 for a regression
	Values []float32
	// numbers that float32 would round before they are standardised, such as Unix times or map coordinates in metres
	Doubles []float64
	// regression targets in their original units, samples x Info.Outputs; nil if labels are classes
	Targets []float32
}

// Info describes a data set.
type Info struct {
	Name    string
	Shape   []int // of a sample: [channels, height, width], or [features]
	Classes int   // number of classes; 0 if samples have targets
	Outputs int   // targets per sample; 0 if samples have classes
	// A sample may belong to any number of classes, including none. The Outputs are the classes; the target is 1 if the
	// sample belongs to the class, else 0.
	MultiLabel bool
	Names      []string  // class names; nil if classes are named by their numbers
	Mean, Std  []float64 // per channel or feature, of pixels scaled to [0, 1]; nil: measured on the training samples
	From       string    // source of the data, shown to the user
	Notes      []string  // guesses and findings of reading the user's own data, one sentence each
	Text       bool      // samples are windows of a text, see [NewText]
	Apart      bool      // the windows of a text to validate and to test on do not overlap
	// Per output: a model is trained on (t - TargetMean)/TargetStd of target t. Nil: measured on the training samples.
	TargetMean, TargetStd []float32
}

// Set is a data set split into training, validation and test samples. It is immutable once built.
type Set struct {
	Info
	features                int
	pixels                  []byte    // training samples, then test samples; or the whole text
	labels                  []uint16  // one per sample; nil for a text
	values                  []float32 // normalised samples, if they are numbers instead of pixels
	doubles                 []float64 // samples before normalisation to values; nil once the set is built
	fromDoubles             bool      // samples were read as float64
	resize                  Resize    // of pictures
	whiteBackground         bool      // transparent pixels are drawn on white, see [Form.White]
	targets                 []float32 // standardised; nil if labels are classes
	train, validation, test []int32
	scale                   [][256]float32 // normalised value of a byte, per channel
	digest                  string
	augment                 Augment
	weights                 []float32        // per class, in the loss; nil: all equal
	stratified              bool             // splits are drawn per class
	markedValidation        int              // validation samples marked in the data; 0: a share is drawn
	testsDrawn              bool             // the data mark no test samples; a share was drawn
	columns                 columns          // column names of a table; zero if it has none
	sampleName              func(int) string // describes sample i in errors
	// file of a sample and its number there from 1, by its number in the data; nil: both follow from the set
	source  func(int) (string, int)
	order   []int   // number in the data of each sample, from 0; nil: its id
	splitBy SplitBy // as drawn splits were
	// per sample that may train, for splitBy, see [SplitBy.turns]; nil: splits are drawn from single samples
	turns  []int32
	copied bool // the parts were in memory together with the joined samples, see Peak
}

// New returns a set of copies of the rasters. share, in [0, 1), is the share of the training samples used for
// validation. It fails if the rasters do not match info or each other.
func New(info Info, train, test Raster, share float64) (*Set, error) {
	all := Raster{
		Pixels:  slices.Concat(train.Pixels, test.Pixels),
		Labels:  slices.Concat(train.Labels, test.Labels),
		Values:  slices.Concat(train.Values, test.Values),
		Doubles: slices.Concat(train.Doubles, test.Doubles),
		Targets: slices.Concat(train.Targets, test.Targets),
	}
	n, total := len(train.Labels), len(all.Labels)
	if len(train.Pixels)*total != len(all.Pixels)*n ||
		len(train.Values)*total != len(all.Values)*n ||
		len(train.Doubles)*total != len(all.Doubles)*n {
		return nil, fmt.Errorf("data %s: training and test samples are of different sizes or types", info.Name)
	}
	s, err := newSet(info, all, n, share)
	s.copied = true
	return s, err
}

// newSet returns a set that takes ownership of the samples in all. The first train samples are for training and
// validation, the others for testing.
func newSet(info Info, all Raster, train int, share float64) (*Set, error) {
	s := &Set{Info: info}
	s.setSamples(all)
	s.sampleName = func(i int) string { return fmt.Sprintf("data %s: sample %d", s.Name, i+1) }
	return s, s.build(train, share)
}

// setSamples sets the samples of s to the samples of r without copying.
func (s *Set) setSamples(r Raster) {
	s.pixels, s.labels, s.values, s.doubles, s.targets = r.Pixels, r.Labels, r.Values, r.Doubles, r.Targets
	s.fromDoubles = s.doubles != nil
}

// build checks, splits and normalises the samples. The first train samples are for training and validation.
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
	s.digest = s.computeDigest(train)
	s.fill()
	if s.Mean == nil {
		s.measure()
	}
	if err := s.standardiseTargets(); err != nil {
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
			return fmt.Errorf("data %s: shape %v is empty or exceeds %d values, the largest sample",
				s.Name, s.Shape, maxFeatures)
		}
		s.features *= d
	}
	switch {
	case s.MultiLabel && (s.Outputs < 1 || s.TargetMean != nil):
		return fmt.Errorf("data %s: %d classes, and means of their labels; labels of 0 and 1 are not standardised",
			s.Name, s.Outputs)
	case s.Outputs > 0 && s.Classes > 0:
		return fmt.Errorf("data %s: both %d classes and targets", s.Name, s.Classes)
	case len(s.TargetMean) != len(s.TargetStd) || s.TargetMean != nil && len(s.TargetMean) != s.Outputs:
		return fmt.Errorf("data %s: %d means and %d deviations for %d outputs",
			s.Name, len(s.TargetMean), len(s.TargetStd), s.Outputs)
	case s.Outputs == 0 && (s.Classes < 1 || s.Classes > maxClasses):
		return fmt.Errorf("data %s: %d classes, want 1 to %d", s.Name, s.Classes, maxClasses)
	}
	if len(s.Mean) != len(s.Std) || s.Mean != nil && len(s.Mean) != s.Shape[0] {
		return fmt.Errorf("data %s: %d means and %d deviations for %d channels",
			s.Name, len(s.Mean), len(s.Std), s.Shape[0])
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
			return fmt.Errorf("data %s: label %d of sample %d is out of range, there are %d classes",
				s.Name, l, i+1, s.Classes)
		}
	}
	for i, v := range s.values {
		if !finite(v) && !(v != v && s.columns.encoded != nil) {
			return fmt.Errorf("%s has the value %v; leave it out or repair it", s.sampleName(i/s.features), v)
		}
	}
	for i, v := range s.doubles {
		if math.IsNaN(v) && s.columns.encoded == nil || math.IsInf(v, 0) {
			return fmt.Errorf("%s has the value %v; leave it out or repair it", s.sampleName(i/s.features), v)
		}
	}
	return s.checkTargets()
}

// WithValidation returns the same data with another validation split: a share of the training samples if share is below
// 1, a number of samples if it is a whole number of 1 or more. See [Set.WithShare].
func (s *Set) WithValidation(share float64) (*Set, error) {
	n := s.splitSize()
	if share >= 1 && share == math.Trunc(share) {
		if int64(share) >= int64(n) {
			return nil, fmt.Errorf("data %s: a validation split of %g leaves none of %d samples to train on",
				s.Name, share, n)
		}
		share /= float64(n)
	}
	return s.WithShare(share)
}

// WithShare returns the same data with another validation share. The result shares memory with s and is normalised as s
// is. It fails if the data mark their own validation samples.
func (s *Set) WithShare(share float64) (*Set, error) {
	if s.markedValidation > 0 {
		return nil, fmt.Errorf("data %s has %d validation samples of its own: leave out --validation",
			s.Name, s.markedValidation)
	}
	c := *s
	return &c, c.split(s.splitSize(), share)
}

// splitSize returns the number of samples in the training and validation splits together; for a text, of bytes.
func (s *Set) splitSize() int {
	if s.Text && len(s.test) > 0 {
		return int(s.test[0])
	}
	if s.Text {
		return len(s.pixels)
	}
	return len(s.labels) - len(s.test)
}

// validationCount returns share*n, rounded half up: how many of n samples a drawn split takes.
func validationCount(n int, share float64) int { return int(float64(share*float64(n)) + 0.5) }

// split divides the first n samples into training and validation: by their turns if they have some. Otherwise the
// validation samples are the first ones of a permutation that does not depend on the run's seed, so that all runs on
// the same data use the same split. Samples marked for validation in the data take precedence over share. For a text, n
// counts bytes, see splitText.
func (s *Set) split(n int, share float64) error {
	if !(share >= 0 && share < 1) {
		return fmt.Errorf("data %s: validation share %v, want at least 0 and below 1", s.Name, share)
	}
	if s.markedValidation > 0 {
		s.train, s.validation = ids(0, n-s.markedValidation), ids(n-s.markedValidation, n)
		return nil
	}
	v := validationCount(n, share)
	if v == n {
		return fmt.Errorf("data %s: a validation share of %v leaves none of %d samples to train on",
			s.Name, share, n)
	}
	if s.Text {
		return s.splitText(n, v)
	}
	p := noise.Key{Purpose: noise.Split}.Permutation(uint64(n))
	out := make([]bool, n)
	switch {
	case s.turns != nil && share > 0:
		out, v = s.splitBy.take(s.turns[:n], share), 0
		for _, h := range out {
			if h {
				v++
			}
		}
	case s.stratified && share > 0:
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
	default:
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

// Train returns the training ids, ascending; read-only.
func (s *Set) Train() []int32 { return s.train }

// Validation returns the validation ids, ascending; read-only. Model selection uses only these.
func (s *Set) Validation() []int32 { return s.validation }

// Test returns the test ids, ascending; read-only. They are used only for reporting.
func (s *Set) Test() []int32 { return s.test }

// Len returns the number of samples of all splits. Ids are below it.
func (s *Set) Len() int {
	if s.Text {
		return max(0, len(s.pixels)-s.features)
	}
	return len(s.labels)
}

// Features returns the number of elements per sample.
func (s *Set) Features() int { return s.features }

// Bytes returns the memory of the samples in bytes. For a text it includes the id lists, four bytes per id, which are
// larger than the text.
func (s *Set) Bytes() int64 {
	if s.Text {
		return int64(len(s.pixels)) + 4*int64(len(s.train)+len(s.validation)+len(s.test))
	}
	return int64(len(s.pixels)) + 4*int64(len(s.values)+len(s.targets))
}

// Peak returns the peak memory, in bytes, of reading the samples and, for a text, of splitting its ids.
func (s *Set) Peak() int64 {
	read := s.Bytes()
	if s.fromDoubles {
		read += 4 * int64(len(s.values)) // float64 takes 4 bytes more than the float32 it becomes
	}
	if s.copied || s.Text {
		read *= 2
	}
	return read
}

// numeric reports whether samples are numbers rather than bytes.
func (s *Set) numeric() bool { return s.values != nil || s.doubles != nil }

// Image returns the bytes of sample id; read-only. It returns nil for an invalid id or if samples are numbers.
func (s *Set) Image(id int32) []byte {
	if id < 0 || int(id) >= s.Len() || s.pixels == nil {
		return nil
	}
	if s.Text {
		return s.pixels[id : int(id)+s.features]
	}
	return s.pixels[int(id)*s.features : (int(id)+1)*s.features]
}

// Label returns the class of sample id, or -1 for an invalid id.
func (s *Set) Label(id int32) int32 {
	if id < 0 || int(id) >= s.Len() {
		return -1
	}
	if s.Text {
		return int32(s.pixels[int(id)+s.features])
	}
	return int32(s.labels[id])
}

// Gather writes the normalised samples, without augmentation, to dst (len(ids) x features) and their classes to labels.
// Both slices are allocated by the caller. It fails if their lengths do not match or an id is out of range.
func (s *Set) Gather(ids []int32, dst []float32, labels []int32) error {
	return s.GatherDrawn(ids, noise.Key{}, dst, labels)
}

// GatherDrawn is like Gather but augments the samples. at is the address at which the first sample of the batch was
// drawn; each following sample has the next Round. See [Set.Drawn].
func (s *Set) GatherDrawn(ids []int32, at noise.Key, dst []float32, labels []int32) error {
	if len(dst) != len(ids)*s.features || len(labels) != len(ids) {
		return fmt.Errorf("data %s: gather %d samples of %d values into %d values and %d labels",
			s.Name, len(ids), s.features, len(dst), len(labels))
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

// Normal returns, per channel, the normalised value of each byte as written by Gather; nil if samples are numbers. The
// result is read-only.
func (s *Set) Normal() [][256]float32 { return s.scale }

// Digest identifies the content: the BLAKE3 hash of shape, counts, samples, labels and targets before normalisation;
// for a text, of its counts and bytes.
func (s *Set) Digest() string { return s.digest }

func (s *Set) computeDigest(train int) string {
	h := blake3.New()
	counts := append(slices.Clone(s.Shape), s.Classes, train, len(s.labels)-train)
	if s.markedValidation > 0 {
		counts = append(counts, s.markedValidation)
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
	for _, t := range s.turns {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], uint32(t))
		h.Write(b[:])
	}
	numbers(s.targets)
	return digestOf(h)
}

// labelBytes returns the labels as hashed by the digest: one byte each, or two little-endian bytes if there are more
// than byteClasses classes.
func (s *Set) labelBytes() []byte {
	out := make([]byte, 0, len(s.labels))
	for _, l := range s.labels {
		if out = append(out, byte(l)); s.Classes > byteClasses {
			out = append(out, byte(l>>8))
		}
	}
	return out
}

// toUint16 converts labels that were read as bytes.
func toUint16(labels []byte) []uint16 {
	out := make([]uint16, len(labels))
	for i, l := range labels {
		out[i] = uint16(l)
	}
	return out
}

func digestOf(h *blake3.Hasher) string { return "blake3:" + hex.EncodeToString(h.Sum(nil)) }
