//go:build unix

// Package peer contains no Go code: compare.sh measures PyTorch.
package peer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestChoose: compare.sh selects no OpenBLAS kernels that the CPU cannot run, which would end PyTorch with an illegal
// instruction.
func TestChoose(t *testing.T) {
	const avx512 = " avx512f avx512cd avx512bw avx512dq avx512vl"
	for cpuinfo, want := range map[string]string{
		"flags\t\t: fpu fma avx2" + avx512 + " sha\n\nflags\t\t: none\n": "SkylakeX",
		"flags\t\t: fpu fma avx2 avx512f\n":                              "Haswell",
		"flags\t\t: fpu avx2 fma\n":                                      "Haswell",
		"flags\t\t: fpu avx2x fma\n":                                     "",
		"Features\t: fp asimd\n":                                         "",
	} {
		path := filepath.Join(t.TempDir(), "cpuinfo")
		if err := os.WriteFile(path, []byte(cpuinfo), 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.Command("sh", "compare.sh", "choose")
		c.Env = append(os.Environ(), "CPUINFO="+path)
		out, err := c.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", cpuinfo, got, err, want)
		}
	}
}
