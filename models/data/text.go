package data

import (
	"fmt"
	"math"
	"strconv"

	"github.com/zeebo/blake3"

	"brood/models/usererr"
)

// NewText is a text as a data set, for models that read a window of it and predict the byte behind. Sample i is the
// bytes [i, i+context), context being the one size of info.Shape, and its class is byte i+context; so the text is held
// once, and not copied. The last tests bytes are the test set, and share of the bytes before those, their end, the
// validation set: a window lies with its class in one of them, or is in none. info.Classes is one more than the largest
// byte. The text is the set's from then on.
func NewText(info Info, text []byte, tests int, share float64) (*Set, error) {
	info.Text = true
	s := &Set{Info: info, pixels: text, scale: identity()}
	s.place = func(i int) string { return fmt.Sprintf("data %s: byte %d", s.Name, i+1) }
	if err := s.checkShape(); err != nil {
		return nil, err
	}
	context := s.Shape[0]
	if len(s.Shape) != 1 || tests < 0 || len(text) > maxBytes {
		return nil, fmt.Errorf("data %s: %d bytes, %d of them for testing, in windows of %v", s.Name, len(text), tests, s.Shape)
	}
	if n := classesOf(text); n > s.Classes {
		return nil, fmt.Errorf("data %s: the byte %d is out of range, there are %d classes", s.Name, n-1, s.Classes)
	}
	if len(text)-tests <= context || tests > 0 && tests <= context {
		return nil, usererr.Errorf("%s is too short: its %d bytes hold no window of %d bytes, with the byte behind it, to train on and to test: give a longer text, or a model of a shorter context", s.Name, len(text), context)
	}
	s.test = ids(len(text)-tests, max(len(text)-tests, s.Len()))
	if err := s.split(len(text)-tests, share); err != nil {
		return nil, err
	}
	h := blake3.New()
	fmt.Fprintf(h, "text %d %d\n", len(text), tests)
	h.Write(text)
	s.digest = digestOf(h)
	return s, nil
}

// splitText is split of a text, of whose first n bytes a share is for validation.
func (s *Set) splitText(n, held int) error {
	if context := s.features; held > 0 && held <= context || n-held <= context {
		return usererr.Errorf("data %s: of %d bytes %d are for validation, and a window is %d bytes with the one behind them: give a longer text, another --validation, or a model of a shorter context", s.Name, n, held, context)
	}
	s.train, s.validation = ids(0, n-held-s.features), ids(n-held, max(n-held, n-s.features))
	return nil
}

// classesOf is one more than the largest byte.
func classesOf(text []byte) int {
	top := byte(1)
	for _, b := range text {
		top = max(top, b)
	}
	return int(top) + 1
}

// identity maps bytes to themselves: an embedding looks them up.
func identity() [][256]float32 {
	var t [256]float32
	for b := range t {
		t[b] = float32(b)
	}
	return [][256]float32{t}
}

// text makes a set of a text in windows of the context that the model takes, 1 for none; its last tests bytes are for
// testing, and a share of those before for validation.
func (r Reading) text(name string, text []byte, tests int, share float64, from string) (*Set, error) {
	if f := r.Form; f != nil && !f.Text {
		return nil, fmt.Errorf("%s is a text, and the model was trained on samples of %v: choose data that match", name, f.Shape)
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("%s is empty: a text to train on has some thousand bytes at least", name)
	}
	info := Info{Name: name, Shape: []int{r.context()}, Classes: classesOf(text), From: from}
	return NewText(info, text, tests, share)
}

// context is the bytes of a window.
func (r Reading) context() int {
	if r.Form != nil && r.Form.Text {
		return r.Form.Shape[0]
	}
	return max(1, r.Context)
}

// openText reads a person's text.
func (r Reading) openText(path string) (*Set, error) {
	if err := r.plain(path); err != nil {
		return nil, err
	}
	text, tests, err := readText(path)
	if err != nil {
		return nil, err
	}
	if r.undivided() {
		tests = 0
	}
	s, err := r.text(path, text, tests, r.share(), path)
	if err == nil {
		s.drawn = tests > 0 && !isSplit(path)
	}
	return s, err
}

// tales is the text that is built in.
func (r Reading) tales(k Known) (*Set, error) {
	text := tales(k.Train + k.Test)
	return r.text(k.Name, text, held(len(text), testShare), DefaultShare, "built in")
}

// Baselines is the bits a byte on the test bytes of models that know nothing but how often each byte occurs (unigram),
// and how often behind which (bigram): of all bytes before those for testing, with a half added to each count. They are
// what a model has to come below.
func (s *Set) Baselines() (unigram, bigram float64) {
	var alone [256]float64
	var pairs [256][256]float64
	train, test := s.pixels[:s.parted()], s.pixels[s.parted():]
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

// askText is every window of a text, the last of which has no byte behind it: there 0 stands for the class.
func (r Reading) askText(path string) (*Asked, error) {
	text, tests, err := readText(path)
	if err != nil {
		return nil, err
	}
	if isSplit(path) {
		text = text[len(text)-tests:]
	}
	if !r.Form.Text {
		return nil, fmt.Errorf("%s is a text, and the model was trained on samples of %v: choose data that match", path, r.Form.Shape)
	}
	context := r.context()
	if len(text) < context {
		return nil, fmt.Errorf("%s has %d bytes, and the model reads %d before it predicts one: give a longer text", path, len(text), context)
	}
	info := Info{Name: path, Shape: []int{context}, Classes: classesOf(text), From: path}
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

// byteName is a byte that can be printed, and of another its number in hexadecimal.
func byteName(b int) string {
	if b > ' ' && b < 0x7f {
		return string(rune(b))
	}
	return fmt.Sprintf("0x%02x", b)
}

// Head is the first n bytes of a text, or all; read-only.
func (s *Set) Head(n int) []byte { return s.pixels[:min(n, len(s.pixels))] }
