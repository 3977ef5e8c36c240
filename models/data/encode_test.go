package data

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func writeTable(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// passengers is a table of 24 rows with a column of numbers with gaps, one of categories, one of names and a label.
func passengers() string {
	var b strings.Builder
	b.WriteString("name,port,age,fare,alive\n")
	for i := range 24 {
		age := []string{"20", "30", "", "40"}[i%4]
		port := []string{"Cork", "Southampton", "Cork"}[i%3]
		if i == 7 {
			port = "Cherbourg" // rare: it is unknown
		}
		b.WriteString(strings.Join([]string{"name" + string(rune('a'+i)), port, age, string(rune('1' + i%9)),
			string(rune('0' + i%2))}, ",") + "\n")
	}
	return b.String()
}

// TestUnusableColumns: one error lists all columns that cannot be used, and the options that help; with them the table
// is read.
func TestUnusableColumns(t *testing.T) {
	path := writeTable(t, passengers())
	for _, c := range []struct {
		r    Reading
		want []string
	}{
		{Reading{}, []string{`3 of 4 columns cannot be used: "name" has text ("namea" in line 2); "port" has text`,
			`"age" lacks 6 values (line 4)`, "--drop name,port,age", "--categories onehot", "--fill mean", "--features"}},
		{Reading{Categories: true, Fill: true}, []string{`1 of 4 columns cannot be used: "name" has too many different texts`,
			"--drop name"}},
		{Reading{Drop: "name,port"}, []string{`1 of 2 columns cannot be used: "age" lacks 6 values`, "or fill in missing values"}},
		{Reading{Drop: "nam"}, []string{`no column "nam"`, "did you mean name"}},
		{Reading{Features: "x_*"}, []string{`no column "x_*"`}},
	} {
		_, err := c.r.Load(path)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %q", c.r, err, want)
			}
		}
	}
	if s, err := (Reading{Features: "fare"}).Load(path); err != nil || !slices.Equal(s.Form().Features, []string{"fare"}) {
		t.Errorf("%v", err)
	}
}

// TestEncodedColumns: categories and missing numbers become features, and a model's form reads raw rows to the same
// values, with unknown texts and missing numbers.
func TestEncodedColumns(t *testing.T) {
	r := Reading{Drop: "name", Categories: true, Fill: true}
	s, err := r.Load(writeTable(t, passengers()))
	if err != nil {
		t.Fatal(err)
	}
	f := s.Form()
	want := []string{"port=Cork", "port=Southampton", "port=?", "age", "age missing", "fare"}
	if err := f.Check(); err != nil || !slices.Equal(f.Features, want) {
		t.Fatalf("%v %v", err, f.Features)
	}
	row := func(s *Set, id int32) []float32 {
		x, l := make([]float32, s.Features()), make([]int32, 1)
		if err := s.Gather([]int32{id}, x, l); err != nil {
			t.Fatal(err)
		}
		return x
	}
	mean, n := 0.0, 0
	for _, id := range s.Train() {
		x := row(s, id)
		if x[4] > 0 && x[3] != 0 {
			t.Errorf("sample %d lacks its age and has %g for it, not the mean", id, x[3])
		}
		mean += float64(x[3])
		n++
	}
	if math.Abs(mean/float64(n)) > 1e-6 {
		t.Errorf("the ages have the mean %g", mean/float64(n))
	}
	asked, err := Reading{Form: &f}.Ask(writeTable(t, "fare,age,port\n3,,Paris\n3,30,\n3,30,Cork\n"))
	if err != nil {
		t.Fatal(err)
	}
	hot := func(c int, v float64) float32 { return float32((v - f.Mean[c]) / f.Std[c]) }
	for i, want := range [][]float32{
		{hot(0, 0), hot(1, 0), hot(2, 1), 0, hot(4, 1), hot(5, 3)},
		{hot(0, 0), hot(1, 0), hot(2, 1), hot(3, 30), hot(4, 0), hot(5, 3)},
		{hot(0, 1), hot(1, 0), hot(2, 0), hot(3, 30), hot(4, 0), hot(5, 3)},
	} {
		if got := row(asked.Set, asked.IDs[i]); !slices.Equal(got, want) {
			t.Errorf("row %d is %v, want %v", i+1, got, want)
		}
	}
}

// TestEncodedSplits: the other splits of a folder are read with the columns of the training samples.
func TestEncodedSplits(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"train.csv": passengers(),
		"test.csv": "port,age,fare,alive\nOslo,,4,1\nCork,20,3,0\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Reading{Drop: "name", Categories: true, Fill: true}.Load(dir)
	if err != nil || len(s.Test()) != 2 || s.Features() != 6 {
		t.Errorf("%v", err)
	}
}
