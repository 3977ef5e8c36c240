package data

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestValidationSplit: samples marked for validation form the validation split, in every format.
func TestValidationSplit(t *testing.T) {
	table := func(first, n int) []byte {
		var b strings.Builder
		b.WriteString("x,z,class\n")
		for i := range n {
			fmt.Fprintf(&b, "%d.5,%d,%s\n", first+i, i%4, "ab"[i%2:i%2+1])
		}
		return []byte(b.String())
	}
	x := func(first, n int) []byte {
		v := make([]float32, 0, 2*n)
		for i := range n {
			v = append(v, float32(first+i)+0.5, float32(i%4))
		}
		return npy("<f4", fmt.Sprintf("(%d, 2)", n), v)
	}
	y := func(n int) []byte {
		v := make([]int32, n)
		for i := range v {
			v[i] = int32(i % 2)
		}
		return npy("<i4", fmt.Sprintf("(%d,)", n), v)
	}
	pictures := func(files map[string][]byte, split string, n int) {
		for i := range n {
			files[fmt.Sprintf("%s/%s/%d.png", split, "ab"[i%2:i%2+1], i)] = encodePNG(shade(4, 3, byte(10*i)))
		}
	}
	folders := map[string][]byte{}
	pictures(folders, "train", 24)
	pictures(folders, "valid", 4)
	pictures(folders, "test", 6)
	untested := map[string][]byte{}
	pictures(untested, "train", 24)
	pictures(untested, "val", 4)
	arrays := map[string][]byte{"x_train.npy": x(0, 24), "y_train.npy": y(24), "x_val.npy": x(30, 4), "y_val.npy": y(4),
		"x_test.npy": x(40, 6), "y_test.npy": y(6)}
	for name, c := range map[string]struct {
		path              string
		train, held, test int
	}{
		"tables":          {put(t, map[string][]byte{"train.csv": table(0, 24), "val.csv": table(30, 4), "test.csv": table(40, 6)}), 24, 4, 6},
		"tables, no test": {put(t, map[string][]byte{"train.csv": table(0, 24), "dev.csv": table(30, 4)}), 20, 4, 4},
		"pictures":        {put(t, folders), 24, 4, 6},
		"no test":         {put(t, untested), 20, 4, 4},
		"NPY":             {put(t, arrays), 24, 4, 6},
		"NPZ":             {filepath.Join(put(t, map[string][]byte{"a.npz": npz(trimmed(arrays))}), "a.npz"), 24, 4, 6},
	} {
		s, err := Reading{}.Load(c.path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(s.Train()) != c.train || len(s.Validation()) != c.held || len(s.Test()) != c.test {
			t.Errorf("%s: splits of %d, %d and %d samples", name, len(s.Train()), len(s.Validation()), len(s.Test()))
		}
		if note := strings.Contains(strings.Join(s.Notes, "\n"), "no test samples"); note != s.TestsDrawn() {
			t.Errorf("%s: tests are drawn: %t, noted: %t", name, s.TestsDrawn(), note)
		}
		if got := s.sampleName(int(s.Validation()[0])); strings.Contains(name, "tables") &&
			!strings.Contains(got, "val.csv: line 2") && !strings.Contains(got, "dev.csv: line 2") {
			t.Errorf("%s: the first validation sample is %s", name, got)
		}
		if _, err := s.WithValidation(0.5); err == nil || !strings.Contains(err.Error(), "4 validation samples of its own") {
			t.Errorf("%s: another validation share: %v", name, err)
		}
		all, err := Reading{Form: new(s.Form()), Undivided: true}.Load(c.path)
		if err != nil || len(all.Train()) != c.train+c.held+c.test {
			t.Errorf("%s: undivided: %d samples, %v", name, len(all.Train()), err)
		}
	}
}

// trimmed returns files with the extension .npy removed from their names.
func trimmed(files map[string][]byte) map[string][]byte {
	out := map[string][]byte{}
	for name, b := range files {
		out[strings.TrimSuffix(name, ".npy")] = b
	}
	return out
}

// TestValidationIsHeldOut: features are standardised on the training samples only.
func TestValidationIsHeldOut(t *testing.T) {
	x := npy("<f4", "(16, 1)", []float32{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1})
	y := npy("<i4", "(16,)", []int32{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1})
	far := npy("<f4", "(2, 1)", []float32{1e6, -1e6})
	labels := npy("<i4", "(2,)", []int32{0, 1})
	s, err := Reading{}.Load(filepath.Join(put(t, map[string][]byte{"a.npz": npz(map[string][]byte{
		"x_train": x, "y_train": y, "x_val": far, "y_val": labels, "x_test": far, "y_test": labels,
	})}), "a.npz"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Mean, []float64{0.5}) || !slices.Equal(s.Std, []float64{0.5}) {
		t.Errorf("mean %v, deviation %v", s.Mean, s.Std)
	}
}
