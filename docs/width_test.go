package docs_test

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

// columns is where comments and prose end. A tab counts as one.
const columns = 120

// Comments and prose end at column 120; code, tables and examples may be longer.
func TestWidth(t *testing.T) {
	checked, broken := tooWide(t, os.DirFS(".."))
	for _, b := range broken {
		t.Error(b)
	}
	if checked < 500 {
		t.Errorf("%d files were checked", checked)
	}
}

func TestWidthCanFail(t *testing.T) {
	long := strings.Repeat("word ", 30)
	for _, c := range []struct {
		file, text string
		wide       bool
	}{
		{"a.go", "package a\n\n// " + long + "\nvar x int", true},
		{"a.go", "package a\n\n// short\nvar x int // " + long, true},
		{"a.go", "package a\n\nfunc f() {\n\t// " + long + "\n}", true},
		{"a.go", "package a\n\n/*\n" + long + "\n*/\nvar x int", true},
		{"a.go", "package a\n\n//\tx := f(" + long + ")\nvar x int", false}, // an example
		{"a.go", "package a\n\n//   - an item " + long + "\nvar x int", true},
		{"a.go", "package a\n\n//go:generate " + long + "\nvar x int", false},
		{"a.go", "package a\n\nvar x = `" + long + "` // short", false}, // the code alone is as wide
		{"a.go", "package a\n\nvar x = `\n// " + long + "\n`", false},
		{"a.go", "package a\n\n// " + strings.Repeat("ü", 117) + "\nvar x int", false},
		{"a.md", "# T\n\n" + long + "\n", true},
		{"a.md", "- an item\n  " + long + "\n", true},
		{"a.md", "| a | " + long + " |\n", false},
		{"a.md", "```\n" + long + "\n```\n", false},
		{"a.md", "    " + long + "\n", false},
		{"a.md", "[a](" + strings.Repeat("long/", 30) + ")\n", false}, // nowhere to break
	} {
		_, broken := tooWide(t, fstest.MapFS{c.file: {Data: []byte(c.text)}})
		if len(broken) > 0 != c.wide {
			t.Errorf("%s with %q: %q", c.file, c.text, broken)
		}
	}
}

// tooWide goes through all Go files and pages of a tree.
func tooWide(t *testing.T, tree fs.FS) (checked int, broken []string) {
	t.Helper()
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && file != "." && (base == "testdata" || strings.HasPrefix(base, ".")) {
			return fs.SkipDir
		}
		find := map[string]func([]byte) []int{".go": wideComments, ".md": wideProse}[path.Ext(file)]
		if d.IsDir() || find == nil {
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		checked++
		for _, line := range find(text) {
			broken = append(broken, fmt.Sprintf("%s:%d: goes beyond column %d", file, line, columns))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return checked, broken
}

var (
	example = regexp.MustCompile(`^//(\t|[a-z]+:)`)
	oneWord = regexp.MustCompile(`^\s*(//|[-*+]|\d+\.)?\s*\S+$`)
)

// wideComments are the lines of Go on which a comment makes the line too wide.
func wideComments(text []byte) (out []int) {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	lines := strings.Split(string(text), "\n")
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return out
		}
		if tok != token.COMMENT || example.MatchString(lit) {
			continue
		}
		at := set.Position(pos)
		for i := range strings.Count(lit, "\n") + 1 {
			line := lines[at.Line-1+i]
			code := ""
			if i == 0 {
				code = strings.TrimSpace(line[:at.Column-1])
			}
			if utf8.RuneCountInString(line) > columns && utf8.RuneCountInString(code) <= columns && !oneWord.MatchString(line) {
				out = append(out, at.Line+i)
			}
		}
	}
}

// wideProse are the lines of a page that are too wide and no table, example or single word.
func wideProse(text []byte) (out []int) {
	inFence := false
	for i, line := range strings.Split(string(text), "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			inFence = !inFence
		}
		if utf8.RuneCountInString(line) > columns && !inFence && !strings.HasPrefix(trimmed, "|") && !strings.HasPrefix(line, "    ") && !oneWord.MatchString(line) {
			out = append(out, i+1)
		}
	}
	return out
}
