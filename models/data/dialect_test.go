package data

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"
)

// flowerTable returns a table of eighteen samples in three classes, with two columns of numbers.
func flowerTable() string {
	var b strings.Builder
	b.WriteString("length,width,class\n")
	for i := range 18 {
		fmt.Fprintf(&b, "%d.5,%d.25,%s\n", i, i%5, []string{"rose", "tulip", "aster"}[i%3])
	}
	return b.String()
}

func asUTF16(text string, order func(uint16) [2]byte) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(text)) {
		b := order(u)
		out = append(out, b[:]...)
	}
	return out
}

func littleEndian(u uint16) [2]byte { return [2]byte{byte(u), byte(u >> 8)} }
func bigEndian(u uint16) [2]byte    { return [2]byte{byte(u >> 8), byte(u)} }

// TestDialects: a table gives the same samples in any notation, and a note describes what was recognised.
func TestDialects(t *testing.T) {
	plain := flowerTable()
	german := strings.ReplaceAll(strings.ReplaceAll(plain, ",", ";"), ".", ",")
	read := func(text []byte) *Set {
		t.Helper()
		s, err := loadFile(t, "x.csv", text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := read([]byte(plain))
	for name, c := range map[string]struct {
		text []byte
		note string
	}{
		"byte order mark":     {[]byte("\ufeff" + plain), ""},
		"CRLF":                {[]byte(strings.ReplaceAll(plain, "\n", "\r\n")), ""},
		"CR":                  {[]byte(strings.ReplaceAll(plain, "\n", "\r")), "carriage return"},
		"UTF-16LE":            {asUTF16("\ufeff"+plain, littleEndian), "UTF-16"},
		"UTF-16BE":            {asUTF16("\ufeff"+plain, bigEndian), "UTF-16"},
		"UTF-16LE, no mark":   {asUTF16(plain, littleEndian), "UTF-16"},
		"UTF-16BE, no mark":   {asUTF16(plain, bigEndian), "UTF-16"},
		"tabs":                {[]byte(strings.ReplaceAll(plain, ",", "\t")), `'\t'`},
		"decimal commas":      {[]byte(german), "decimal commas"},
		"no header":           {[]byte(german[strings.Index(german, "\n")+1:]), "decimal commas"},
		"sep=":                {[]byte("sep=;\r\n" + german), "decimal commas"},
		"sep=|":               {[]byte("sep=|\n" + strings.ReplaceAll(plain, ",", "|")), "'|'"},
		"tabs, decimal comma": {[]byte(strings.ReplaceAll(german, ";", "\t")), "decimal commas"},
	} {
		got := read(c.text)
		if got.Digest() != want.Digest() {
			t.Errorf("%s: other samples: shape %v, %d classes, notes %q", name, got.Shape, got.Classes, got.Notes)
		}
		if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, c.note) {
			t.Errorf("%s: the notes are %q, want %q among them", name, notes, c.note)
		}
	}
}

// TestSeparatorTie: with one number and a label per line, the decimal comma is as frequent as the separator.
func TestSeparatorTie(t *testing.T) {
	var b strings.Builder
	for i := range 18 {
		fmt.Fprintf(&b, "%d,5;%s\n", i, []string{"rose", "tulip"}[i%2])
	}
	s, err := loadFile(t, "x.csv", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if s.Features() != 1 || s.ClassName(0) != "rose" || s.ClassName(1) != "tulip" {
		t.Errorf("%d features, classes %q and %q", s.Features(), s.ClassName(0), s.ClassName(1))
	}
}

// TestUncertainText: ambiguous or unreadable text is refused with the cause.
func TestUncertainText(t *testing.T) {
	table := func(cell, label string) []byte {
		return []byte(strings.Repeat(cell+";2;a\n"+cell+";3;"+label+"\n", 9))
	}
	for name, c := range map[string]struct {
		text    []byte
		wantErr string
	}{
		"thousands":        {table("1,234", "b"), `"1,234" may be 1.234 or 1234`},
		"mixed":            {[]byte(strings.Repeat("1.5;2,5;a\n1.5;3,5;b\n", 9)), `has text ("2,5" in line 1)`},
		"class names":      {table("1", "\xe9"), `line 2, column 3: "\xe9" is not UTF-8`},
		"column names":     {append([]byte("caf\xe9;x;class\n"), table("1", "b")...), `line 1, column 1: "caf\xe9" is not UTF-8`},
		"bytes":            {append(table("1", "b"), 0, 1, 2, 3), "is zero, so this is no text"},
		"lines after sep=": {[]byte("sep=;\n" + strings.Repeat("1;2;a\n1;3;b\n", 9) + "1;x;a\n"), "line 20, column 2"},
	} {
		if _, err := loadFile(t, "x.csv", c.text); err == nil || !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: %v, want %q", name, err, c.wantErr)
		}
	}
}

// TestFolderNames: a class folder whose name is not UTF-8 is refused, since model files cannot store it.
func TestFolderNames(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have no such names")
	}
	dir := put(t, map[string][]byte{"caf\xe9/1.png": encodePNG(shade(4, 3, 1)), "tea/1.png": encodePNG(shade(4, 3, 9))})
	if _, err := Load(dir); err == nil ||
		!strings.Contains(err.Error(), `the name of the sub-folder "caf\xe9" is not UTF-8`) {
		t.Error(err)
	}
}

// TestQuotedNames: a quoted word is a class name, even if it means a missing value without quotation marks.
func TestQuotedNames(t *testing.T) {
	var b bytes.Buffer
	for i := range 18 {
		fmt.Fprintf(&b, "%d,%s\n", i, []string{`"NA"`, `"None"`, "b"}[i%3])
	}
	s, err := loadFile(t, "x.csv", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if s.ClassName(0) != "NA" || s.ClassName(1) != "None" {
		t.Errorf("classes %q and %q", s.ClassName(0), s.ClassName(1))
	}
	b.WriteString("20,NA\n")
	if _, err := loadFile(t, "x.csv", b.Bytes()); err == nil ||
		!strings.Contains(err.Error(), "line 19, column 2: the value is missing") {
		t.Errorf("NA without quotation marks: %v", err)
	}
}
