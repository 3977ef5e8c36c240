package data

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// column returns n samples of one value each, i for sample i, with labels i modulo classes.
func column(n, classes int) *part {
	p := &part{shape: []int{1}, path: "column"}
	for i := range n {
		p.Values = append(p.Values, float32(i))
		p.names = append(p.names, strconv.Itoa(i%classes))
	}
	return p
}

// raw returns the values of samples before normalisation.
func raw(t *testing.T, s *Set, which []int32) (out []int) {
	t.Helper()
	x, y := make([]float32, len(which)), make([]int32, len(which))
	if err := s.Gather(which, x, y); err != nil {
		t.Fatal(err)
	}
	for _, v := range x {
		out = append(out, int(math.Round(float64(v)*float64(s.Std[0])+float64(s.Mean[0]))))
	}
	return out
}

// TestSplitByClass: every class has its share of every split, without overlap and reproducibly; a rare class has a
// sample in each.
func TestSplitByClass(t *testing.T) {
	p := column(603, 3)
	for i := range 600 {
		p.names[i] = strconv.Itoa(min(1, i/480))
	}
	p.names[600], p.names[601], p.names[602] = "2", "2", "2"
	s, err := Reading{}.assemble("x", splits{train: p})
	if err != nil {
		t.Fatal(err)
	}
	train, validation, test := raw(t, s, s.Train()), raw(t, s, s.Validation()), raw(t, s, s.Test())
	for i, v := range slices.Sorted(slices.Values(slices.Concat(train, validation, test))) {
		if v != i {
			t.Fatalf("sample %d of the file is %d", i, v)
		}
	}
	for name, c := range map[string]struct {
		split []int
		want  [3]int
	}{"training": {train, [3]int{367, 92, 1}}, "validation": {validation, [3]int{33, 8, 1}},
		"test": {test, [3]int{80, 20, 1}}} {
		var got [3]int
		for _, v := range c.split {
			class, err := strconv.Atoi(p.names[v])
			if err != nil {
				t.Fatal(err)
			}
			got[class]++
		}
		if got != c.want {
			t.Errorf("%s: %v samples of the classes, want %v", name, got, c.want)
		}
	}
	if want := []int{13, 20, 23, 34, 44, 48}; !slices.Equal(test[:6], want) {
		t.Errorf("the split has changed: test samples %v, recorded %v", test[:6], want)
	}
}

// TestNormalisedByTrainingSplit: mean and deviation are computed on the training split only.
func TestNormalisedByTrainingSplit(t *testing.T) {
	train, test := column(100, 2), column(8, 2)
	for i := range test.Values {
		test.Values[i] = 1e6
	}
	s, err := Reading{}.assemble("x", splits{train: train, test: test})
	if err != nil {
		t.Fatal(err)
	}
	var sum, squares float64
	for _, id := range s.Train() {
		sum += float64(id)
	}
	mean := sum / float64(len(s.Train()))
	for _, id := range s.Train() {
		squares += (float64(id) - mean) * (float64(id) - mean)
	}
	std := math.Sqrt(squares / float64(len(s.Train())))
	if math.Abs(float64(s.Mean[0])-mean) > 1e-4 || math.Abs(float64(s.Std[0])-std) > 1e-4 {
		t.Errorf("mean %v and deviation %v, want %v and %v", s.Mean[0], s.Std[0], mean, std)
	}
	if got := raw(t, s, s.Test()); !slices.Equal(got, slices.Repeat([]int{1000000}, 8)) {
		t.Errorf("test samples %v", got)
	}
}

func TestConstantFeature(t *testing.T) {
	p := column(20, 2)
	p.shape, p.Values = []int{2}, make([]float32, 40)
	for i := range p.Values {
		p.Values[i] = 5
		if i%2 == 1 {
			p.Values[i] = float32(i)
		}
	}
	s, err := Reading{}.assemble("x", splits{train: p})
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, 2), make([]int32, 1)
	if err := s.Gather([]int32{3}, x, y); err != nil || x[0] != 0 || x[1] == 0 {
		t.Errorf("a constant becomes %v (%v)", x[0], err)
	}
}

func TestAssembleRefuses(t *testing.T) {
	named := column(8, 2)
	named.names[7] = "cat"
	shaped := column(8, 2)
	shaped.shape, shaped.Values = []int{2}, make([]float32, 16)
	typed := column(8, 2)
	typed.Values, typed.Pixels = nil, make([]byte, 8)
	rare := column(24, 2) // two samples are enough for two splits
	rare.names[0], rare.names[1] = "2", "2"
	untested := column(8, 2)
	for i := range untested.names {
		untested.names[i] = "1"
	}
	far := column(24, 2)
	for i := range far.Values {
		far.Values[i] = float32(i) * 1e-30
	}
	outlier := column(8, 2)
	outlier.Values[0] = 3e38
	for name, c := range map[string]struct {
		train, test *part
		wantErr     string
	}{
		"label": {column(24, 2), named, `column: row 8: label "cat" is none of the 2 classes`},
		"shape": {column(24, 2), shaped, "its samples are of shape [2], the training samples of [1]"},
		"type":  {column(24, 2), typed, "of another type"},
		"rare":  {rare, nil, "class 2 has no sample in the validation split"},
		"test":  {column(24, 2), untested, "class 0 has no sample in the test split"},
		"far":   {far, outlier, "column: row 1 has the value 3e+38, too far from the mean"},
	} {
		if _, err := (Reading{}).assemble("x", splits{train: c.train, test: c.test}); err == nil ||
			!strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLabelText(t *testing.T) {
	for in, want := range map[string]string{"3": "3", "3.0": "3", " 3.000 ": "3", "-1.0": "-1", "3.5": "3.5",
		"v1.0": "v1.0", ".0": ".0", "rose": "rose"} {
		if got := trimDecimals(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	files := map[string][]byte{"x.parquet": nil, "empty/.hidden": nil, "both/test/x": nil, "flowers.csv": nil,
		"words.txt": nil}
	for name, b := range fashion(24, 9) {
		files["both/train/"+name] = b
	}
	dir := put(t, files)
	for path, wantErr := range map[string]string{
		dir + "/x.parquet":    "of no kind that can be read",
		dir + "/nothing.csv":  "nothing.csv",
		dir + "/empty":        "has no sub-folders",
		dir + "/nowhere/":     "no such file or directory: give the path of a file or a folder of samples",
		dir + "/flower.csv":   "no such file or directory (did you mean flowers.csv?): give the path",
		dir + "/word.txt":     "no such file or directory (did you mean words.txt?): give the path",
		dir + "/nothing.npz":  "nothing.npz",
		dir + "/x.npy":        "no such file",
		dir + "/both":         "train has splits of its own; give that path instead of its parent",
		dir + "/images-ubyte": "images-ubyte",
	} {
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestUndivided: a reading of all samples in a model's form keeps them in one split, however few; a training run does
// not.
func TestUndivided(t *testing.T) {
	dir := put(t, map[string][]byte{"x.csv": []byte("size,shade,kind\n5,20,rose\n1,0,aster\n"),
		"one.csv":        []byte("size,shade,kind\n5,20,rose\n"),
		"both/train.csv": []byte("size,shade,kind\n5,20,rose\n"),
		"both/test.csv":  []byte("size,shade,kind\n1,0,aster\n1,0,rose\n"), "own.txt": []byte("abcde"),
		"texts/a.txt": []byte("abc"), "texts/b.txt": []byte("de"), "long.txt": []byte(strings.Repeat("abcde", 20))})
	r := Reading{Form: flowerForm(true), Undivided: true}
	for name, n := range map[string]int{"x.csv": 2, "one.csv": 1, "both": 3} {
		s, err := r.Load(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(s.Train()) != n || len(s.Validation()) != 0 || len(s.Test()) != 0 || s.TestsDrawn() || s.Label(0) != 1 {
			t.Errorf("%s: %d, %d and %d samples, the first of class %d", name, len(s.Train()), len(s.Validation()),
				len(s.Test()), s.Label(0))
		}
	}
	r.Undivided = false
	if _, err := r.Load(filepath.Join(dir, "x.csv")); err == nil ||
		!strings.Contains(err.Error(), "need at least 8; brood eval --split all scores any number") {
		t.Errorf("two samples to split: %v", err)
	}
	r.Undivided, r.Form = true, nil // its own means and deviations need a split
	if _, err := r.Load(filepath.Join(dir, "x.csv")); err == nil || !strings.HasSuffix(err.Error(), "need at least 8") {
		t.Errorf("two samples without a form: %v", err)
	}
	r.Form = &Form{Shape: []int{3}, Bytes: true, Text: true}
	t.Chdir(dir)
	for _, path := range []string{"own.txt", "./texts"} {
		if s, err := r.Load(path); err != nil || len(s.Train()) != 2 || len(s.Test()) != 0 || s.TestsDrawn() {
			t.Errorf("%s, five bytes: %v", path, err)
		}
	}
	if s, err := (Reading{Context: 1}).Load(filepath.Join(dir, "long.txt")); err != nil || !s.TestsDrawn() {
		t.Errorf("a text whose tests are drawn: %v", err)
	}
}

// TestNumberedClasses: folders named by numbers are classes with these names, ordered by value; labels of tables and
// arrays count from 0 or 1.
func TestNumberedClasses(t *testing.T) {
	folders := func(names ...string) map[string][]byte {
		files := map[string][]byte{}
		for k, name := range names {
			for i := range 4 {
				files[fmt.Sprintf("%s/%d.png", name, i)] = encodePNG(shade(2, 2, byte(10*k)))
			}
		}
		return files
	}
	column := func(first int) map[string][]byte {
		var b strings.Builder
		for i := range 48 {
			fmt.Fprintf(&b, "%d,%d\n", i*i, first+i%12)
		}
		return map[string][]byte{"x.csv": []byte(b.String())}
	}
	array := func(first uint8) map[string][]byte {
		y := make([]uint8, 24)
		for i := range y {
			y[i] = first + uint8(i%3)
		}
		return map[string][]byte{"x.npy": npy("|u1", "(24, 2)", make([]uint8, 48)), "y.npy": npy("|u1", "(24,)", y)}
	}
	pair := fashion(24, 9)
	for _, name := range []string{"train-labels-idx1-ubyte.gz", "t10k-labels-idx1-ubyte"} {
		n := 24
		if name[0] == 't' && name[1] == '1' {
			n = 9
		}
		labels := make([]byte, n)
		for i := range labels {
			labels[i] = byte(1 + i%3)
		}
		pair[name] = idx(labels, n)
	}
	for name, c := range map[string]struct {
		files   map[string][]byte
		below   string
		classes []string
		named   bool
	}{
		"folders from 1":    {folders("1", "10", "2", "9"), "", []string{"1", "2", "9", "10"}, true},
		"folders from 0":    {folders("0", "1", "2"), "", []string{"0", "1", "2"}, false},
		"folders and names": {folders("1", "10", "2", "x"), "", []string{"1", "10", "2", "x"}, true},
		"negative folders":  {folders("-1", "0", "70000"), "", []string{"-1", "0", "70000"}, true},
		"table from 1":      {column(1), "/x.csv", numbersFrom(1, 12), true},
		"table from 0":      {column(0), "/x.csv", numbersFrom(0, 12), false},
		"array from 1":      {array(1), "", []string{"1", "2", "3"}, true},
		"IDX from 1":        {pair, "", []string{"1", "2", "3"}, true},
	} {
		s, err := Load(put(t, c.files) + c.below)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := s.Form().Classes; !slices.Equal(got, c.classes) || (s.Names != nil) != c.named ||
			s.ClassName(0) != c.classes[0] || s.Classes != len(c.classes) {
			t.Errorf("%s: %d classes %q, names %q", name, s.Classes, got, s.Names)
		}
	}
	for name, files := range map[string]map[string][]byte{"table from 2": column(2), "array from 2": array(2)} {
		dir := put(t, files)
		if name == "table from 2" {
			dir += "/x.csv"
		}
		if _, err := Load(dir); err == nil ||
			!strings.Contains(err.Error(), "class 1 has no sample, but there is a class ") ||
			!strings.Contains(err.Error(), "number the classes from 0 or 1 without a gap") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWrongFiles: the error for a file that contains no data names the kind of the file, in every place.
func TestWrongFiles(t *testing.T) {
	pointer, page, pickle := []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
		[]byte("<!DOCTYPE html>\n<html>a,b</html>\n"), []byte("\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94")
	x, good := npy("<f4", "(9, 2)", make([]float32, 18)), encodePNG(shade(2, 2, 0))
	images := fashion(24, 9)
	images["train-labels-idx1-ubyte.gz"] = pointer
	form := &Form{Shape: []int{2}, Mean: []float64{0, 0}, Std: []float64{1, 1}, Classes: []string{"0", "1"}}
	for _, c := range []struct {
		files         map[string][]byte
		path, wantErr string
		asked         bool // Ask reads it too
	}{
		{map[string][]byte{"x.csv": pointer}, "/x.csv", "x.csv is a Git LFS pointer", true},
		{map[string][]byte{"x.csv": page}, "/x.csv", "x.csv is an HTML page", true},
		{map[string][]byte{"x.npz": page}, "/x.npz", "x.npz is an HTML page", true},
		{map[string][]byte{"x.npz": pickle}, "/x.npz", "x.npz is a Python pickle", true},
		{map[string][]byte{"x.pkl": pickle}, "/x.pkl", "x.pkl is a Python pickle", true},
		{map[string][]byte{"x.npy": x, "y.npy": pointer}, "", "y.npy is a Git LFS pointer", true},
		{map[string][]byte{"a/1.png": good, "b/1.png": pointer}, "", "1.png is a Git LFS pointer", true},
		{images, "", "train-labels-idx1-ubyte.gz is a Git LFS pointer", false},
		{map[string][]byte{"x.txt": pointer}, "/x.txt", "x.txt is a Git LFS pointer", false},
	} {
		path := put(t, c.files) + c.path
		_, err := Load(path)
		if err == nil || !strings.Contains(err.Error(), c.wantErr) || strings.Contains(err.Error(), "save the file again") {
			t.Errorf("%v, want %q", err, c.wantErr)
		}
		if !c.asked {
			continue
		}
		if _, err := (Reading{Form: form}).Ask(path); err == nil || !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("asked: %v, want %q", err, c.wantErr)
		}
	}
	text := bytes.Repeat(page, 20) // valid as a text
	if _, err := Load(put(t, map[string][]byte{"x.txt": text}) + "/x.txt"); err != nil {
		t.Errorf("a page as a text: %v", err)
	}
}
