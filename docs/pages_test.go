package docs_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	links   = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)
	quoted  = regexp.MustCompile("`([^`\n]+)`")
	named   = regexp.MustCompile(`^(?:Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9]*$`)
	defined = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)[A-Za-z0-9_]*)\(`)
	places  = []string{"docs", "models", "optim", "presets", "runtime", "transport", "tui"}
)

// What a page names is there: files behind links, paths of the tree, scripts, and tests.
func TestPagesNameWhatExists(t *testing.T) {
	tests := testNames(t)
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob("decisions/*.md")
	if len(more) == 0 || len(pages) == 0 {
		t.Fatal("no pages")
	}
	for _, page := range append(append(pages, more...), "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, missing := range absences(page, string(text), tests) {
			t.Errorf("%s names %s, which is not there", page, missing)
		}
	}
}

func TestPagesCanFail(t *testing.T) {
	text := "[a](nowhere.md) `optim/nothing.go` `TestNothing` `nothing.txtar` [b](https://example.org) " +
		"[c](testing.md#x) `optim/coupled/parle.go` `TestScripts` `tui/cli/`"
	got := absences("page.md", text, []string{"TestScripts"})
	if want := []string{"nowhere.md", "optim/nothing.go", "TestNothing", "nothing.txtar"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func absences(page, text string, tests []string) (out []string) {
	exists := func(p string) bool { _, err := os.Stat(p); return err == nil }
	for _, m := range links.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], "://") && !exists(filepath.Join(filepath.Dir(page), m[1])) {
			out = append(out, m[1])
		}
	}
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		word := m[1]
		top, _, inside := strings.Cut(word, "/")
		switch {
		case strings.ContainsAny(word, " *<>"):
		case inside && slices.Contains(places, top) && !exists(filepath.Join("..", word)),
			named.MatchString(word) && !slices.Contains(tests, word),
			path.Ext(word) == ".txtar" && !exists(filepath.Join("../tui/cli/testdata/script", word)) &&
				!exists(filepath.Join("../tui/cli/testdata/tmux", word)):
			out = append(out, word)
		}
	}
	return out
}

// testNames are the test functions of the tree.
func testNames(t *testing.T) (out []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range defined.FindAllStringSubmatch(string(text), -1) {
			out = append(out, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestArchitectureNamesPackages: the map has every package, by its path or by its path within a subsystem.
func TestArchitectureNamesPackages(t *testing.T) {
	page, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]bool{}
	err = fs.WalkDir(os.DirFS(".."), ".", func(name string, _ fs.DirEntry, err error) error {
		if strings.Contains(name, "/") && strings.HasSuffix(name, ".go") {
			packages[path.Dir(name)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range packages {
		_, within, _ := strings.Cut(dir, "/")
		_, last, _ := strings.Cut(within, "/")
		named := func(name string) bool {
			return name != "" && regexp.MustCompile("`"+regexp.QuoteMeta(name)+"/?`").Match(page)
		}
		if dir != "docs" && !strings.HasSuffix(dir, "test") && !strings.Contains(dir, "/internal/") &&
			!named(dir) && !named(within) && !named(last) {
			t.Errorf("architecture.md does not name the package %s", dir)
		}
	}
	if len(packages) < 100 {
		t.Errorf("only %d packages were found", len(packages))
	}
}
