package data

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// flowers returns n lines of two numbers and one of three names, after a header line if header is not empty.
func flowers(n int, header, separator string) []byte {
	var b strings.Builder
	if header != "" {
		b.WriteString(header + "\n")
	}
	for i := range n {
		fmt.Fprintf(&b, "%d.5%s-%de2%s%s\n", i, separator, i%7, separator, []string{"rose", "tulip", "aster"}[i%3])
	}
	return []byte(b.String())
}

func loadFile(t *testing.T, name string, b []byte) (*Set, error) {
	t.Helper()
	return Load(filepath.Join(put(t, map[string][]byte{name: b}), name))
}

// TestCSVForms: a table gives the same data in any notation. The digest is frozen, since sessions record it.
func TestCSVForms(t *testing.T) {
	const digest = "blake3:200b278770d1a34016e08fba1d0fe596a17aa49aa0d240516a20f18bcb9c6cda"
	for name, b := range map[string][]byte{
		"plain.csv":      flowers(60, "", ","),
		"header.csv":     flowers(60, "size,shade,kind", ","),
		"named.csv":      flowers(60, "size,shade,Class", ","),
		"semicolon.csv":  flowers(60, `"a, b, c, size";shade;kind`, ";"),
		"tabs.tsv":       flowers(60, "", "\t"),
		"spaces.csv":     []byte(strings.ReplaceAll(string(flowers(60, "", ", ")), "rose", `"rose"`)),
		"packed.csv.gz":  gzipped(flowers(60, "size,shade,kind", ",")),
		"marked.csv":     append([]byte("\ufeff"), flowers(60, "", ",")...),
		"returns.csv":    []byte(strings.ReplaceAll(string(flowers(60, "", ",")), "\n", "\r\n")),
		"no newline.csv": []byte(strings.TrimSpace(string(flowers(60, "", ",")))),
	} {
		path := filepath.Join(put(t, map[string][]byte{name: b}), name)
		s, err := Reading{}.Load(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.Digest() != digest || s.Len() != 60 || !slices.Equal(s.Shape, []int{2}) ||
			!slices.Equal(s.Names, []string{"aster", "rose", "tulip"}) {
			t.Errorf("%s: %d samples of %v in %v, digest %s", name, s.Len(), s.Shape, s.Names, s.Digest())
		}
	}
}

// TestCSVKeepsSamplesWhole: the label column may be anywhere, and each sample keeps its label and values.
func TestCSVKeepsSamplesWhole(t *testing.T) {
	var b strings.Builder
	b.WriteString("class,a,b\n")
	for i := range 48 {
		fmt.Fprintf(&b, "%d.0,%d,%d\n", i%4, i, 1000*(i%4))
	}
	s, err := loadFile(t, "x.csv", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if s.Names != nil || s.Classes != 4 || !strings.Contains(s.From, `labels in column "class"`) || s.Image(0) != nil {
		t.Errorf("%d classes %v from %s", s.Classes, s.Names, s.From)
	}
	x, y := make([]float32, 2*48), make([]int32, 48)
	if err := s.Gather(ids(0, 48), x, y); err != nil {
		t.Fatal(err)
	}
	var seen [48]bool
	for i := range y {
		a := float64(x[2*i])*float64(s.Std[0]) + float64(s.Mean[0])
		b := float64(x[2*i+1])*float64(s.Std[1]) + float64(s.Mean[1])
		line := int(math.Round(a))
		if int32(line%4) != y[i] || math.Abs(b-1000*float64(y[i])) > 0.01 || seen[line] {
			t.Errorf("sample %d: values %.3f %.3f, label %d", i, a, b, y[i])
		}
		seen[line] = true
	}
}

// TestCSVWithTests: a folder of two tables has their splits, and the classes of the first.
func TestCSVWithTests(t *testing.T) {
	dir := put(t, map[string][]byte{"train.csv": flowers(60, "a,b,kind", ","), "test.csv": flowers(9, "a,b,kind", ",")})
	s, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.Len() != 69 || len(s.Test()) != 9 || s.Label(60) != s.Label(0) || s.ClassName(int(s.Label(61))) != "tulip" {
		t.Errorf("%d samples, %d for tests", s.Len(), len(s.Test()))
	}
}

// TestCSVColumnsByName: test columns are matched to training columns by name in any order, and additional columns are
// ignored.
func TestCSVColumnsByName(t *testing.T) {
	train := flowers(60, "size,shade,kind", ",")
	swapped := []byte("kind,shade,note,size\n")
	for line := range strings.Lines(string(flowers(9, "", ","))) {
		f := strings.Split(strings.TrimSpace(line), ",")
		swapped = fmt.Appendf(swapped, "%s,%s,nothing to train on,%s\n", f[2], f[1], f[0])
	}
	for _, label := range []string{"", "kind", "3"} {
		var rows [2][]float32
		var classes [2][]int32
		for i, test := range [][]byte{flowers(9, "size,shade,kind", ","), swapped} {
			s, err := Reading{Label: label}.Load(put(t, map[string][]byte{"train.csv": train, "test.csv": test}))
			if err != nil {
				t.Fatal(err)
			}
			rows[i], classes[i] = make([]float32, 18), make([]int32, 9)
			if err := s.Gather(s.Test(), rows[i], classes[i]); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(rows[0], rows[1]) || !slices.Equal(classes[0], classes[1]) {
			t.Errorf("label %q: in another order of columns the test samples are %v of %v, in the order of training %v of %v",
				label, rows[1], classes[1], rows[0], classes[0])
		}
	}
	for wantErr, test := range map[string]string{
		`test.csv has no column "shade", which`:     "size,tint,kind\n1,2,rose\n",
		`test.csv has two columns "size"`:           "size,shade,size,kind\n1,2,3,rose\n",
		"test.csv has no line of names":             "1,2,rose\n",
		`test.csv has no column "size", which /`:    "shade,kind\n1,rose\n",
		`test.csv: line 2, column "shade": "x" is`:  "shade,size,kind\nx,1,rose\n",
		`test.csv: line 3: label "oak" is none of`:  "shade,size,kind\n1,1,rose\n1,1,oak\n",
		"test.csv: line 3 has 2 columns where the ": "shade,size,kind\n1,1,rose\n1,1\n",
	} {
		if _, err := Load(put(t, map[string][]byte{"train.csv": train, "test.csv": []byte(test)})); err == nil ||
			!strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: %v", wantErr, err)
		}
	}
}

// lines returns valid lines around a bad one, which is line 11.
func lines(bad string) []byte {
	return []byte(strings.Repeat("1,2,yes\n3,4,no\n", 5) + bad + "\n" + strings.Repeat("1,2,yes\n3,4,no\n", 5))
}

func TestCSVRefuses(t *testing.T) {
	many, gap := strings.Builder{}, strings.Builder{}
	for i := range 600 {
		fmt.Fprintf(&many, "%d,name%d\n", i, i*2/3)
		fmt.Fprintf(&gap, "%d,%d\n", i, i%3*2)
	}
	for name, c := range map[string]struct {
		text    []byte
		wantErr string
	}{
		"ragged":       {lines("1,yes"), "line 11 has 2 columns where the first line has 3"},
		"wide":         {lines("1,2,3,yes"), "line 11 has 4 columns where the first line has 3"},
		"empty":        {lines("1,,yes"), "line 11, column 2: the value is missing"},
		"NA":           {lines("1, NaN ,yes"), "line 11, column 2: the value is missing"},
		"no label":     {lines("1,2,"), "line 11, column 3: the value is missing"},
		"named column": {append([]byte("size,shade,kind\n"), lines("?,2,yes")...), `line 12, column "size": the value is missing`},
		"text":         {lines("1,blue,yes"), `line 11, column 2: "blue" is no number`},
		"infinite":     {lines("1,inf,yes"), `"inf" is no number`},
		"too big":      {lines("1,1e39,yes"), `"1e39" is no number`},
		"quote":        {lines(`1,"2,yes`), "line 11"},
		"nothing":      {nil, "has no samples"},
		"header only":  {[]byte("a,b,label\n"), "has no samples"},
		"one column":   {[]byte("1\n2\n3\n"), "has one column"},
		"index":        {append([]byte(",size,kind\n"), lines("1,2,yes")...), "column 1 has no name"},
		"few":          {[]byte("1,a\n2,b\n3,a\n"), "3 samples; a training, a validation and a test split need at least 8"},
		"one class":    {[]byte(strings.Repeat("1,2,yes\n", 20)), `every label is "yes"`},
		"many classes": {[]byte(many.String()), "400 different labels for 600 samples"},
		"gap":          {[]byte(gap.String()), "class 1 has no sample, but there is a class 4"},
		"negative":     {[]byte(strings.Repeat("1,2,-1\n3,4,1\n", 10)), "label -1 is out of range"},
		"large label":  {[]byte(strings.Repeat("1,2,0\n3,4,65536\n", 10)), "label 65536 is out of range"},
		"gzip":         {gzipped(flowers(600, "", ","))[:200], "save the file again"},
	} {
		_, err := loadFile(t, "x.csv", c.text)
		if err == nil || !strings.Contains(err.Error(), c.wantErr) || !strings.Contains(err.Error(), "x.csv") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("a,b,label\n1,2,x\n3,4,y\n"))
	f.Add([]byte("1;2;x\r\n3;4;\"y\"\n"))
	f.Add([]byte("1,2\n3\n"))
	f.Add(gzipped([]byte("1\t2\n")))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Reading{}.readCSV(strings.NewReader(string(b)), "fuzz", nil, false)
		if err != nil {
			return
		}
		if len(p.names) == 0 || len(p.Values)+len(p.Doubles) != len(p.names)*p.shape[0] ||
			slices.ContainsFunc(p.Values, func(v float32) bool { return !finite(v) }) {
			t.Fatalf("%d labels, %d values of shape %v", len(p.names), len(p.Values), p.shape)
		}
		if s, err := (Reading{}).assemble("fuzz", splits{train: p}); err == nil && s.Len() != len(p.names) {
			t.Fatalf("%d samples of %d", s.Len(), len(p.names))
		}
	})
}

// endless is a file of one endless line, plain or as a quoted label.
type endless struct {
	head string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.head)
	e.head = e.head[n:]
	for i := n; i < len(p); i++ {
		p[i] = '7'
		if i%100 == 99 && e.head == "" && e.read > 1<<20 {
			p[i] = '\n' // a line feed within quotation marks does not end the line
		}
	}
	e.read += len(p)
	return len(p), nil
}

// TestLongLine: a line that does not end is an error, and is not read until memory is exhausted.
func TestLongLine(t *testing.T) {
	was := maxLine
	t.Cleanup(func() { maxLine = was })
	maxLine = 4 << 20
	for name, in := range map[string]io.Reader{
		"a line": io.MultiReader(strings.NewReader("1,2,a\n1,"), io.LimitReader(repeat('7'), 3<<30)),
		"quoted": &endless{head: "1,2,a\n1,2,\""},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Reading{}.readCSV(in, "long.csv", nil, false)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "long.csv: row 2 is longer than 4 MiB") {
			t.Errorf("%s: %v", name, err)
		}
		if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 64 {
			t.Errorf("%s: %d MiB were allocated", name, grown)
		}
	}
}

// repeat is a file of one repeated byte.
type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}
