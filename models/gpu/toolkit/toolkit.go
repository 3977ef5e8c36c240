// Package toolkit runs programs of NVIDIA's CUDA toolkit where a machine has them. Nothing needs them: ptxas says what
// a card's assembler makes of the PTX, and compute-sanitizer finds what kernels do that they may not.
package toolkit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"brood/models/procgroup"
)

// places are where programs are that are not in the path.
var places = []string{"/usr/local/cuda/bin", "/opt/cuda/bin", "/usr/lib/nvidia-cuda-toolkit/bin"}

// Find is a program of the toolkit, ptxas for instance; the error says where it was looked for.
func Find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range places {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no %s in the path nor in %s: it is part of NVIDIA's CUDA toolkit", name,
		strings.Join(places, ", "))
}

// Usage is what a kernel takes of a multiprocessor: registers of a work item, and bytes that it keeps in memory since
// it has too few of them.
type Usage struct {
	Kernel        string
	Registers     int
	Stores, Loads int // bytes of registers that are kept in memory, as they are written and read
	Stack, Shared int // bytes of a work item, and of a group
}

// Assemble has ptxas assemble PTX for an architecture such as sm_80. The error is what ptxas said.
func Assemble(ctx context.Context, ptxas, arch, text string) ([]Usage, error) {
	dir, err := os.MkdirTemp("", "brood-ptxas-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	in := filepath.Join(dir, "in.ptx")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		return nil, err
	}
	c := command(ctx, ptxas, "-v", "-arch="+arch, "-o", filepath.Join(dir, "out"), in)
	out, err := c.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("ptxas: %w: %.2000s", err, bytes.TrimSpace(out))
	}
	return parse(string(out))
}

func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := procgroup.Command(ctx, name, args...)
	c.WaitDelay = time.Second // for what it leaves behind
	return c
}

// Lines of ptxas -v, of which each kernel has three.
var (
	entryLine = regexp.MustCompile(`Compiling entry function '([^']+)' for`)
	spillLine = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	usedLine  = regexp.MustCompile(`Used (\d+) registers`)
	smemLine  = regexp.MustCompile(`(\d+) bytes smem`)
)

// parse reads what ptxas -v says. A kernel of which it does not say all, or no kernel at all, is an error.
func parse(said string) (out []Usage, err error) {
	var told int // of the last kernel's lines
	for line := range strings.Lines(said) {
		if m := entryLine.FindStringSubmatch(line); m != nil {
			if len(out) > 0 && told != 2 {
				return nil, fmt.Errorf("ptxas does not say all of %s", out[len(out)-1].Kernel)
			}
			out, told = append(out, Usage{Kernel: m[1]}), 0
			continue
		}
		if len(out) == 0 {
			continue
		}
		u := &out[len(out)-1]
		if m := spillLine.FindStringSubmatch(line); m != nil && told == 0 {
			u.Stack, u.Stores, u.Loads, told = number(m[1]), number(m[2]), number(m[3]), 1
		}
		if m := usedLine.FindStringSubmatch(line); m != nil && told == 1 {
			u.Registers, told = number(m[1]), 2
			if m := smemLine.FindStringSubmatch(line); m != nil {
				u.Shared = number(m[1])
			}
		}
	}
	if len(out) == 0 || told != 2 {
		return nil, fmt.Errorf("ptxas does not say what kernels take: %.300s", said)
	}
	return out, nil
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // of a pattern of digits
	return n
}

// Sanitize has compute-sanitizer watch a command by one of its tools, memcheck or racecheck for instance, and counts
// what it found. An error is one of the command, or of the sanitizer itself.
func Sanitize(ctx context.Context, sanitizer, tool string, watched ...string) (found int, err error) {
	out, failed := command(ctx, sanitizer, append([]string{"--tool", tool}, watched...)...).CombinedOutput()
	m := summaryLine.FindSubmatch(out)
	switch {
	case m == nil:
		return 0, fmt.Errorf("compute-sanitizer says nothing of faults (%v): %.300s", failed, bytes.TrimSpace(out))
	case failed != nil && number(string(m[1])) == 0:
		return 0, fmt.Errorf("under compute-sanitizer: %w: %.300s", failed, bytes.TrimSpace(out))
	}
	return number(string(m[1])), nil
}

// summaryLine is the last line of either tool: ERROR SUMMARY: 2 errors, or RACECHECK SUMMARY: 2 hazards displayed.
var summaryLine = regexp.MustCompile(`========= (?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)`)
