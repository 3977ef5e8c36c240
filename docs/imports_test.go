package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

type subsystem struct {
	name  string
	may   []string
	tests []string // what its tests may import besides
}

// subsystems say which packages of ours each package and its tests may import; the first that fits counts. A path
// stands for what lies below it too.
var subsystems = []subsystem{
	{name: ".", may: []string{"tui/cli"}},
	{name: "models", may: []string{"models"}},
	{name: "transport", may: []string{"transport"}, tests: []string{"models/longtest"}},
	// algorithms are written against the exported seam, and know nothing of each other
	{name: "optim/averaging", may: seam, tests: families}, {name: "optim/coupled", may: seam, tests: families}, {name: "optim/evolution", may: seam, tests: families},
	{name: "optim/gossip", may: seam, tests: families}, {name: "optim/population", may: seam, tests: families},
	{name: "optim/collective", may: []string{"models"}},
	{name: "optim", may: []string{"models", "optim"}},
	{name: "runtime/coordinator", may: []string{"models", "optim", "runtime/event", "runtime/message", "runtime/timeline"}, tests: []string{"transport", "runtime"}},
	{name: "runtime/option", may: []string{"models", "optim", "runtime/coordinator", "runtime/event", "runtime/option"}},
	// what reads sessions does not need what trains
	{name: "runtime/archive", may: readers}, {name: "runtime/export", may: readers},
	{name: "runtime", may: []string{"models", "optim", "transport", "runtime"}},
	{name: "presets", may: []string{"models", "optim", "presets", "runtime/option"}, tests: []string{"runtime/timeline"}},
	{name: "tui/cli", may: []string{"models", "optim", "transport", "runtime", "presets", "tui"}},
	// families of panels know the seam, and neither each other nor the workbench
	{name: "tui/panel/alerts", may: screens}, {name: "tui/panel/fleet", may: screens}, {name: "tui/panel/knobs", may: screens},
	{name: "tui/panel/live", may: screens}, {name: "tui/panel/runs", may: screens},
	// it replaces panels of its screens
	{name: "tui/panel/trained", may: slices.Concat(screens, []string{"tui/panel/live"})},
	{name: "tui/panel", may: screens},
	{name: "tui", may: []string{"models", "optim", "runtime", "presets", "tui"}},
	{name: "docs", may: []string{"models", "optim", "runtime"}}, // tests of what the documentation shows
}

// seam is what an algorithm imports, inside this module or outside. A name that ends in a dot does not stand for what
// lies below it.
var seam = []string{"models", "optim.", "optim/collective"}

// families are the packages of algorithms, which tests compare with each other.
var families = []string{"optim"}

// readers are the packages that whatever reads recorded sessions may import.
var readers = []string{"models", "optim", "runtime/archive", "runtime/axis", "runtime/coordinator", "runtime/event",
	"runtime/machine", "runtime/option", "runtime/session",
	"runtime/timeline", "runtime/view"}

// screens are the packages that panels are written against.
var screens = []string{"models", "optim", "runtime", "tui/cell", "tui/chart", "tui/panel.", "tui/replay", "tui/textfmt"}

const module = "brood"

// pure subsystems hold no goroutine, clock, file or socket outside tests.
var pure = []string{"optim", "runtime/coordinator"}

// impure imports, and functions of time that read or wait for a clock.
var (
	impure = []string{"os", "net", "sync", "syscall", "os/exec", "os/signal", "sync/atomic", "math/rand", "math/rand/v2",
		"crypto/rand", "net/http"}
	clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
)

// engines see what is behind a matrix; nobody else does. Those of the processor keep theirs in package ram, which the
// tools that measure them, and engines that only count, take too.
var (
	engines = []string{"models"}
	ramToo  = []string{"optim/optimtest", "runtime/host", "runtime/conformance", "runtime/bench"}
)

// devices are known to those who open them alone: above the seam an engine is an engine. Tests of test support may.
var (
	devices   = "models/gpu"
	deviceToo = []string{devices, "runtime/host"}
)

// testSupport is imported by tests and by test support only.
var testSupport = []string{"optim/optimtest", "runtime/conformance", "runtime/testutil", "models/enginetest",
	"models/longtest", "models/gpu/ptxtest", "models/gpu/clang", "runtime/view/sourcetest", "runtime/option/optiontest"}

func TestImportsPointOneWay(t *testing.T) {
	checked, broken := violations(t, os.DirFS(".."))
	for _, v := range broken {
		t.Error(v)
	}
	for _, of := range []string{"models", "transport", "optim", "runtime", "presets", "tui", "tui/cli"} {
		if !slices.ContainsFunc(checked, func(file string) bool { return within(path.Dir(file), of) }) {
			t.Errorf("no file of %s was checked", of)
		}
	}
}

// Each rule finds the fixture that breaks it, and nothing in the one that keeps them all.
func TestImportRulesCanFail(t *testing.T) {
	for _, c := range []struct{ file, text, says string }{
		{"models/a.go", `import _ "brood/optim"`, "models/a.go:2: models may not import brood/optim"},
		{"models/data/a_test.go", `import _ "brood/runtime/event"`, "models/data may not import brood/runtime/event"},
		{"transport/local/a.go", `import _ "brood/models/engine"`, "transport/local may not import brood/models/engine"},
		{"optim/catalog/a.go", `import _ "brood/runtime/event"`, "optim/catalog may not import brood/runtime/event"},
		{"optim/gossip/a.go", `import _ "brood/optim/averaging"`, "optim/gossip may not import brood/optim/averaging"},
		{"runtime/host/a.go", `import _ "brood/presets"`, "runtime/host may not import brood/presets"},
		{"runtime/coordinator/a.go", `import _ "brood/runtime/view"`, "runtime/coordinator may not import brood/runtime/view"},
		{"runtime/coordinator/a.go", `import _ "brood/runtime/worker"`, "runtime/coordinator may not import brood/runtime/worker"},
		{"runtime/view/a.go", `import _ "brood/tui/chart"`, "runtime/view may not import brood/tui/chart"},
		{"runtime/option/a.go", `import _ "brood/runtime/host"`, "runtime/option may not import brood/runtime/host"},
		{"runtime/archive/a.go", `import _ "brood/runtime/host"`, "runtime/archive may not import brood/runtime/host"},
		{"presets/a.go", `import _ "brood/runtime/event"`, "presets may not import brood/runtime/event"},
		{"presets/a.go", `import _ "brood/runtime/timeline"`, "presets may not import brood/runtime/timeline"},
		{"presets/a_test.go", `import _ "brood/runtime/host"`, "presets may not import brood/runtime/host"},
		{"tui/chart/a.go", `import _ "brood/transport/local"`, "tui/chart may not import brood/transport/local"},
		{"tui/panel/live/a.go", `import _ "brood/tui/panel/fleet"`, "tui/panel/live may not import brood/tui/panel/fleet"},
		{"tui/panel/runs/a.go", `import _ "brood/tui"`, "tui/panel/runs may not import brood/tui"},
		{"tui/a.go", `import _ "brood/tui/cli"`, "tui may not import brood/tui/cli"},
		{"main.go", `import _ "brood/models"`, "may not import brood/models"},
		{"util/a.go", ``, "util is no subsystem of the design"},
		{"optim/a.go", `import _ "os"`, "optim may not import os"},
		{"runtime/coordinator/a.go", `import _ "sync"`, "runtime/coordinator may not import sync"},
		{"runtime/coordinator/a.go", `import t "time"; var now = t.Now()`, "reads a clock: time.Now"},
		{"optim/protocol/a.go", `func f() { go f() }`, "starts a goroutine"},
		{"runtime/worker/a.go", `import _ "brood/runtime/conformance"`, "is test support"},
		{"tui/a.go", `import _ "brood/runtime/view/sourcetest"`, "is test support"},
		{"optim/a.go", `import _ "brood/models/engine/ram"`, "may not look behind matrices"},
		{"runtime/worker/a.go", `import _ "brood/models/gpu"`, "runtime/worker may not know devices"},
		{"models/native/a.go", `import _ "brood/models/gpu/opencl"`, "models/native may not know devices"},
		{"runtime/worker/a.go", `func f(m interface{ Behind() int }) { m.Behind() }`, "Behind is for engines"},
		{"runtime/host/a.go", `import "brood/models/engine"; var m = engine.Over(nil, 0, 1, 1)`, "Over is for engines"},
	} {
		tree := fstest.MapFS{c.file: {Data: []byte("package a\n" + c.text)}}
		if _, v := violations(t, tree); len(v) != 1 || !strings.Contains(v[0], c.says) {
			t.Errorf("%s with %q: found %q, want one that says %q", c.file, c.text, v, c.says)
		}
	}
	fine := fstest.MapFS{
		"optim/a_test.go":               {Data: []byte("package a\nimport (\n_ \"os\"\n_ \"brood/models/engine\")\nfunc f() { go f() }")},
		"runtime/coordinator/a.go":      {Data: []byte("package a\nimport (\n\"time\"\n_ \"brood/optim\")\nvar d = time.Second")},
		"runtime/coordinator/a_test.go": {Data: []byte("package a\nimport _ \"brood/runtime/conformance\"")},
		"runtime/testdata/x/a.go":       {Data: []byte("not Go, and not ours")},
		"tui/cli/a.go":                  {Data: []byte("package a\nimport (\n_ \"brood/transport/local\"\n_ \"brood/tui\"\n_ \"brood/presets\")")},
		"main.go":                       {Data: []byte("package main\nimport _ \"brood/tui/cli\"")},
	}
	if _, v := violations(t, fine); len(v) > 0 {
		t.Errorf("a tree that keeps the rules: %q", v)
	}
}

// violations parses every Go file of a tree.
func violations(t *testing.T, tree fs.FS) (checked, broken []string) {
	t.Helper()
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && name != "." && (base == "testdata" || strings.HasPrefix(base, ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		checked = append(checked, name)
		for _, v := range fileViolations(name, file) {
			broken = append(broken, fmt.Sprintf("%s:%d: %s", name, set.Position(v.at).Line, v.text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return checked, broken
}

type violation struct {
	at   token.Pos
	text string
}

func fileViolations(name string, file *ast.File) (out []violation) {
	dir, test := path.Dir(name), strings.HasSuffix(name, "_test.go")
	clean := !test && within(dir, pure...)
	if dir == "." && test {
		return nil // checks of the whole tree
	}
	at := slices.IndexFunc(subsystems, func(r subsystem) bool { return within(dir, r.name) })
	if at < 0 {
		return []violation{{file.Package, dir + " is no subsystem of the design"}}
	}
	clock := ""
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if clean && slices.Contains(impure, imported) {
			out = append(out, violation{spec.Pos(), dir + " may not import " + imported})
		}
		if imported == "time" {
			clock = "time"
			if spec.Name != nil {
				clock = spec.Name.Name
			}
		}
		ours, ok := strings.CutPrefix(imported, module+"/")
		if !ok {
			continue
		}
		switch {
		case test && within(ours, subsystems[at].tests...):
		case !within(ours, subsystems[at].may...) || within(ours, "tui/cli") && !within(dir, "tui/cli") && dir != ".":
			out = append(out, violation{spec.Pos(), dir + " may not import " + imported})
		case ours == "models/engine/ram" && !test && !within(dir, engines...) && !within(dir, ramToo...):
			out = append(out, violation{spec.Pos(), dir + " may not look behind matrices: import of " + imported})
		case within(ours, devices) && !within(dir, deviceToo...) && !(test && within(dir, testSupport...)):
			out = append(out, violation{spec.Pos(), dir + " may not know devices: import of " + imported})
		case !test && within(ours, testSupport...) && !within(dir, testSupport...):
			out = append(out, violation{spec.Pos(), imported + " is test support and may be imported by tests only"})
		}
	}
	if clean {
		out = append(out, moving(file, clock)...)
	}
	if !test && !within(dir, engines...) {
		out = append(out, peeking(file)...)
	}
	return out
}

// peeking finds what only engines may do to matrices.
func peeking(file *ast.File) (out []violation) {
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			x, pkg := s.X.(*ast.Ident)
			if s.Sel.Name == "Behind" || pkg && x.Name == "engine" && s.Sel.Name == "Over" {
				out = append(out, violation{n.Pos(), "looks behind a matrix: " + s.Sel.Name + " is for engines"})
			}
		}
		return true
	})
	return out
}

// moving finds go statements and uses of a clock; time is the name under which that package is imported.
func moving(file *ast.File, clock string) (out []violation) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			out = append(out, violation{n.Pos(), "starts a goroutine"})
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && clock != "" && x.Name == clock && slices.Contains(clocks, n.Sel.Name) {
				out = append(out, violation{n.Pos(), "reads a clock: time." + n.Sel.Name})
			}
		}
		return true
	})
	return out
}

// within says whether a package is one of these or lies below one; "." holds itself only.
func within(pkg string, of ...string) bool {
	return slices.ContainsFunc(of, func(o string) bool {
		return pkg == o || pkg+"." == o || o != "." && strings.HasPrefix(pkg, o+"/")
	})
}
