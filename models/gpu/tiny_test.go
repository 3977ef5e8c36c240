package gpu_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"brood/models/enginetest"
)

// tiny are nets that have every kernel between them.
var tiny = [][]string{
	{"conv out=3 kernel=3 pad=1 name='a'", "relu", "conv out=3 kernel=3 pad=1 groups=3", "batchnorm", "add with='a'", "maxpool kernel=2", "dropout rate=0.2", "flatten", "dense out=5", "relu", "dense out=32", "relu", "dense out=3"},
	{"avgpool kernel=2", "relu", "globalavgpool", "dense out=3"},
	{"loss distance", "constant out=60"},
}

// TestTinyShapes is the comparison with the native engine where everything is small, as a checker of memory wants it.
func TestTinyShapes(t *testing.T) {
	for i, layers := range tiny {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w := newTwins(t, net(t, "[2,5,6]", 3, layers...), enginetest.Toy(t, 2, 5, 6))
			if i == 0 {
				w.vectors()
			}
			w.models()
		})
	}
}

// oclgrind is the library of Oclgrind, an OpenCL device that finds what is read or written out of bounds, and data
// races.
const oclgrind = "/usr/lib/oclgrind/liboclgrind-rt.so"

// TestOclgrind: TestTinyShapes on Oclgrind, which has nothing to say. With BROOD_LONG=1 it leaves the longest net out,
// which takes some ten minutes; BROOD_LONG=all takes it too.
func TestOclgrind(t *testing.T) {
	if os.Getenv("BROOD_LONG") == "" {
		t.Skip("set BROOD_LONG=1: kernels are interpreted")
	}
	if _, err := os.Stat(oclgrind); err != nil {
		t.Skipf("%v: install oclgrind", err)
	}
	log := filepath.Join(t.TempDir(), "log")
	which := "^TestTinyShapes$"
	if os.Getenv("BROOD_LONG") != "all" {
		which += "/^[12]$"
	}
	c := exec.Command(os.Args[0], "-test.run="+which, "-test.v")
	c.Env = append(os.Environ(), "BROOD_OPENCL="+oclgrind, "OCLGRIND_DATA_RACES=1", "OCLGRIND_CHECK_API=1", "OCLGRIND_LOG="+log)
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestTinyShapes") {
		t.Errorf("%v: %.2000s", err, out)
	}
	if said, _ := os.ReadFile(log); len(said) > 0 {
		t.Errorf("Oclgrind says: %.4000s", said)
	}
}
