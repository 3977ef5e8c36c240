// Package docs_test keeps what the documentation shows true.
package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"brood/models/longtest"
)

// TestAddingAnAlgorithm: the files of adding-an-algorithm.md are a module that compiles; with BROOD_LONG=conformance
// its own test passes and its program trains and verifies, for which brood is linked once more.
func TestAddingAnAlgorithm(t *testing.T) {
	blocks := goBlocks(t, "adding-an-algorithm.md")
	if len(blocks) != 2 {
		t.Fatalf("%d Go blocks, want the algorithm and its test", len(blocks))
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	first, requirements, ok := strings.Cut(string(mod), "\n")
	if !ok || first != "module brood" {
		t.Fatalf("go.mod begins with %q", first)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":       "module mine\n\nrequire brood v0.0.0\n\nreplace brood => " + root + "\n" + requirements,
		"go.sum":       string(sum),
		"lion.go":      blocks[0],
		"lion_test.go": blocks[1],
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "BROOD_SESSIONS="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("go", "vet", ".")
	if !longtest.On(longtest.Conformance) {
		return
	}
	if out := run("go", "test", "-count=1", "-v", "."); !strings.Contains(out, "--- PASS: TestLion/learns ") {
		t.Fatalf("the suite did not run:\n%s", out)
	}
	run("go", "build", "-o", "mine", ".")
	mine := filepath.Join(dir, "mine")
	run(mine, "run", "--algorithm", "lion", "--model", "softmax", "--data", "glyphs", "--members", "4", "--workers", "2",
		"--rounds", "5", "--plain", "--session", "s")
	if out := run(mine, "verify", "s"); !strings.Contains(out, "5 rounds") {
		t.Errorf("verify prints\n%s", out)
	}
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
