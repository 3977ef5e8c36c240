package event

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// TestListsAreWhole compares each list with the constants of its type.
func TestListsAreWhole(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "kinds.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	consts := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && v.Type != nil && len(v.Values) == 1 {
			consts[v.Type.(*ast.Ident).Name] = append(consts[v.Type.(*ast.Ident).Name], text(v.Values[0]))
		}
		return true
	})
	for name, list := range map[string][]string{
		"Cause": texts(Causes), "AlertKind": texts(AlertKinds), "PauseReason": texts(PauseReasons), "Level": texts(Levels),
	} {
		if len(list) < 3 || !slices.Equal(list, consts[name]) {
			t.Errorf("%s: the list is %q, the constants are %q", name, list, consts[name])
		}
	}
	page, err := os.ReadFile("../../docs/json-events.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]string{texts(Causes), texts(Levels), texts(AlertKinds)} {
		last := len(list) - 1
		if listed := strings.Join(list[:last], ", ") + " or " + list[last]; !strings.Contains(string(page), listed) {
			t.Errorf("docs/json-events.md does not list %s", listed)
		}
	}
	for _, r := range PauseReasons {
		if !slices.Contains(AlertKinds, r.Alert()) {
			t.Errorf("a run pauses for %q, which is no kind of alert", r)
		}
	}
}

// TestKindsAreText: lists do not change the text in a log or in --json, and an unknown text is kept.
func TestKindsAreText(t *testing.T) {
	type plain struct {
		Kind string `cbor:"2,keyasint"`
	}
	type typed struct {
		Kind AlertKind `cbor:"2,keyasint"`
	}
	for _, kind := range append(texts(AlertKinds), "of-another-version", "") {
		was, _ := cbor.Marshal(plain{kind})
		is, _ := cbor.Marshal(typed{AlertKind(kind)})
		var back typed
		if err := cbor.Unmarshal(was, &back); err != nil || !bytes.Equal(was, is) || string(back.Kind) != kind {
			t.Errorf("%q: % x, was % x, read as %q, %v", kind, is, was, back.Kind, err)
		}
		line, _ := json.Marshal(map[string]any{"kind": AlertKind(kind)})
		if want := `{"kind":` + strconv.Quote(kind) + `}`; string(line) != want {
			t.Errorf("printed as %s, want %s", line, want)
		}
	}
}

// TestNoTextDecides: code outside of the lists neither compares their texts nor writes them into a record.
func TestNoTextDecides(t *testing.T) {
	checked := 0
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		for _, test := range []string{"_test.go", "testdata", "sourcetest"} {
			if strings.Contains(name, test) {
				return nil
			}
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		checked++
		for _, n := range literals(file) {
			t.Errorf("%s: %s: name the constant of runtime/event", set.Position(n.Pos()), text(n))
		}
		return nil
	})
	if err != nil || checked < 100 {
		t.Errorf("%d files, %v", checked, err)
	}
	for _, bad := range []string{
		`x.Cause == "death"`, `"disk" != a.Kind`, `f(E{Kind: "log"})`, `func() { switch x.Alert { case "leave": } }`,
		`e.Level == "error"`,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\nvar _ = "+bad, 0)
		if err != nil || len(literals(file)) != 1 {
			t.Errorf("%s is not found: %v", bad, err)
		}
	}
}

// literals returns the texts of the lists that are used for a field of such a type.
func literals(file *ast.File) (out []ast.Expr) {
	listed := slices.Concat(texts(Causes), texts(AlertKinds), texts(PauseReasons), texts(Levels))
	field := func(x ast.Expr) bool {
		name := ""
		switch x := x.(type) {
		case *ast.SelectorExpr:
			name = x.Sel.Name
		case *ast.Ident:
			name = x.Name
		}
		return slices.Contains([]string{"Cause", "cause", "Kind", "Alert", "Why", "Level", "level"}, name)
	}
	check := func(beside, x ast.Expr) {
		if beside != nil && field(beside) && slices.Contains(listed, text(x)) {
			out = append(out, x)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			check(n.X, n.Y)
			check(n.Y, n.X)
		case *ast.KeyValueExpr:
			check(n.Key, n.Value)
		case *ast.AssignStmt:
			for i := range min(len(n.Lhs), len(n.Rhs)) {
				check(n.Lhs[i], n.Rhs[i])
			}
		case *ast.SwitchStmt:
			for _, c := range n.Body.List {
				for _, x := range c.(*ast.CaseClause).List {
					check(n.Tag, x)
				}
			}
		}
		return true
	})
	return out
}

// text returns the value of a string literal, "" for other expressions.
func text(x ast.Expr) string {
	lit, ok := x.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}

func texts[T ~string](list []T) (out []string) {
	for _, x := range list {
		out = append(out, string(x))
	}
	return out
}
