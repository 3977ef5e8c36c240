package cuda

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"brood/models/gpu"
	"brood/models/gpu/clang"
	"brood/models/gpu/toolkit"
)

var update = flag.Bool("update", false, "compile the kernels to PTX")

// made compiles a source to PTX.
func made(t *testing.T, source string) string {
	t.Helper()
	own, err := texts.ReadFile("builtins.cl")
	if err != nil {
		t.Fatal(err)
	}
	text, err := clang.PTX(string(own) + source)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := digest(source)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("// %s\n%s", sum, text)
}

// TestPTX: the PTX matches the current kernels, and clang's output if clang is installed. With -update it is rewritten.
func TestPTX(t *testing.T) {
	_, err := exec.LookPath(clang.Name)
	for _, name := range gpu.Sources {
		source, fault := gpu.Source(name)
		if fault != nil {
			t.Fatal(fault)
		}
		if *update {
			if err != nil {
				t.Fatalf("%v: install %s", err, clang.Name)
			}
			if err := os.WriteFile(name+".ptx", []byte(made(t, source)), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, fault := PTX(name, source)
		if fault != nil {
			t.Error(fault)
		} else if err == nil && made(t, source) != text {
			t.Errorf("%s.ptx is not what clang makes: run go generate ./models/gpu/cuda", name)
		}
	}
	if *update {
		return
	}
	if _, err := PTX("kernels", "another text"); err == nil ||
		!strings.Contains(err.Error(), "go generate ./models/gpu/cuda") {
		t.Errorf("a text without PTX: %v", err)
	}
}

// forbidden matches instructions that differ from f32/1: ptxas fuses sums and products without an explicit rounding
// mode, and approximate or flushing instructions are marked as such.
var forbidden = []*regexp.Regexp{
	regexp.MustCompile(`^(add|sub|mul)\.f(32|64)`),
	regexp.MustCompile(`^mad(\.rn)?\.f(32|64)`),
	regexp.MustCompile(`\.(ftz|approx|full|sat)\b`),
	regexp.MustCompile(`^(ex2|lg2|sin|cos|tanh|rsqrt)\b`),
	regexp.MustCompile(`^(atom|red)\..*\.f(16|32|64)`),
}

// lint returns the forbidden instructions of a text.
func lint(text string) (found []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "@") {
			_, line, _ = strings.Cut(line, " ")
		}
		op, _, _ := strings.Cut(line, " ")
		op, _, _ = strings.Cut(op, "\t")
		if slices.ContainsFunc(forbidden, func(r *regexp.Regexp) bool { return r.MatchString(op) }) {
			found = append(found, op)
		}
	}
	return found
}

// TestInstructions: every sum, product, quotient and root of the PTX has IEEE rounding.
func TestInstructions(t *testing.T) {
	for _, name := range gpu.Sources {
		text, err := texts.ReadFile(name + ".ptx")
		if err != nil {
			t.Fatal(err)
		}
		if found := lint(string(text)); len(found) > 0 {
			t.Errorf("%s.ptx: %v", name, found)
		}
		products := "mul.rn.f32"
		if slices.Contains(gpu.Tensors, name) {
			products = "mma.sync.aligned.m16n8k"
		}
		if !strings.Contains(string(text), "fma.rn.f32") || !strings.Contains(string(text), products) {
			t.Errorf("%s.ptx has no products: does the lint read it?", name)
		}
	}
	for _, bad := range []string{"add.f32", "@%p1 mul.f32", "fma.rn.ftz.f32", "div.full.f32", "ex2.approx.f32",
		"atom.global.add.f32"} {
		if len(lint("\t"+bad+" \t%f1, %f2, %f3;\n")) != 1 {
			t.Errorf("%s passes", bad)
		}
	}
}

// TestSumsInRegisters: the product kernels accumulate in registers, which requires unrolled loops.
func TestSumsInRegisters(t *testing.T) {
	text, err := texts.ReadFile("kernels.ptx")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gemm", "conv_tiles"} {
		_, body, found := strings.Cut(string(text), ".entry "+name+"(")
		body, _, _ = strings.Cut(body, "\n}")
		if !found || !strings.Contains(body, "fma.rn.f32") || strings.Contains(body, ".local") {
			t.Errorf("%s: its sums are in memory", name)
		}
	}
}

// TestAssembler: ptxas, if installed, assembles the PTX without spilling registers, for the architecture that it was
// compiled for and a later one.
func TestAssembler(t *testing.T) {
	ptxas, err := toolkit.Find("ptxas")
	if err != nil {
		t.Skip(err)
	}
	for _, name := range gpu.Sources {
		text, err := texts.ReadFile(name + ".ptx")
		if err != nil {
			t.Fatal(err)
		}
		for _, arch := range []string{"sm_80", "sm_90"} {
			used, err := toolkit.Assemble(t.Context(), ptxas, arch, string(text))
			if err != nil {
				t.Errorf("%s for %s: %v", name, arch, err)
				continue
			}
			if entries := strings.Count(string(text), ".visible .entry "); len(used) != entries {
				t.Errorf("%s has %d kernels, but ptxas lists %d", name, entries, len(used))
			}
			most := slices.MaxFunc(used, func(a, b toolkit.Usage) int { return a.Registers - b.Registers })
			deep := slices.MaxFunc(used, func(a, b toolkit.Usage) int { return a.Stack - b.Stack })
			wide := slices.MaxFunc(used, func(a, b toolkit.Usage) int { return a.Shared - b.Shared })
			t.Logf("%s for %s: %d kernels, at most %d registers (%s), %d bytes of a stack (%s), %d shared bytes (%s)", name,
				arch, len(used), most.Registers, most.Kernel, deep.Stack, deep.Kernel, wide.Shared, wide.Kernel)
			for _, u := range used {
				if u.Stores+u.Loads > 0 {
					t.Errorf("%s for %s: %s keeps registers in memory: %d bytes written, %d read", name, arch, u.Kernel,
						u.Stores, u.Loads)
				}
			}
		}
	}
}
