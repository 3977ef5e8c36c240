package data

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// flowersHot returns a table of 60 samples of three classes, once with a column of names and once one-hot, with the
// label columns in the middle.
func flowersHot(header bool) (named, hot string) {
	kinds := []string{"kind_tulip", "kind_aster", "kind_rose"}
	if header {
		named, hot = "size,kind,shade\n", "size,"+strings.Join(kinds, ",")+",shade\n"
	}
	for i := range 60 {
		k := i * 7 % 3
		row := []string{"0", "0", "0"}
		row[k] = []string{"1", "1.0", "True"}[i%3]
		label := kinds[k]
		if !header {
			label = fmt.Sprint(k)
		}
		named += fmt.Sprintf("%d.5,%s,%d.25\n", i, label, i%11)
		hot += fmt.Sprintf("%d.5,%s,%d.25\n", i, strings.Join(row, ","), i%11)
	}
	return named, hot
}

// TestOneHot: a table with one-hot classes gives the same data, bit for bit, as one with a column of names, in every
// notation of the label option.
func TestOneHot(t *testing.T) {
	for header, asked := range map[bool][]string{
		true: {"kind_*", "kind_tulip,kind_aster,kind_rose", "kind_rose, kind_tulip,3", "2,3,4"}, false: {"2,3,4"},
	} {
		named, hot := flowersHot(header)
		label := "2"
		if header {
			label = "kind"
		}
		r := Reading{Label: label}
		want, err := r.Load(put(t, map[string][]byte{"x.csv": []byte(named)}) + "/x.csv")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range asked {
			r.Label = text
			got, err := r.Load(put(t, map[string][]byte{"x.csv": []byte(hot)}) + "/x.csv")
			if err != nil {
				t.Errorf("%q: %v", text, err)
				continue
			}
			if got.Digest() != want.Digest() || !slices.Equal(got.Form().Classes, want.Form().Classes) ||
				!slices.Equal(got.Form().Features, want.Form().Features) {
				t.Errorf("%q: %v of %v, want %v of %v", text, got.Form().Classes, got.Form().Features, want.Form().Classes,
					want.Form().Features)
			}
			form := got.Form()
			split := strings.SplitAfterN(hot, "\n", 2)
			if header { // a test table has its columns in another order, and a model reads them too
				split[0] = "size,kind_aster,kind_tulip,kind_rose,shade\n"
			}
			other, err := Reading{Form: &form}.Load(put(t, map[string][]byte{"x.csv": []byte(strings.Join(split, ""))}) +
				"/x.csv")
			if err != nil {
				t.Errorf("%q: by the model %v", text, err)
			} else if same := other.Digest() == got.Digest(); same == header {
				t.Errorf("%q: by the model the digest is the same: %v", text, same)
			}
			a, err := Reading{Form: &form}.Ask(put(t, map[string][]byte{"x.csv": []byte(hot)}) + "/x.csv")
			if err != nil || a.Answers == nil || !slices.Contains(form.Classes, a.Answers[7]) {
				t.Errorf("%q: asked %v, %v", text, a, err)
			}
		}
	}
	// test tables are matched by the names of the training columns
	_, hot := flowersHot(true)
	if _, err := (Reading{Label: "kind_*"}).Load(put(t,
		map[string][]byte{"train.csv": []byte(hot), "test.csv": []byte(hot)})); err != nil {
		t.Error(err)
	}
}

// TestSeveralTargets: several label columns of a regression are its outputs, in the requested order.
func TestSeveralTargets(t *testing.T) {
	var text strings.Builder
	text.WriteString("a,y_1,b,y_2\n")
	for i := range 30 {
		fmt.Fprintf(&text, "%d,%d,%d,%d\n", i, 100+3*i, i%7, 5-i%4)
	}
	for label, order := range map[string][2]int{"y_*": {0, 1}, "y_2,y_1": {1, 0}, "4,2": {1, 0}} {
		s, err := Reading{Label: label, Outputs: 2}.Load(put(t, map[string][]byte{"x.csv": []byte(text.String())}) + "/x.csv")
		if err != nil || s.Outputs != 2 || s.Features() != 2 {
			t.Fatalf("%s: %v", label, err)
		}
		for _, id := range s.Train() {
			x, y := make([]float32, 2), make([]int32, 1)
			if err := s.Gather([]int32{id}, x, y); err != nil {
				t.Fatal(err)
			}
			i := int(float64(x[0])*s.Std[0] + s.Mean[0] + 0.5)
			for k, of := range order {
				want := []float64{float64(100 + 3*i), float64(5 - i%4)}[of]
				if got := s.Restore(k, s.Targets(id)[k]); got < want-1e-3 || got > want+1e-3 {
					t.Fatalf("%s: output %d of sample %d is %v, want %v", label, k+1, i, got, want)
				}
			}
		}
	}
}

func TestOneHotRefuses(t *testing.T) {
	rows := func(bad string) string {
		return "a,x,y,z\n" + strings.Repeat("1,1,0,0\n2,0,1,0\n3,0,0,1\n", 4) + bad + "\n"
	}
	for wantErr, c := range map[string][2]string{
		"line 14: 2 of the columns x, y, z are 1, and one is the class of a sample": {"x,y,z", rows("1,1,1,0")},
		"line 14: 0 of the columns x, y, z are 1":                                   {"x,y,z", rows("1,0,0,0")},
		`line 14, column "y": "0.5" is neither 0 nor 1`:                             {"x,y,z", rows("1,0,0.5,0")},
		`line 14, column "y": "" is neither 0 nor 1`:                                {"x,y,z", rows("1,1,,0")},
		`has no column "w" for labels; its columns are a, x, y, z`:                  {"x,w", rows("1,1,0,0")},
		`has no column "q*" for labels`:                                             {"q*", rows("1,1,0,0")},
		"label x,y,2: it names column 2 of":                                         {"x,y,2", rows("1,1,0,0")},
		`has no column "" for labels`:                                               {"x,", rows("1,1,0,0")},
	} {
		if _, err := (Reading{Label: c[0]}).Load(put(t, map[string][]byte{"x.csv": []byte(c[1])}) + "/x.csv"); err == nil ||
			!strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: %v", wantErr, err)
		}
	}
}

// TestOneHotArray: one-hot labels of n x classes are the classes of their positions.
func TestOneHotArray(t *testing.T) {
	const n, classes = 36, 4
	x, y, hot := make([]float32, 2*n), make([]int64, n), make([]float32, n*classes)
	for i := range n {
		x[2*i], x[2*i+1], y[i] = float32(i)+0.5, float32(i%7), int64(i*3%classes)
		hot[i*classes+int(y[i])] = 1
	}
	load := func(labels []byte) (*Set, error) {
		return loadFile(t, "x.npz", npz(map[string][]byte{"x": npy("<f4", "(36, 2)", x), "y": labels}))
	}
	want, err := load(npy("<i8", "(36,)", y))
	if err != nil {
		t.Fatal(err)
	}
	got, err := load(npy("<f4", "(36, 4)", hot))
	if err != nil || got.Digest() != want.Digest() || got.Classes != classes {
		t.Errorf("one-hot labels are other data: %v", err)
	}
	for wantErr, at := range map[string]struct {
		i int
		v float32
	}{"label 1 has 2 numbers that are 1": {1, 1}, "label 1 has 0 numbers that are 1": {0, 0},
		"label 2 has the number 0.25": {5, 0.25}} {
		bad := slices.Clone(hot)
		bad[at.i] = at.v
		if _, err := load(npy("<f4", "(36, 4)", bad)); err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: %v", wantErr, err)
		}
	}
}

// TestColumnNumbers: in a table without column names a number is a column number, even if the first sample contains
// it; a model reads the table the same way.
func TestColumnNumbers(t *testing.T) {
	var one, hot, wide strings.Builder
	for i := range 30 {
		row := []string{"0", "0", "0"}
		row[i%3] = "1"
		fmt.Fprintf(&one, "%d,%d,%d.5,%d\n", 4+i, 5-i%4, i, i%3)
		fmt.Fprintf(&hot, "%d,%d,%d.5,%s\n", 4+i, 5-i%4, i, strings.Join(row, ","))
		fmt.Fprintf(&wide, "%d,%d,%d.5,%d,%d\n", 4+i, 5-i%4, i, 900+i, i%5)
	}
	for label, c := range map[string]struct {
		text    string
		outputs int
	}{"4": {one.String(), 0}, "4,5,6": {hot.String(), 0}, "4,5": {wide.String(), 2}} {
		r := Reading{Label: label, Outputs: c.outputs}
		path := put(t, map[string][]byte{"x.csv": []byte(c.text)}) + "/x.csv"
		s, err := r.Load(path)
		if err != nil {
			t.Errorf("%s: %v", label, err)
			continue
		}
		// The last column.
		if n := len(s.Train()) + len(s.Validation()) + len(s.Test()); n != 30 || s.Features() != 3 ||
			s.Form().Label != label && label != "4" {
			t.Errorf("%s: %d samples of %d features, labels in %q", label, n, s.Features(), s.Form().Label)
		}
		if c.outputs > 0 && (s.TargetMean[0] < 900 || s.TargetMean[1] > 5) {
			t.Errorf("%s: the means of its outputs are %v", label, s.TargetMean)
		}
		form := s.Form()
		a, err := Reading{Form: &form}.Ask(path)
		if err != nil || len(a.IDs) != 30 {
			t.Errorf("%s: asked %v, %v", label, a, err)
		}
	}
	twice := "a,b,b\n" + strings.Repeat("1,0,1\n2,1,0\n", 8)
	for _, label := range []string{"b,a", "b*,a", "a,b"} {
		if _, err := (Reading{Label: label}).Load(put(t, map[string][]byte{"x.csv": []byte(twice)}) + "/x.csv"); err == nil ||
			!strings.Contains(err.Error(), `has two columns "b": rename one of them`) {
			t.Errorf("%s: %v", label, err)
		}
	}
}
