package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"brood/models/longtest"
)

// The program of your-own-graph.md is the example of runtime/host, which runs there. With BROOD_LONG=kernels the go
// command also builds and runs it as another module.
func TestYourOwnGraph(t *testing.T) {
	blocks := goBlocks(t, "your-own-graph.md")
	if len(blocks) != 1 {
		t.Fatalf("%d Go blocks, want the program", len(blocks))
	}
	example, err := os.ReadFile("../runtime/host/example_own_test.go")
	if err != nil {
		t.Fatal(err)
	}
	body, output, ok := strings.Cut(strings.Replace(string(example), "func Example_ownGraph()", "func main()", 1),
		"\t// Output:\n")
	if want := strings.Replace(body, "package host_test", "package main", 1) + "}\n"; !ok || blocks[0] != want {
		t.Error("the page's program is not the example of runtime/host: copy it")
	}
	if !longtest.On(longtest.Kernels) {
		return
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": blocks[0],
		"go.sum":  read("go.sum"),
		"go.mod":  strings.Replace(read("go.mod"), "module brood\n", "module mine\n\nrequire brood v0.0.0\n\nreplace brood => "+root+"\n", 1),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.ReplaceAll(strings.TrimSuffix(output, "}\n"), "\t// ", "")
	cmd := exec.CommandContext(t.Context(), "go", "run", "-mod=mod", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}
