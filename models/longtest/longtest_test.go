package longtest

import (
	"os"
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
