package docs_test

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"brood/models/longtest"
)

// fused is a multiply-add in what the compiler prints for arm64, with the file that it is of.
var fused = regexp.MustCompile(`\(([^()\s]+\.go):\d+\)\s+FN?M(?:ADD|SUB)[SD]\s`)

// recorded are the subsystems whose numbers enter a log's hashes, and mayFuse the files that fuse on purpose, or where
// it cannot show.
var (
	recorded = []string{"/models/", "/optim/", "/runtime/timeline/", "/runtime/worker/", "/runtime/coordinator/"}
	mayFuse  = []string{
		"models/native/kernel/fma_arm64.go",
		"models/arith/arith.go",   // by math.FMA
		"optim/gossip/lattice.go", // a division by a power of two, which is exact
	}
)

// TestNothingElseFuses: a compiler may fuse x*y + z unless the product is rounded on purpose. What it makes for arm64
// says whether one was forgotten.
func TestNothingElseFuses(t *testing.T) {
	longtest.Need(t, longtest.Arithmetic, "compiles for arm64")
	c := exec.Command("go", "build", "-gcflags=brood/...=-S", "./models/native", "./models/data", "./models/bbob",
		"./optim/catalog", "./runtime/timeline", "./runtime/worker", "./runtime/coordinator")
	c.Dir, c.Env = "..", append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	found := map[string]bool{}
	for _, m := range fused.FindAllStringSubmatch(string(out), -1) {
		found[m[1]] = true
	}
	for file := range found {
		in := func(s string) bool { return strings.Contains(file, s) }
		if slices.ContainsFunc(recorded, in) && !slices.ContainsFunc(mayFuse, in) {
			t.Errorf("%s has a product that is fused into a sum: write float64(x*y) + z", file)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(found)),
		func(file string) bool { return strings.HasSuffix(file, mayFuse[0]) }) {
		t.Error("the portable multiply-add is not fused: its bits are not those of f32/1")
	}
}
