package optim_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"brood/optim"
	"brood/optim/catalog"
)

// An algorithm's file reads straight down: the declaration with paper, equations, knobs and blocks, then the program
// and its round, then what the round calls; and whatever it declares begins with the program's name, since all files
// are one package.
func TestFilesOfAlgorithmsReadStraightDown(t *testing.T) {
	files := sources(t, ".")
	found := 0
	for name := range files {
		if program, broken := conventions(name, files); program != "" {
			found++
			for _, b := range broken {
				t.Error(b)
			}
		}
	}
	listed := slices.DeleteFunc(catalog.All(), func(a *optim.Algorithm) bool { return !a.Needs.Model() })
	if found != len(listed) {
		t.Errorf("%d files declare an algorithm, the catalog lists %d", found, len(listed))
	}
}

// Whoever follows gradients lets one choose the optimiser, or says why not.
func TestGradientsAreFollowedByChoice(t *testing.T) {
	for _, a := range catalog.All() {
		_, has := a.Knob("optimiser")
		if asks := a.Needs&optim.Gradients != 0; asks && has == (a.NoOptimiser != "") || !asks && a.NoOptimiser != "" {
			t.Errorf("%s: optimiser %v, or why not: %q", a.Name, has, a.NoOptimiser)
		}
	}
}

// What takes several rounds for a cycle says so, or schedules that count cycles would count rounds.
func TestSlicedCyclesAreCounted(t *testing.T) {
	found := 0
	for _, name := range sourceNames(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "= &Algorithm{") && strings.Contains(string(text), ".ends(\"") {
			if found++; !strings.Contains(string(text), "\tCycle: ") {
				t.Errorf("%s ends cycles that it slices, and has no Cycle", name)
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d files slice cycles", found)
	}
}

func sourceNames(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Choices are asked by name, and by a name that there is.
func TestChoicesAreAskedByName(t *testing.T) {
	choices, asked := choicesOf(catalog.All()), 0
	for _, dir := range []string{".", "protocol"} {
		for name, text := range sources(t, dir) {
			n, broken := comparisons(name, text, choices)
			asked += n
			for _, b := range broken {
				t.Error(b)
			}
		}
	}
	if asked < len(choices) {
		t.Errorf("%d questions about %d knobs with choices: some are not found", asked, len(choices))
	}
	for name := range choices {
		for _, a := range catalog.All() {
			if k, ok := a.Knob(name); ok && len(k.Choices) == 0 {
				t.Errorf("%s of %s is a number and has choices in another algorithm", name, a.Name)
			}
		}
	}
}

// A knob that is named for a letter of the papers is shown as that letter, and is typed in ASCII; what is not a letter
// may be shown in words.
func TestLettersAreShownAsLetters(t *testing.T) {
	letters := map[string]string{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "lambda": "λ", "mu": "μ", "rho": "ρ", "sigma": "σ", "tau": "τ", "ell": "ℓ"}
	found := 0
	for _, a := range catalog.All() {
		for _, k := range a.Knobs {
			if strings.ContainsFunc(k.Name, func(r rune) bool { return r > unicode.MaxASCII }) {
				t.Errorf("%s of %s cannot be typed in ASCII", k.Name, a.Name)
			}
			word, index, _ := strings.Cut(k.Name, "_")
			want := letters[word]
			if want == "" {
				continue
			}
			if index != "" {
				want += "_" + index
			}
			if found++; k.Label != want {
				t.Errorf("%s of %s is shown as %q, want %q", k.Name, a.Name, k.Label, want)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d knobs are named for letters: the rule looks at too few", found)
	}
}

func TestConventionsCanFail(t *testing.T) {
	const fine = "package optim\nvar A = &Algorithm{Name: `a`, Paper: `p`, Doc: `s\n\n    x <- y\n\nSeries: z.\nBytes: b.\nReductions: r.`, Knobs: nil, Blocks: nil, Program: alg{}}\ntype alg struct{}\nfunc (alg) Round() {}\nfunc algStep() {}\n"
	for _, c := range []struct{ file, text, says string }{
		{"a.go", fine, ""},
		{"a_more.go", "package optim\nfunc algMore() {}", ""},
		{"b.go", "package optim\nfunc step() {}", ""}, // no algorithm's file
		{"a.go", fine + "func step() {}", "step does not begin with alg"},
		{"a.go", fine + "const step = 1", "step does not begin with alg"},
		{"a.go", fine + "func (e *Env) step() {}", "step is a method of Env"},
		{"a_more.go", "package optim\ntype more int", "more does not begin with alg"},
		{"a.go", strings.Replace(fine, "Knobs: nil, Blocks: nil", "Blocks: nil, Knobs: nil", 1), "Knobs comes after Blocks"},
		{"a.go", strings.Replace(fine, "    x <- y", "x <- y", 1), "no equations"},
		{"a.go", strings.Replace(fine, "Paper: `p`, ", "", 1), "no paper"},
		{"a.go", strings.Replace(fine, "Bytes: b.", "", 1), "no line that begins with Bytes"},
		{"a.go", strings.Replace(fine, "Series: z.\nBytes: b.", "Bytes: b.\nSeries: z.", 1), "Bytes comes before Series"},
		{"a.go", strings.Replace(fine, "func (alg) Round() {}\nfunc algStep() {}", "func algStep() {}\nfunc (alg) Round() {}", 1), "Round does not follow"},
	} {
		files := map[string]string{"a.go": fine, c.file: c.text}
		_, broken := conventions("a.go", files)
		if c.says == "" && len(broken) > 0 || c.says != "" && (len(broken) != 1 || !strings.Contains(broken[0], c.says)) {
			t.Errorf("%s %q: found %q, want %q", c.file, c.text, broken, c.says)
		}
	}
	choices := map[string][]string{"mode": {"on", "off"}}
	for _, c := range []struct{ text, says string }{
		{`k.Is("mode", "on")`, ""},
		{`k.I("batch") == 1`, ""},
		{`k.Is("mode", "none")`, `mode is compared with "none"`},
		{`k.I("mode") == 1`, "mode is read as a number"},
		{`k.Get("mode") == 1`, "mode is read as a number"},
		{`k.Choice("mode") == "on"`, "is compared: ask Is"},
	} {
		_, broken := comparisons("a.go", "package a\nvar x = "+c.text, choices)
		if c.says == "" && len(broken) > 0 || c.says != "" && (len(broken) != 1 || !strings.Contains(broken[0], c.says)) {
			t.Errorf("%s: found %q, want %q", c.text, broken, c.says)
		}
	}
	_, broken := comparisons("a.go", "package a\nfunc f() { switch k.Choice(`mode`) { case `on`: case `none`: } }", choices)
	if len(broken) != 1 || !strings.Contains(broken[0], `mode is compared with "none"`) {
		t.Errorf("a case that is no choice: %q", broken)
	}
}

// sources are the texts of a directory's files but for tests.
func sources(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatal("no files", err)
	}
	out := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(text)
	}
	return out
}

// fields is the order of a declaration.
var fields = []string{"Name", "Title", "Paper", "Doc", "Needs", "Knobs", "Series", "NoOptimiser", "Blocks", "Check", "Cycle", "Bytes", "Program", "Given"}

// conventions names the program of the algorithm that a file declares, "" where it declares none, and what is wrong
// with it and with the files whose names begin with its own.
func conventions(name string, files map[string]string) (program string, broken []string) {
	file, err := parser.ParseFile(token.NewFileSet(), name, files[name], parser.SkipObjectResolution)
	if err != nil {
		return "", []string{err.Error()}
	}
	wrong := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	decls := slices.DeleteFunc(file.Decls, func(d ast.Decl) bool { g, ok := d.(*ast.GenDecl); return ok && g.Tok == token.IMPORT })
	value := declaration(decls)
	if value == nil {
		return "", nil
	}
	last, doc, paper := -1, "", ""
	for _, e := range value.Elts {
		kv := e.(*ast.KeyValueExpr)
		key := kv.Key.(*ast.Ident).Name
		at := slices.Index(fields, key)
		if at < last {
			wrong("%s: %s comes after %s", name, key, fields[last])
		}
		last = max(at, last)
		text, _ := kv.Value.(*ast.BasicLit)
		switch key {
		case "Doc":
			doc, _ = strconv.Unquote(text.Value)
		case "Paper":
			paper, _ = strconv.Unquote(text.Value)
		case "Program":
			program = kv.Value.(*ast.CompositeLit).Type.(*ast.Ident).Name
		}
	}
	if paper == "" {
		wrong("%s: there is no paper", name)
	}
	if !strings.Contains(doc, "\n    ") {
		wrong("%s: the doc has no equations: lines indented by four blanks", name)
	}
	before, part := -1, ""
	for _, p := range []string{"Series", "Bytes", "Deviations", "Reductions"} {
		at := strings.Index(doc, "\n"+p)
		if at < 0 && p == "Bytes" {
			wrong("%s: the doc has no line that begins with Bytes", name)
		}
		if at >= 0 && at < before {
			wrong("%s: %s comes before %s in the doc", name, p, part)
		}
		if at >= 0 {
			before, part = at, p
		}
	}
	if len(decls) < 3 || declared(decls[1])[0] != program || declared(decls[2])[0] != "Round" {
		wrong("%s: type %s and its Round does not follow the declaration", name, program)
	}
	stem := strings.TrimSuffix(name, ".go")
	for other, text := range files {
		if other != name && !strings.HasPrefix(other, stem+"_") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), other, text, parser.SkipObjectResolution)
		if err != nil {
			wrong("%v", err)
			continue
		}
		for _, d := range file.Decls {
			of := receiver(d)
			for _, n := range declared(d) {
				switch {
				case of != "" && !strings.HasPrefix(of, program):
					wrong("%s: %s is a method of %s: make it a function that begins with %s, or move it to a file of what is shared", other, n, of, program)
				case of == "" && !ast.IsExported(n) && !strings.HasPrefix(n, program):
					wrong("%s: %s does not begin with %s: rename it, or move it to a file of what is shared", other, n, program)
				}
			}
		}
	}
	return program, broken
}

// declaration is the literal of the algorithm, which comes first.
func declaration(decls []ast.Decl) *ast.CompositeLit {
	if len(decls) == 0 {
		return nil
	}
	g, ok := decls[0].(*ast.GenDecl)
	if !ok || len(g.Specs) != 1 {
		return nil
	}
	v, ok := g.Specs[0].(*ast.ValueSpec)
	if !ok || len(v.Values) != 1 {
		return nil
	}
	u, ok := v.Values[0].(*ast.UnaryExpr)
	if !ok {
		return nil
	}
	c, _ := u.X.(*ast.CompositeLit)
	if id, ok := c.Type.(*ast.Ident); !ok || id.Name != "Algorithm" {
		return nil
	}
	return c
}

// declared are the names that a declaration brings.
func declared(d ast.Decl) (out []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return []string{d.Name.Name}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				out = append(out, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					out = append(out, n.Name)
				}
			}
		}
	}
	return out
}

// receiver is the type whose method a declaration is, or "".
func receiver(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	return of.(*ast.Ident).Name
}

// choicesOf are the names of all choices of each knob, over all algorithms.
func choicesOf(all []*optim.Algorithm) map[string][]string {
	out := map[string][]string{}
	for _, a := range all {
		for _, k := range a.Knobs {
			if len(k.Choices) > 0 {
				out[k.Name] = append(out[k.Name], k.Choices...)
			}
		}
	}
	return out
}

// comparisons counts the questions that a file asks about knobs with choices, and lists those that are not by a
// choice's name.
func comparisons(name, text string, choices map[string][]string) (asked int, broken []string) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return 0, []string{err.Error()}
	}
	wrong := func(n ast.Node, format string, args ...any) {
		broken = append(broken, fmt.Sprintf("%s:%d: ", name, set.Position(n.Pos()).Line)+fmt.Sprintf(format, args...))
	}
	check := func(n ast.Node, knob string, choice ast.Expr) {
		if c := literal(choice); c != "" && !slices.Contains(choices[knob], c) {
			wrong(n, "%s is compared with %q, which is none of its choices", knob, c)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			method, knob := question(n)
			if _, ok := choices[knob]; !ok {
				break
			}
			asked++
			switch method {
			case "I", "F", "Get":
				wrong(n, "%s is read as a number: ask Is or Choice", knob)
			case "Is":
				check(n, knob, n.Args[1])
			}
		case *ast.SwitchStmt:
			call, ok := n.Tag.(*ast.CallExpr)
			if !ok {
				break
			}
			if method, knob := question(call); method == "Choice" {
				for _, c := range n.Body.List {
					for _, x := range c.(*ast.CaseClause).List {
						check(x, knob, x)
					}
				}
			}
		case *ast.BinaryExpr:
			if call, ok := n.X.(*ast.CallExpr); ok && (n.Op == token.EQL || n.Op == token.NEQ) {
				if method, knob := question(call); method == "Choice" && knob != "" {
					wrong(n, "the choice of %s is compared: ask Is", knob)
				}
			}
		}
		return true
	})
	return asked, broken
}

// question is the method of Values that a call looks like, and the knob that it names.
func question(c *ast.CallExpr) (method, knob string) {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || len(c.Args) == 0 || !slices.Contains([]string{"I", "F", "Get", "Is", "Choice"}, s.Sel.Name) {
		return "", ""
	}
	return s.Sel.Name, literal(c.Args[0])
}

func literal(x ast.Expr) string {
	l, ok := x.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(l.Value)
	return s
}
