package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// held is a word that the glossary holds to one meaning: where names may bear it, and where comments, texts and pages
// may say it. A place is a package, with what lies below it, or a file; "everywhere" is any, "nowhere" none, and "but"
// takes places away.
type held struct {
	word         string
	names, prose ground
}

type ground struct {
	in, but []string
	any     bool
}

func (p ground) hold(file string) bool {
	inside := func(of []string) bool {
		return slices.ContainsFunc(of, func(o string) bool { return file == o || strings.HasPrefix(file, o+"/") })
	}
	return (p.any || inside(p.in)) && !inside(p.but)
}

// Words of several meanings stay where the glossary's table of them has them.
func TestWordsKeepTheirMeaning(t *testing.T) {
	page, err := os.ReadFile("glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	words, err := heldWords(string(page))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"seat", "door", "visit", "room", "apart", "trial", "session", "own"}; len(words) < len(want) {
		t.Fatalf("the glossary holds %d words, want %q at least", len(words), want)
	}
	said, broken := strayWords(t, os.DirFS(".."), words)
	for _, b := range broken {
		t.Error(b)
	}
	for _, w := range words {
		if said[w.word] == 0 && (w.names.any || len(w.names.in) > 0) {
			t.Errorf("nothing is called %s any more: take it out of the table", w.word)
		}
	}
}

func TestWordsCanStray(t *testing.T) {
	words, err := heldWords("| **seat** | a place | names: `runtime/fleet`; prose: `runtime/fleet`, `docs/fleet.md` | contact |\n" +
		"| **apart** | adverb | names: nowhere; prose: everywhere | detached |\n" +
		"| **session** | a directory | names: everywhere but `transport`; prose: everywhere but `transport` | association |\n")
	if err != nil || len(words) != 3 {
		t.Fatal(words, err)
	}
	for _, c := range []struct{ file, text, says string }{
		{"runtime/fleet/a.go", "package a\n// A seat.\ntype Seat struct{}", ""},
		{"runtime/fleet/deep/a.go", "package a\ntype seatOf struct{}", ""},
		{"runtime/host/a.go", "package a\nfunc f() { seat := 1; _ = seat }", "names seat"},
		{"runtime/host/a.go", "package a\ntype t struct{ freeSeats int }", "names freeSeats"},
		{"runtime/host/a.go", "package a\nfunc f(seated bool) {}", "names seated"},
		{"runtime/host/a.go", "package a\nimport \"x/fleet\"\nvar f fleet.Seat", ""}, // another's name
		{"runtime/host/a.go", "package a\n// It takes a seat.\nvar x int", "says seat"},
		{"runtime/host/a.go", "package a\nconst x = `no seat is free`", "says seat"},
		{"runtime/host/seat.go", "package a", "is called seat"},
		{"docs/fleet.md", "Its seat.", ""},
		{"docs/other.md", "Its seats.", "says seats"},
		{"docs/other.md", "`seat` and [a](seat.md)\n```\nseat\n```\n", ""},
		{"models/a.go", "package a\n// Far apart.\nvar x int", ""},
		{"models/a.go", "package a\nvar apart int", "names apart"},
		{"models/a.go", "package a\nvar session int", ""},
		{"transport/quic/a.go", "package a\nvar session int", "names session"},
		{"transport/quic/a.go", "package a\n// One session.\nvar x int", "says session"},
	} {
		_, broken := strayWords(t, fstest.MapFS{c.file: {Data: []byte(c.text)}}, words)
		if c.says == "" && len(broken) > 0 || c.says != "" && (len(broken) != 1 || !strings.Contains(broken[0], c.says)) {
			t.Errorf("%s with %q: found %q, want %q", c.file, c.text, broken, c.says)
		}
	}
}

var (
	heldRow  = regexp.MustCompile(`(?m)^\| \*\*(\w+)\*\* \| .* \| names: (.*?); prose: (.*?) \| .* \|$`)
	quoting  = regexp.MustCompile("`([^`]+)`")
	fenced   = regexp.MustCompile("(?s)```.*?\n```")
	aside    = regexp.MustCompile("`[^`\n]*`|\\]\\([^)]*\\)")
	anyWord  = regexp.MustCompile(`[A-Za-z]+`)
	suffixes = []string{"s", "ed", "ing", "or", "ors"}
)

// heldWords reads the table.
func heldWords(page string) (out []held, err error) {
	for _, m := range heldRow.FindAllStringSubmatch(page, -1) {
		out = append(out, held{m[1], parsePlaces(m[2]), parsePlaces(m[3])})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no table of words with places")
	}
	return out, nil
}

func parsePlaces(text string) (p ground) {
	in, but, _ := strings.Cut(text, " but ")
	p.any = strings.HasPrefix(in, "everywhere")
	for _, m := range quoting.FindAllStringSubmatch(in, -1) {
		p.in = append(p.in, m[1])
	}
	for _, m := range quoting.FindAllStringSubmatch(but, -1) {
		p.but = append(p.but, m[1])
	}
	return p
}

// strayWords goes through all Go files and pages of a tree. said counts the names that bear a word where they may.
func strayWords(t *testing.T, tree fs.FS, words []held) (said map[string]int, broken []string) {
	t.Helper()
	said = map[string]int{}
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && file != "." && (base == "testdata" || strings.HasPrefix(base, ".")) {
			return fs.SkipDir
		}
		ext := path.Ext(file)
		// These say all words, since they are about them.
		if d.IsDir() || ext != ".go" && ext != ".md" || slices.Contains([]string{"docs/glossary.md", "docs/words_test.go", "docs/changelog.md"}, file) ||
			strings.HasPrefix(file, "docs/decisions/") {
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		stray := func(line int, verb, name string, of func(held) ground) {
			for _, w := range words {
				if !bears(name, w.word) {
					continue
				}
				if of(w).hold(file) {
					said[w.word]++
				} else {
					broken = append(broken, fmt.Sprintf("%s:%d: %s %s: the glossary has another word for it here", file, line, verb, name))
				}
			}
		}
		names, prose := func(w held) ground { return w.names }, func(w held) ground { return w.prose }
		stray(1, "is called", strings.TrimSuffix(path.Base(file), ext), names)
		if ext == ".md" {
			page := fenced.ReplaceAllStringFunc(string(text), func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
			for i, line := range strings.Split(page, "\n") {
				for _, word := range anyWord.FindAllString(aside.ReplaceAllString(line, " "), -1) {
					stray(i+1, "says", word, prose)
				}
			}
			return nil
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		line := func(p token.Pos) int { return set.Position(p).Line }
		for _, g := range parsed.Comments {
			for _, word := range anyWord.FindAllString(aside.ReplaceAllString(g.Text(), " "), -1) {
				stray(line(g.Pos()), "says", word, prose)
			}
		}
		own := map[string]bool{} // a comment names what the file declares
		ast.Inspect(parsed, func(n ast.Node) bool {
			for _, id := range declares(n) {
				if !own[id.Name] {
					own[id.Name] = true
					stray(line(id.Pos()), "names", id.Name, names)
				}
			}
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					for _, word := range anyWord.FindAllString(n.Value, -1) {
						stray(line(n.Pos()), "says", word, prose)
					}
				}
			case *ast.Field:
				if n.Tag != nil {
					n.Tag.Value = "``"
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return said, broken
}

// declares are the names that a node brings.
func declares(n ast.Node) []*ast.Ident {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return nil
		}
		var out []*ast.Ident
		for _, x := range n.Lhs {
			if id, ok := x.(*ast.Ident); ok {
				out = append(out, id)
			}
		}
		return out
	case *ast.RangeStmt:
		var out []*ast.Ident
		for _, x := range []ast.Expr{n.Key, n.Value} {
			if id, ok := x.(*ast.Ident); ok && n.Tok == token.DEFINE {
				out = append(out, id)
			}
		}
		return out
	}
	return nil
}

// bears says whether one of a name's parts is the word: seat of freeSeats and seated, not of nauseate.
func bears(name, word string) bool {
	if name == "own" {
		return false // the adjective
	}
	part := ""
	parts := []string{}
	for _, r := range name {
		if unicode.IsUpper(r) || !unicode.IsLetter(r) {
			parts, part = append(parts, part), ""
		}
		if unicode.IsLetter(r) {
			part += string(unicode.ToLower(r))
		}
	}
	return slices.ContainsFunc(append(parts, part), func(p string) bool {
		return p == word || word != "own" && slices.ContainsFunc(suffixes, func(s string) bool { return p == word+s })
	})
}
