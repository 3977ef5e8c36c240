// Package docs_test keeps what the documentation shows true.
package docs_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"brood/models/longtest"
)

// The algorithm of adding-an-algorithm.md, with its catalog line, compiles; with BROOD_LONG=conformance it passes the
// conformance suite, for which the runtime is compiled once more. It is laid over the tree, which stays as it is.
func TestAddingAnAlgorithm(t *testing.T) {
	blocks := goBlocks(t, "adding-an-algorithm.md")
	if len(blocks) != 2 {
		t.Fatalf("%d Go blocks, want the file and the line", len(blocks))
	}
	file, line := blocks[0], blocks[1]
	first, _, _ := strings.Cut(file, "\n")
	name, ok := strings.CutPrefix(first, "// optim/")
	if !ok {
		t.Fatalf("the file begins with %q, want its name", first)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	catalog := filepath.Join(root, "optim", "catalog", "catalog.go")
	text, err := os.ReadFile(catalog)
	if err != nil {
		t.Fatal(err)
	}
	const list = "return []*optim.Algorithm{\n"
	if strings.Count(string(text), list) != 1 {
		t.Fatalf("catalog.go has no list %q", list)
	}
	args := []string{"vet", "./optim/catalog"}
	if longtest.On(longtest.Conformance) {
		args = []string{"test", "-count=1", "-v", "-run", "^TestConformance$/^ring-sgd$", "./runtime/conformance"}
	}
	out := overlay(t, root, map[string]string{
		filepath.Join(root, "optim", name): file,
		catalog:                            strings.Replace(string(text), list, list+line, 1),
	}, args...)
	if args[0] == "test" && !strings.Contains(out, "--- PASS: TestConformance/ring-sgd ") {
		t.Fatalf("the suite did not run:\n%s", out)
	}
}

// overlay runs the go command on the tree with some files laid over it, and returns what it prints.
func overlay(t *testing.T, root string, files map[string]string, args ...string) string {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	for path, text := range files {
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		put := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(put, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[path] = put
	}
	spec, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(at, spec, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{args[0], "-overlay", at}, args[1:]...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

// goBlocks are the fenced blocks of Go in a page.
func goBlocks(t *testing.T, page string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for rest := string(text); ; {
		_, after, ok := strings.Cut(rest, "```go\n")
		if !ok {
			return out
		}
		block, tail, ok := strings.Cut(after, "```\n")
		if !ok {
			t.Fatalf("%s: a block does not end", page)
		}
		out, rest = append(out, block), tail
	}
}
