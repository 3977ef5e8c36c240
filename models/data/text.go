package data

import (
	"fmt"
	"math"
	"strconv"

	"github.com/zeebo/blake3"

	"brood/models/usererr"
)

// NewText returns a text as a data set, for models that read a window of bytes and predict the next byte. Sample i is
// the bytes [i, i+context), where info.Shape is [context], and its class is byte i+context. Samples share the memory of
// text, of which the set takes ownership. The last tests bytes are the test split; of the bytes before, the last share
// is the validation split. A window belongs to a split only if it and its class are entirely within it; windows across
// a boundary are not used. With info.Apart, validation and test windows begin context bytes apart, so that the class of
// each of their positions is another byte, and less than a window of a split is unused. info.Classes must be greater
// than the largest byte.
func NewText(info Info, text []byte, tests int, share float64) (*Set, error) {
	info.Text = true
	s := &Set{Info: info, pixels: text, scale: identity()}
	s.sampleName = func(i int) string { return fmt.Sprintf("data %s: byte %d", s.Name, i+1) }
	if err := s.checkShape(); err != nil {
		return nil, err
	}
	context := s.Shape[0]
	if len(s.Shape) != 1 || tests < 0 || len(text) > maxBytes {
		return nil, fmt.Errorf("data %s: %d bytes, %d of them for testing, in windows of %v",
			s.Name, len(text), tests, s.Shape)
	}
	if n := classCount(text); n > s.Classes {
		return nil, fmt.Errorf("data %s: the byte %d is out of range, there are %d classes", s.Name, n-1, s.Classes)
	}
	if len(text)-tests <= context || tests > 0 && tests <= context {
		return nil, usererr.Errorf("%s is too short: its %d bytes hold no window of %d bytes, with the byte behind it, "+
			"to train on and to test: give a longer text, or a model of a shorter context", s.Name, len(text), context)
	}
	s.test = s.windows(len(text)-tests, s.Len())
	if err := s.split(len(text)-tests, share); err != nil {
		return nil, err
	}
	h := blake3.New()
	fmt.Fprintf(h, "text %d %d\n", len(text), tests)
	h.Write(text)
	s.digest = digestOf(h)
	return s, nil
}

// splitText divides the first n bytes of a text: the last held bytes are for validation, the others for training.
func (s *Set) splitText(n, held int) error {
	if context := s.features; held > 0 && held <= context || n-held <= context {
		return usererr.Errorf("data %s: of %d bytes %d are for validation, "+
			"and a window is %d bytes with the one behind them: "+
			"give a longer text, another --validation, or a model of a shorter context", s.Name, n, held, context)
	}
	s.train, s.validation = ids(0, n-held-s.features), s.windows(n-held, n-s.features)
	return nil
}

// windows returns the samples from lo to below hi that validate or test: all, or with Apart those that do not overlap.
func (s *Set) windows(lo, hi int) (out []int32) {
	step := 1
	if s.Apart {
		step = s.features
	}
	for i := lo; i < hi; i += step {
		out = append(out, int32(i))
	}
	return out
}

// classCount returns one more than the largest byte of text, and at least 2.
func classCount(text []byte) int {
	top := byte(1)
	for _, b := range text {
		top = max(top, b)
	}
	return int(top) + 1
}

// identity returns the normalisation table that maps each byte to its value, the index into an embedding.
func identity() [][256]float32 {
	var t [256]float32
	for b := range t {
		t[b] = float32(b)
	}
	return [][256]float32{t}
}

// newText returns a text as a set of windows of the model's context length (1 if unspecified). The last tests bytes are
// for testing, and share of those before for validation. from is the source shown to the user.
func (r Reading) newText(name string, text []byte, tests int, share float64, from string) (*Set, error) {
	if f := r.Form; f != nil && !f.Text {
		return nil, fmt.Errorf("%s is a text, and the model was trained on samples of %v: choose data that match",
			name, f.Shape)
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("%s is empty: a text to train on has some thousand bytes at least", name)
	}
	info := Info{Name: name, Shape: []int{r.context()}, Classes: classCount(text), Apart: r.Apart,
		From: from}
	return NewText(info, text, tests, share)
}

// context returns the bytes per window.
func (r Reading) context() int {
	if r.Form != nil && r.Form.Text {
		return r.Form.Shape[0]
	}
	return max(1, r.Context)
}

// openText reads the user's own text.
func (r Reading) openText(path string) (*Set, error) {
	if err := r.checkPlain(path); err != nil {
		return nil, err
	}
	text, tests, err := readText(path)
	if err != nil {
		return nil, err
	}
	if r.singleSplit() {
		tests = 0
	}
	s, err := r.newText(path, text, tests, r.share(), path)
	if err == nil {
		s.testsDrawn = tests > 0 && !isSplit(path)
	}
	return s, err
}

// loadTales returns the built-in text.
func (r Reading) loadTales(k Known) (*Set, error) {
	text := tales(k.Train + k.Test)
	return r.newText(k.Name, text, validationCount(len(text), testShare), DefaultShare, "built in")
}

// Baselines returns the cross-entropy on the test bytes, in bits per byte, of a unigram and a bigram model of bytes.
// Both are estimated from all bytes before the test split, with 0.5 added to each count. A useful model is below them.
func (s *Set) Baselines() (unigram, bigram float64) {
	var alone [256]float64
	var pairs [256][256]float64
	train, test := s.pixels[:s.splitSize()], s.pixels[s.splitSize():]
	different := 0.0
	for i, b := range train {
		if alone[b] == 0 {
			different++
		}
		alone[b]++
		if i > 0 {
			pairs[train[i-1]][b]++
		}
	}
	added := float64(different / 2)
	for i, b := range test {
		unigram -= math.Log2((alone[b] + 0.5) / (float64(len(train)) + added))
		if i > 0 {
			before := test[i-1]
			bigram -= math.Log2((pairs[before][b] + 0.5) / (alone[before] + added))
		}
	}
	return unigram / float64(len(test)), bigram / float64(max(1, len(test)-1))
}

// askText returns every window of a text. The last window has no next byte: its class is 0 and its answer empty.
func (r Reading) askText(path string) (*Asked, error) {
	text, tests, err := readText(path)
	if err != nil {
		return nil, err
	}
	if isSplit(path) {
		text = text[len(text)-tests:]
	}
	if !r.Form.Text {
		return nil, fmt.Errorf("%s is a text, and the model was trained on samples of %v: choose data that match",
			path, r.Form.Shape)
	}
	context := r.context()
	if len(text) < context {
		return nil, fmt.Errorf("%s has %d bytes, and the model reads %d before it predicts one: give a longer text",
			path, len(text), context)
	}
	info := Info{Name: path, Shape: []int{context}, Classes: classCount(text), From: path}
	s, err := NewText(info, append(text, 0), 0, 0)
	if err != nil {
		return nil, err
	}
	a := &Asked{Set: s, IDs: s.train}
	for i := range s.Len() {
		answer := ""
		if i+context < len(text) {
			answer = s.ClassName(int(text[i+context]))
		}
		a.Names, a.Answers = append(a.Names, strconv.Itoa(i+context+1)), append(a.Answers, answer)
	}
	return a, nil
}

// Next returns, for each position of sample id, the byte behind it, which a model predicts from those up to it;
// read-only. id is a sample of a text.
func (s *Set) Next(id int32) []byte { return s.pixels[int(id)+1:][:s.features] }

// byteName returns byte b as a character if it is printable, else its hexadecimal value.
func byteName(b int) string {
	if b > ' ' && b < 0x7f {
		return string(rune(b))
	}
	return fmt.Sprintf("0x%02x", b)
}

// Head returns the first n bytes of a text, or all if it is shorter; read-only.
func (s *Set) Head(n int) []byte { return s.pixels[:min(n, len(s.pixels))] }
