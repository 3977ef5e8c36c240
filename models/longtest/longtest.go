// Package longtest is test support. It sorts the tests that are too slow for every change into named groups, of which
// the environment variable BROOD_LONG selects some: BROOD_LONG=fleets,kernels, or BROOD_LONG=all.
//
// A test that belongs to a group begins with Need, or calls On where it only tries more cases:
//
//	func TestKills(t *testing.T) {
//		longtest.Need(t, longtest.Fleets, "kills 32 processes")
package longtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Group names the long tests that run together.
type Group string

const (
	Kernels     Group = "kernels"     // kernel variants, the native engine and the graph engine
	Devices     Group = "devices"     // OpenCL, PTX, and the faults planted in their kernels
	Arithmetic  Group = "arithmetic"  // equal hashes on every kernel variant, device and processor
	Conformance Group = "conformance" // every algorithm over QUIC and without host memory, and its planted faults
	Fleets      Group = "fleets"      // processes and links that fail, send wrong data or stop sending
	Studies     Group = "studies"     // claims of papers and estimates, measured in many runs
	Terminal    Group = "terminal"    // the workbench in tmux, and the long parts of scripts
)

// Groups lists all groups.
var Groups = []Group{Kernels, Devices, Arithmetic, Conformance, Fleets, Studies, Terminal}

// Variable is the environment variable that selects groups.
const Variable = "BROOD_LONG"

// On reports whether BROOD_LONG selects the group. It panics if BROOD_LONG has an unknown name.
func On(g Group) bool {
	on, err := selects(os.Getenv(Variable), g)
	if err != nil {
		panic(err)
	}
	return on
}

// Need skips the test unless BROOD_LONG selects the group. cost is the reason that the test is long.
func Need(t testing.TB, g Group, cost string) {
	t.Helper()
	if !On(g) {
		t.Skipf("set %s=%s: %s", Variable, g, cost)
	}
}

// selects reports whether a value of BROOD_LONG, names separated by commas, selects a group.
func selects(value string, g Group) (on bool, err error) {
	if !slices.Contains(Groups, g) {
		return false, fmt.Errorf("longtest: there is no group %q, only %v", g, Groups)
	}
	if value == "" {
		return false, nil
	}
	for name := range strings.SplitSeq(value, ",") {
		if name != "all" && !slices.Contains(Groups, Group(name)) {
			return false, fmt.Errorf("%s=%s: there is no group %q of long tests; use all, or some of %v", Variable, value, name,
				Groups)
		}
		on = on || name == "all" || name == string(g)
	}
	return on, nil
}

// CheckTests returns an error if a pattern of go test -run, such as ^TestA$ or ^(TestA|TestB)$, names a test that no
// test file of the directory declares: go test passes when it runs nothing. Only the top level of the pattern counts.
func CheckTests(dir, run string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return err
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		all.Write(text)
	}
	top, _, _ := strings.Cut(run, "/")
	for _, name := range strings.Split(strings.Trim(top, "^$()"), "|") {
		if !strings.Contains(all.String(), "func "+strings.Trim(name, "^$")+"(") {
			return fmt.Errorf("-run %s: %s declares no %s", run, dir, name)
		}
	}
	return nil
}
