package longtest

import (
	"os"
	"path/filepath"
	"regexp"
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

// TestRacePatterns: each name by which .ci/run chooses tests for the race detector matches a test of its package, so
// that a renamed test does not drop out.
func TestRacePatterns(t *testing.T) {
	text, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`go test -race .* -(?:run|skip) '([^']*)' (\S+)`).FindAllStringSubmatch(string(text), -1)
	if len(lines) < 4 {
		t.Fatalf("%d lines of .ci/run choose tests by name", len(lines))
	}
	for _, line := range lines {
		var tests strings.Builder
		files, _ := filepath.Glob(filepath.Join("../..", line[2], "*_test.go"))
		for _, file := range files {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(code), -1) {
				tests.WriteString(name[1] + "\n")
			}
		}
		name, _, _ := strings.Cut(line[1], "/") // behind a slash are names of subtests
		for word := range strings.SplitSeq(name, "|") {
			if !strings.Contains(tests.String(), word) {
				t.Errorf("%s has no test %q, by which .ci/run chooses", line[2], word)
			}
		}
	}
}
