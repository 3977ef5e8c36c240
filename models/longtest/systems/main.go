// Command systems type-checks this module with its tests for other systems, from source, in seconds where a build for
// each would take minutes:
//
//	go run ./models/longtest/systems darwin/arm64 windows/amd64
//
// It prints each error and exits with 1 if there is one. The bodies of functions of other modules are not checked.
// Assembly is not either: go vet and a build for the processor do that.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "systems: name the systems, for instance windows/amd64")
		os.Exit(2)
	}
	root, err := os.Getwd()
	failed := err != nil
	for _, system := range os.Args[1:] {
		checked, err := check(root, system)
		if err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "systems: %s: %v\n", system, err)
			continue
		}
		fmt.Printf("%s: %d packages\n", system, checked)
	}
	if failed {
		os.Exit(1)
	}
}

// check type-checks the module in the directory root for a system, GOOS/GOARCH. It returns the number of its packages,
// those of tests included, and all errors joined.
func check(root, system string) (checked int, err error) {
	goos, goarch, ok := strings.Cut(system, "/")
	if !ok {
		return 0, errors.New("want GOOS/GOARCH")
	}
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedSyntax | packages.NeedModule,
		Dir:   root,
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		Tests: true,
		ParseFile: func(files *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, root+string(os.PathSeparator)) {
				dropBodies(file)
			}
			return file, err
		},
	}
	roots, err := packages.Load(config, "./...")
	if err != nil {
		return 0, err
	}
	var failures []error
	own := map[string]bool{}  // import paths; a package with its tests is loaded once more
	seen := map[string]bool{} // texts of failures
	fail := func(err error) {
		if !seen[err.Error()] {
			seen[err.Error()] = true
			failures = append(failures, err)
		}
	}
	for p := range packages.Postorder(roots) {
		if p.Module != nil && p.Module.Main && !strings.HasSuffix(p.PkgPath, ".test") {
			own[p.PkgPath] = true
		}
		for _, e := range p.Errors {
			if e.Kind != packages.TypeError {
				fail(e)
			}
		}
		for _, e := range p.TypeErrors {
			// Without bodies an import can be unused, which is the only soft error outside them.
			if p.Module != nil && p.Module.Main || !e.Soft {
				fail(e)
			}
		}
	}
	return len(own), errors.Join(failures...)
}

// dropBodies removes the bodies of a file's functions, but for those that the type checker requires.
func dropBodies(file *ast.File) {
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if ok && f.Name.Name != "init" && f.Name.Name != "main" && f.Type.TypeParams == nil {
			f.Body = nil
		}
	}
}
