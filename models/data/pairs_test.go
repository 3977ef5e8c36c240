package data

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fashion returns two pairs of n and m images with the file names of MNIST.
func fashion(n, m int) map[string][]byte {
	label := func(n int) (l []byte) {
		for i := range n {
			l = append(l, byte(i%3))
		}
		return l
	}
	return map[string][]byte{
		"train-images-idx3-ubyte.gz": gzipped(idx(make([]byte, 6*n), n, 2, 3)),
		"train-labels-idx1-ubyte.gz": gzipped(idx(label(n), n)),
		"t10k-images-idx3-ubyte":     idx(make([]byte, 6*m), m, 2, 3), "t10k-labels-idx1-ubyte": idx(label(m), m),
	}
}

func TestIDXPairs(t *testing.T) {
	dir := put(t, fashion(24, 9))
	for _, path := range []string{dir, filepath.Join(dir, "train-images-idx3-ubyte.gz")} {
		s, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Test()) != 9 || s.Len() != 33 || s.Classes != 3 || s.Features() != 6 || s.Label(24+2) != 2 {
			t.Errorf("%s: %d samples, %d for tests", path, s.Len(), len(s.Test()))
		}
	}
	s, err := Load(filepath.Join(dir, "t10k-images-idx3-ubyte")) // a pair not named train is used if it is the only one
	if err != nil || s.Len() != 9 || len(s.Test()) != 3 {
		t.Errorf("one pair: %v", err)
	}
}

func TestIDXPairsRefuse(t *testing.T) {
	change := func(f func(map[string][]byte)) string {
		files := fashion(24, 9)
		f(files)
		return put(t, files)
	}
	for name, c := range map[string]struct{ path, wantErr string }{
		"no labels": {change(func(f map[string][]byte) { delete(f, "train-labels-idx1-ubyte.gz") }),
			"train-images-idx3-ubyte.gz has no labels: put them into train-labels-idx1-ubyte"},
		"count":  {change(func(f map[string][]byte) { f["t10k-labels-idx1-ubyte"] = idx(make([]byte, 8), 8) }), "do not match 9 images"},
		"labels": {change(func(f map[string][]byte) { f["train-images-idx3-ubyte.gz"] = f["train-labels-idx1-ubyte.gz"] }), "these are labels"},
		"size":   {change(func(f map[string][]byte) { f["t10k-images-idx3-ubyte"] = idx(make([]byte, 36), 9, 2, 2) }), "shape [1 2 2], the training samples of [1 2 3]"},
		"many":   {change(func(f map[string][]byte) { f["b-train-images-idx3-ubyte"] = nil }), "holds 3 files of images and not one to train on"},
		"cut": {change(func(f map[string][]byte) {
			f["t10k-images-idx3-ubyte"] = f["t10k-images-idx3-ubyte"][:30]
		}), "at byte 30: the file ends"},
	} {
		if _, err := Load(c.path); err == nil || !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestIDXChannelsLast: IDX images may have their channels last, like NPY arrays.
func TestIDXChannelsLast(t *testing.T) {
	px := make([]byte, 24*4*5*3)
	for i := range px {
		px[i] = byte(i % 3) // the channel, if it is last
	}
	for name, c := range map[string]struct {
		dims  []int
		shape []int
		image []byte // the first bytes
	}{
		"last":    {[]int{24, 4, 5, 3}, []int{3, 4, 5}, make([]byte, 20)},
		"one":     {[]int{24, 4, 15, 1}, []int{1, 4, 15}, []byte{0, 1, 2, 0}},
		"first":   {[]int{24, 3, 4, 5}, []int{3, 4, 5}, []byte{0, 1, 2, 0}},
		"neither": {[]int{24, 5, 3, 4}, []int{5, 3, 4}, []byte{0, 1, 2, 0}},
	} {
		files := fashion(24, 9)
		delete(files, "t10k-images-idx3-ubyte")
		files["train-images-idx3-ubyte.gz"] = idx(px, c.dims...)
		dir := put(t, files)
		s, err := Reading{}.Load(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(s.Shape, c.shape) || !bytes.HasPrefix(s.Image(0), c.image) {
			t.Errorf("%s: shape %v, %v", name, s.Shape, s.Image(0))
		}
		form := s.Form()
		a, err := Reading{Form: &form}.Ask(dir)
		if err != nil || !bytes.Equal(a.Image(0), s.Image(0)) {
			t.Errorf("%s: a model is asked about another image: %v", name, err)
		}
	}
}
