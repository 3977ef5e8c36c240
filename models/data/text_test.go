package data

import (
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// windows returns a text of n bytes, each its own position modulo 251.
func windows(t *testing.T, n, context, tests int, share float64) *Set {
	t.Helper()
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(i % 251)
	}
	s, err := NewText(Info{Name: "count", Shape: []int{context}, Classes: 251}, text, tests, share)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWindows: sample i is the bytes i to i+context, its class the next byte; splits are contiguous, and no window or
// class of one contains a byte of another.
func TestWindows(t *testing.T) {
	s := windows(t, 1200, 7, 200, 0.12)
	if len(s.Train()) != 880-7 || len(s.Validation()) != 120-7 || len(s.Test()) != 200-7 || s.Len() != 1193 ||
		s.Bytes() != 1200+4*(1200-21) {
		t.Errorf("%d, %d and %d of %d samples in %d bytes", len(s.Train()), len(s.Validation()), len(s.Test()), s.Len(),
			s.Bytes())
	}
	blocks := [][2]int{{0, 880}, {880, 1000}, {1000, 1200}}
	for b, ids := range [][]int32{s.Train(), s.Validation(), s.Test()} {
		x, labels := make([]float32, 7*len(ids)), make([]int32, len(ids))
		if err := s.Gather(ids, x, labels); err != nil {
			t.Fatal(err)
		}
		for i, id := range ids {
			for j := range 8 {
				at := int(id) + j
				if at < blocks[b][0] || at >= blocks[b][1] {
					t.Fatalf("sample %d of split %d reaches byte %d", id, b, at)
				}
				got := float32(labels[i])
				if j < 7 {
					got = x[7*i+j]
				}
				if got != float32(at%251) {
					t.Fatalf("sample %d: byte %d is %v", id, j, got)
				}
			}
			if !bytes.Equal(s.Image(id), s.pixels[id:id+7]) || s.Label(id) != labels[i] {
				t.Fatalf("sample %d differs from what is gathered", id)
			}
		}
	}
	if s.Label(1193) != -1 || s.Image(1193) != nil || s.Label(-1) != -1 || s.Image(-1) != nil {
		t.Error("there are samples beyond the last")
	}
	if err := s.Gather([]int32{1193}, make([]float32, 7), make([]int32, 1)); err == nil {
		t.Error("a sample beyond the last is gathered")
	}
}

// TestTextSplits: another validation share uses the same bytes; the digest covers every byte and the test split, but
// neither validation split nor context.
func TestTextSplits(t *testing.T) {
	s := windows(t, 1200, 7, 200, 0.12)
	for share, want := range map[float64][2]int{0: {1000 - 7, 0}, 0.5: {493, 493}, 8: {985, 1}} {
		c, err := s.WithValidation(share)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Train()) != want[0] || len(c.Validation()) != want[1] || c.Digest() != s.Digest() ||
			!slices.Equal(c.Test(), s.Test()) {
			t.Errorf("validation %v: %d and %d samples", share, len(c.Train()), len(c.Validation()))
		}
	}
	for _, share := range []float64{7, 993, 1000} { // no window, nothing to train on, nothing left
		if _, err := s.WithValidation(share); err == nil {
			t.Errorf("a validation split of %v bytes is taken", share)
		}
	}
	digests := map[string]bool{s.Digest(): true}
	for _, other := range []*Set{windows(t, 1201, 7, 200, 0.12), windows(t, 1200, 7, 201, 0.12)} {
		digests[other.Digest()] = true
	}
	if len(digests) != 3 || windows(t, 1200, 8, 200, 0.12).Digest() != s.Digest() {
		t.Errorf("%d digests of three texts", len(digests))
	}
}

// TestTextRefusals: a text that cannot be trained on is refused with the cause.
func TestTextRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		context int
		wantErr string
	}{
		"empty.txt": {"", 4, "empty.txt is empty"},
		"short.txt": {"abcdefghij", 9, "short.txt is too short: its 10 bytes hold no window of 9 bytes"},
		"tests.txt": {strings.Repeat("abcdefghij", 5), 8, "is too short"},
		"valid.txt": {strings.Repeat("abcdefghij", 10), 8, "of 83 bytes 7 are for validation, and a window is 8 bytes"},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (Reading{Context: c.context}).Load(path); err == nil || !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: %v, want %q", name, err, c.wantErr)
		}
	}
	for what, f := range map[string]func() (*Set, error){
		"a byte of no class": func() (*Set, error) { return NewText(Info{Shape: []int{1}, Classes: 2}, []byte{0, 1, 2, 1}, 0, 0) },
		"an image": func() (*Set, error) {
			return NewText(Info{Shape: []int{1, 1, 1}, Classes: 3}, []byte{0, 1, 2, 1}, 0, 0)
		},
		"no training":       func() (*Set, error) { return NewText(Info{Shape: []int{1}, Classes: 3}, []byte{0, 1, 2, 1}, 3, 0) },
		"a path to nothing": func() (*Set, error) { return Load("./none.txt") },
		"targets":           func() (*Set, error) { return Reading{Outputs: 1}.Load("tales") },
		"a column":          func() (*Set, error) { return Reading{Label: "a"}.Load("tales") },
		"numbers":           func() (*Set, error) { return Reading{Form: &Form{Shape: []int{1}}}.Load("tales") },
		"images for a text": func() (*Set, error) {
			return Reading{Form: &Form{Shape: []int{784}, Bytes: true, Text: true}}.Load("glyphs")
		},
		"a table for a text": func() (*Set, error) {
			return Reading{Form: &Form{Shape: []int{4}, Bytes: true, Text: true}}.Load("./a.csv")
		},
		"a text cut short": func() (*Set, error) {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write(tales(5000))
			z.Close()
			path := filepath.Join(t.TempDir(), "cut.txt.gz")
			os.WriteFile(path, b.Bytes()[:b.Len()/2], 0o600)
			return Load(path)
		},
	} {
		if _, err := f(); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// TestReadText: a text may be gzipped; the context comes from the reading or the form.
func TestReadText(t *testing.T) {
	text := tales(3000)
	plain, zipped := filepath.Join(t.TempDir(), "a.txt"), filepath.Join(t.TempDir(), "a.TXT.gz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(text)
	z.Close()
	if err := os.WriteFile(plain, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(zipped, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := Reading{Context: 5}.Load(plain)
	if err != nil {
		t.Fatal(err)
	}
	form := want.Form()
	if err := form.Check(); err != nil || !form.Text || form.Mean != nil {
		t.Errorf("%+v: %v", form, err)
	}
	for _, r := range []Reading{{Context: 5}, {Form: &form}} {
		s, err := r.Load(zipped)
		if err != nil || s.Digest() != want.Digest() || len(s.Test()) != 500-5 || s.Classes != 'y'+1 ||
			s.ClassName('a') != "a" || s.ClassName(' ') != "0x20" {
			t.Errorf("%+v: %+v, %v", r, s, err)
		}
	}
	// for predictions every window is a sample; the last has no next byte
	asked, err := Reading{Form: &form}.Ask(plain)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(text) - 4; len(asked.IDs) != n || len(asked.Names) != n || asked.Names[0] != "6" ||
		asked.Answers[n-1] != "" || asked.Answers[0] != asked.ClassName(int(text[5])) {
		t.Errorf("%d samples, the first for byte %s, the last is %q", len(asked.IDs), asked.Names[0],
			asked.Answers[len(asked.Answers)-1])
	}
	if !bytes.Equal(asked.Image(asked.IDs[len(asked.IDs)-1]), text[len(text)-5:]) {
		t.Error("the last window is another")
	}
}

// TestFolderOfTexts: the files of a folder form one text in the order of their names, with a separate test text; a
// folder with other files is not a text.
func TestFolderOfTexts(t *testing.T) {
	text := tales(3000)
	dir := t.TempDir()
	put := func(name string, p []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("whole.txt", text)
	put("books/b.txt", text[700:])
	put("books/a.txt", text[:700])
	put("books/.hidden", []byte("x"))
	put("parts/train/1.txt", text[:2000])
	put("parts/train/2.txt", text[2000:2600])
	put("parts/test.txt", text[2600:])
	put("pictures/readme.txt", text)
	put("pictures/rose/1.png", nil)
	r := Reading{Context: 5}
	want, err := r.Load(filepath.Join(dir, "whole.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := r.Load(filepath.Join(dir, "books")); err != nil || s.Digest() != want.Digest() {
		t.Errorf("a folder is another text than its files: %v", err)
	}
	s, err := r.Load(filepath.Join(dir, "parts"))
	if err != nil || len(s.Test()) != 400-5 || !bytes.Equal(s.Image(s.Test()[0]), text[2600:2605]) ||
		s.Digest() == want.Digest() {
		t.Errorf("%d samples to test on: %v", len(s.Test()), err)
	}
	form := want.Form()
	if a, err := (Reading{Form: &form}).Ask(filepath.Join(dir, "parts")); err != nil || len(a.IDs) != 400-4 {
		t.Errorf("asked about the folder, not about its test: %v", err)
	}
	put("lists/train.txt", []byte("rose/1.png 0"))
	put("lists/test.txt", []byte("rose/2.png 0"))
	put("lists/train/rose/1.png", nil)
	put("lists/test/rose/2.png", nil)
	put("tables/train.csv", nil)
	put("tables/train.txt", text)
	put("tables/test.txt", text)
	for _, name := range []string{"pictures", "lists", "tables", "books/none", "parts/train/none"} {
		if IsText(filepath.Join(dir, name)) {
			t.Errorf("%s is taken for a text", name)
		}
	}
	put("capitals/Train.txt", text[:2600])
	put("capitals/TEST.txt", text[2600:])
	if c, err := r.Load(filepath.Join(dir, "capitals")); err != nil || c.Digest() != s.Digest() {
		t.Errorf("Train.txt and TEST.txt: %v", err)
	}
	put("none/train.txt", text)
	put("none/test.txt", nil)
	if _, err := r.Load(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "test.txt is empty") {
		t.Errorf("nothing to test on: %v", err)
	}
	put("long/train.txt", make([]byte, 20))
	put("long/test.txt", make([]byte, 5))
	if _, err := r.Load(filepath.Join(dir, "long")); err == nil || !strings.Contains(err.Error(), "too short") {
		t.Errorf("five bytes to test on: %v", err)
	}
}

// bits returns the cross-entropy on test of the best count model that sees order previous bytes: fitted to train, with
// 0.5 added to each count.
func bits(train, test []byte, order int) float64 {
	type pair struct {
		before string
		next   byte
	}
	pairs, befores, alphabet := map[pair]float64{}, map[string]float64{}, map[byte]bool{}
	for i := range train {
		alphabet[train[i]] = true
		if i >= order {
			before := string(train[i-order : i])
			pairs[pair{before, train[i]}]++
			befores[before]++
		}
	}
	sum, n := 0.0, 0.0
	for i := order; i < len(test); i++ {
		before := string(test[i-order : i])
		p := (pairs[pair{before, test[i]}] + 0.5) / (befores[before] + 0.5*float64(len(alphabet)))
		sum, n = sum-math.Log2(p), n+1
	}
	return sum / n
}

// TestTales: the text tales must never change, is a prefix of longer ones, and has structure beyond pairs of bytes:
// docs/data.md states its bits.
func TestTales(t *testing.T) {
	s, err := Load("tales")
	if err != nil {
		t.Fatal(err)
	}
	if s.Digest() != TalesDigest {
		t.Errorf("digest %s, recorded %s", s.Digest(), TalesDigest)
	}
	text := tales(talesTrain + talesTest)
	if !bytes.Equal(text, s.pixels) || !bytes.HasPrefix(tales(len(text)+1000), text) {
		t.Error("a longer text begins otherwise")
	}
	k, err := Lookup("tales")
	if err != nil || len(s.Test()) != k.Test-1 || s.Classes != k.Classes ||
		len(s.Train())+len(s.Validation()) != k.Train-2 {
		t.Errorf("%+v: %v", k, err)
	}
	unigram, bigram := s.Baselines()
	for order, got := range []float64{unigram, bigram} {
		if want := bits(text[:talesTrain], text[talesTrain:], order); math.Abs(got-want) > 1e-3 {
			t.Errorf("%d bytes before: %v bits a byte, counted %v", order, got, want)
		}
	}
	for order, want := range map[int]float64{0: 4.12, 1: 2.48, 3: 0.92} {
		if got := bits(text[:talesTrain], text[talesTrain:], order); math.Abs(got-want) > 0.01 {
			t.Errorf("%d bytes before: %.3f bits a byte, documented %v", order, got, want)
		}
	}
}

// TestWindowsApart: the windows to validate and to test on do not overlap, and Next has the byte behind each position.
func TestWindowsApart(t *testing.T) {
	text := make([]byte, 1200)
	for i := range text {
		text[i] = byte(i % 251)
	}
	s, err := NewText(Info{Name: "count", Shape: []int{7}, Classes: 251, Apart: true}, text, 200, 0.12)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Train()) != 880-7 || len(s.Validation()) != (120-1)/7 || len(s.Test()) != (200-1)/7 {
		t.Errorf("%d, %d and %d samples", len(s.Train()), len(s.Validation()), len(s.Test()))
	}
	for i, ids := range [][]int32{s.Validation(), s.Test()} {
		at := []int{880, 1000}[i]
		for _, id := range ids {
			for _, b := range s.Next(id) {
				if at++; b != text[at] {
					t.Fatalf("byte %d is %d, want %d", at, b, text[at])
				}
			}
		}
	}
}
