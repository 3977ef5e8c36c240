package longtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestSelects(t *testing.T) {
	for _, c := range []struct {
		value string
		group Group
		on    bool
		fails bool
	}{
		{value: "", group: Fleets},
		{value: "fleets", group: Fleets, on: true},
		{value: "kernels", group: Fleets},
		{value: "kernels,fleets", group: Fleets, on: true},
		{value: "all", group: Fleets, on: true},
		{value: "1", group: Fleets, fails: true},
		{value: "fleets,flets", group: Fleets, fails: true},
		{value: "all", group: "flets", fails: true},
	} {
		on, err := selects(c.value, c.group)
		if (err != nil) != c.fails || err == nil && on != c.on {
			t.Errorf("selects(%q, %q) = %t, %v", c.value, c.group, on, err)
		}
	}
}

// TestGroupsAreRun: the check and the nightly workflow name every group.
func TestGroupsAreRun(t *testing.T) {
	names := make([]string, len(Groups))
	for i, g := range Groups {
		names[i] = string(g)
	}
	for file, list := range map[string]string{
		"../../.ci/run":                      "groups=(" + strings.Join(names, " ") + ")",
		"../../.github/workflows/checks.yml": "group: [" + strings.Join(names, ", ") + "]",
	} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), list) {
			t.Errorf("%s has no line %q: %v", file, list, err)
		}
	}
}

// TestRacePatterns: each name by which .ci/run chooses tests for the race detector, or skips them, matches a test, so
// that a renamed test is noticed.
func TestRacePatterns(t *testing.T) {
	text, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	chosen := regexp.MustCompile(`go test -race .* -run '([^']*)' (\S+)`).FindAllStringSubmatch(string(text), -1)
	if len(chosen) < 3 {
		t.Errorf("%d lines of .ci/run choose tests by name", len(chosen))
	}
	for _, line := range chosen {
		tests := strings.Join(testsBelow(t, line[2]), "\n")
		pattern, _, _ := strings.Cut(line[1], "/") // behind a slash are names of subtests
		for word := range strings.SplitSeq(pattern, "|") {
			if !strings.Contains(tests, word) {
				t.Errorf("%s has no test %q, by which .ci/run chooses", line[2], word)
			}
		}
	}
	_, list, _ := strings.Cut(string(text), "skipped=(")
	list, _, _ = strings.Cut(list, ")")
	_, list, _ = strings.Cut(list, "\n") // a comment
	skipped := strings.Fields(list)
	if len(skipped) < 20 {
		t.Errorf(".ci/run skips %q", skipped)
	}
	tests := slices.Concat(testsBelow(t, "models"), testsBelow(t, "runtime"), testsBelow(t, "transport"),
		testsBelow(t, "tui"))
	for _, name := range skipped {
		if !slices.Contains(tests, name) {
			t.Errorf("no test is named %s, which .ci/run skips under the race detector", name)
		}
	}
}

// testsBelow returns the names of the tests and examples below a directory of the module.
func testsBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Example)\w+)\(`)
	err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, name := range declared.FindAllStringSubmatch(string(code), -1) {
			names = append(names, name[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestCheckTests(t *testing.T) {
	for run, ok := range map[string]bool{
		"^TestCheckTests$": true, "TestCheckTests/one": true, "^(TestCheckTests|TestRacePatterns)$": true,
		"^TestCheck$": false, "^(TestCheckTests|TestNone)$": false, "^TestNone$/TestCheckTests": false,
	} {
		if err := CheckTests(".", run); (err == nil) != ok {
			t.Errorf("%s: %v", run, err)
		}
	}
}
