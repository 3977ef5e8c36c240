package host

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"brood/models/longtest"
)

// emulated builds a static binary for arm64, without device drivers, and returns the command that runs it. It skips the
// test if there is no emulator. It clears BROOD_LONG, so that tests in the binary are short.
func emulated(t *testing.T, build ...string) []string {
	t.Helper()
	longtest.Need(t, longtest.Arithmetic, "emulates another processor")
	t.Setenv(longtest.Variable, "")
	path := filepath.Join(t.TempDir(), "binary")
	c := exec.Command("go", slices.Concat(build[:1], []string{"-tags", "nogpu", "-o", path}, build[1:])...)
	c.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	if goruntime.GOARCH == "arm64" && goruntime.GOOS == "linux" {
		return []string{path}
	}
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Skip("needs qemu-aarch64-static: install qemu-user-static")
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
	return []string{qemu, path}
}

// TestArm64 records sessions on arm64 with the NEON variant, and some with the portable variant, where the compiler
// fuses multiply and add. It verifies them on this machine.
func TestArm64(t *testing.T) {
	binary := emulated(t, "build", "brood")
	model := spec(t, mixed)
	for name, args := range map[string]string{
		"parle":  "--algorithm parle --set ell=2 --set thermal=0.01 --set clip=0.5 --model " + model,
		"cosine": "--algorithm dp-sgd --set eta=cosine:0.1..0.01@6 --model " + model,
		"exp":    "--algorithm dp-sgd --set eta=exp:0.1*0.93/round --model " + model,
		"rank":   "--algorithm openai-es --set rank=1 --model mlp-small",
		"snes":   "--algorithm snes --model mlp-small",
		"hybrid": "--algorithm hybrid-es --set combine=softmax --set shape=student --set judges=16 --model mlp-small",
		"ga":     "--algorithm ga --set anneal=0.7 --model mlp-small",
	} {
		variants := []string{"neon"}
		if name == "parle" || name == "rank" {
			variants = append(variants, "portable")
		}
		for _, variant := range variants {
			t.Run(name+"/"+variant, func(t *testing.T) {
				t.Setenv("BROOD_CPU", variant)
				dir := filepath.Join(t.TempDir(), "s")
				line := append(slices.Clone(binary),
					strings.Fields("run --json --data glyphs --members 4 --rounds 6 --probe 1000 --set batch=8 --session "+dir+
						" "+args)...)
				out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				t.Setenv("BROOD_CPU", "")
				v, err := Verify(context.Background(), dir, 2, nil)
				if err != nil || v.Rounds != 6 || !strings.Contains(string(out), v.Last.Hash) {
					t.Errorf("%d rounds, %v: %v", v.Rounds, v.Last, err)
				}
			})
		}
	}
}

// TestArm64Kernels runs the kernel tests on arm64, and those of byte products also on a processor without SDOT.
func TestArm64Kernels(t *testing.T) {
	for name, of := range map[string]struct{ cpu, path, tests string }{
		"kernel": {"max", "brood/models/native/kernel", "."},
		"bytes":  {"cortex-a72", "brood/models/native/kernel", "Bytes"},
		"arith":  {"max", "brood/models/arith", "."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("QEMU_CPU", of.cpu)
			// That test has more guard pages than the emulator maps quickly.
			line := append(emulated(t, "test", "-c", of.path), "-test.v", "-test.run", of.tests, "-test.skip",
				"TestCausalSoftmaxAgainstFloat64")
			out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
