package coordinator

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/message"
)

// eventOf returns a report or a command as an event of the core; other events unchanged.
func eventOf(x any) Event {
	switch x := x.(type) {
	case Event:
		return x
	case message.Report:
		return Report{x}
	case event.Command:
		return Command{x}
	}
	panic(fmt.Sprintf("%T is no event", x))
}

// TestEveryTypeIsHandled parses the sources: each type switch over a closed set must have a case for every type of the
// set. Without it a new type would only fail at run time.
func TestEveryTypeIsHandled(t *testing.T) {
	events, messages := sources(t, "."), sources(t, "../message")
	reports := marked(messages, "report")
	shell, hosted := sources(t, "../fleet"), sources(t, "../worker")
	for _, c := range []struct {
		what  string
		set   []string
		in    map[string]*ast.FuncDecl
		where string
	}{
		{"event", marked(events, "isEvent"), events, "Coordinator.Step"},
		{"report", reports, events, "Coordinator.handleReport"},
		{"report", reports, events, "Coordinator.check"},
		{"effect", marked(events, "isEffect"), shell, "Fleet.apply"},
		{"order", marked(messages, "order"), hosted, "Worker.Handle"},
	} {
		if len(c.set) < 5 {
			t.Errorf("%s: found %v only", c.what, c.set)
		}
		f := c.in[c.where]
		if f == nil {
			t.Errorf("there is no %s", c.where)
			continue
		}
		got, panics := cases(f)
		if !slices.Equal(got, c.set) || !panics {
			t.Errorf("%s handles %v, panics at others: %t; want every %s: %v", c.where, got, panics, c.what, c.set)
		}
	}
}

// TestUnknownPanics: the core panics on an unknown event or report, which is a bug.
func TestUnknownPanics(t *testing.T) {
	for name, ev := range map[string]Event{"nothing": nil, "a pointer": &Tick{}} {
		t.Run(name, func(t *testing.T) {
			p := newTestRun(t, 1, nil)
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "does not know the event") {
					t.Errorf("panic %v", r)
				}
			}()
			p.core.Step(time.Unix(9, 0), ev)
		})
	}
}

// sources returns the functions of a package except its tests, by receiver and name.
func sources(t *testing.T, dir string) map[string]*ast.FuncDecl {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*ast.FuncDecl{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				name := f.Name.Name
				if f.Recv != nil {
					name = typeName(f.Recv.List[0].Type) + "." + name
				}
				out[name] = f
			}
		}
	}
	return out
}

// marked returns the types that have a marker method.
func marked(funcs map[string]*ast.FuncDecl, marker string) (out []string) {
	for name := range maps.Keys(funcs) {
		if of, ok := strings.CutSuffix(name, "."+marker); ok {
			out = append(out, of)
		}
	}
	slices.Sort(out)
	return out
}

// cases returns the types in the last type switch of a function, outside function literals, and whether its default
// case panics.
func cases(f *ast.FuncDecl) (out []string, panics bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		s, ok := n.(*ast.TypeSwitchStmt)
		if !ok {
			return true
		}
		out, panics = nil, false
		for _, clause := range s.Body.List {
			c := clause.(*ast.CaseClause)
			for _, x := range c.List {
				out = append(out, typeName(x))
			}
			if c.List == nil && len(c.Body) == 1 {
				x, ok := c.Body[0].(*ast.ExprStmt)
				if ok {
					call, ok := x.X.(*ast.CallExpr)
					panics = ok && typeName(call.Fun) == "panic"
				}
			}
		}
		return false
	})
	slices.Sort(out)
	return out, panics
}

// typeName returns the name of a type without package and pointer.
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.Ident:
		return x.Name
	case *ast.IndexExpr:
		return typeName(x.X)
	}
	return ""
}
