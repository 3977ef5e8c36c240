package catalog

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var updateDefaults = flag.Bool("update-defaults", false, "write testdata/defaults.txt; use it for new knobs only")

// TestDefaultsUnchanged: a log does not record knobs with their default value, so another default would change the
// results of recorded runs. A new default for new runs is [optim.Knob.Schedule].
func TestDefaultsUnchanged(t *testing.T) {
	const file = "testdata/defaults.txt"
	var have strings.Builder
	for _, a := range All() {
		for _, k := range a.Knobs {
			fmt.Fprintf(&have, "%s %s %s\n", a.Name, k.Name, k.Format(k.Default))
		}
	}
	if *updateDefaults {
		if err := os.WriteFile(file, []byte(have.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(want)), "\n") {
		if !strings.Contains("\n"+have.String(), "\n"+line+"\n") {
			t.Errorf("recorded runs had %q, which has changed", line)
		}
	}
	if n, m := strings.Count(string(want), "\n"), strings.Count(have.String(), "\n"); m > n {
		t.Errorf("%d knobs are new: record them with -update-defaults", m-n)
	}
}
