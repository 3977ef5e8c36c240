// Package toolkit runs programs of NVIDIA's CUDA toolkit, if installed. They are optional: ptxas reports the resources
// of the assembled PTX, and compute-sanitizer finds invalid operations of kernels.
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

// places lists directories of programs that are not in the path.
var places = []string{"/usr/local/cuda/bin", "/opt/cuda/bin", "/usr/lib/nvidia-cuda-toolkit/bin"}

// Find returns the path of a program of the toolkit, such as ptxas; the error lists the searched directories.
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

// Usage is the resources of a kernel: registers per work item, and bytes of registers spilled to memory.
type Usage struct {
	Kernel        string
	Registers     int
	Stores, Loads int // bytes of spilled registers, written and read
	Stack, Shared int // bytes per work item, and per group
}

// Assemble runs ptxas on PTX for an architecture such as sm_80. The error contains the output of ptxas.
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
	c.WaitDelay = time.Second // for its descendants after it is killed
	return c
}

// parse parses the output of ptxas -v. It fails unless there is at least one kernel, each with all its lines.
func parse(output string) (out []Usage, err error) {
	// ptxas -v has three lines per kernel
	entryLine := regexp.MustCompile(`Compiling entry function '([^']+)' for`)
	spillLine := regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	usedLine := regexp.MustCompile(`Used (\d+) registers`)
	smemLine := regexp.MustCompile(`(\d+) bytes smem`)
	var lines int // lines of the last kernel
	for line := range strings.Lines(output) {
		if m := entryLine.FindStringSubmatch(line); m != nil {
			if len(out) > 0 && lines != 2 {
				return nil, fmt.Errorf("ptxas output lacks lines of %s", out[len(out)-1].Kernel)
			}
			out, lines = append(out, Usage{Kernel: m[1]}), 0
			continue
		}
		if len(out) == 0 {
			continue
		}
		u := &out[len(out)-1]
		if m := spillLine.FindStringSubmatch(line); m != nil && lines == 0 {
			u.Stack, u.Stores, u.Loads, lines = number(m[1]), number(m[2]), number(m[3]), 1
		}
		if m := usedLine.FindStringSubmatch(line); m != nil && lines == 1 {
			u.Registers, lines = number(m[1]), 2
			if m := smemLine.FindStringSubmatch(line); m != nil {
				u.Shared = number(m[1])
			}
		}
	}
	if len(out) == 0 || lines != 2 {
		return nil, fmt.Errorf("ptxas output lists no kernel resources: %.300s", output)
	}
	return out, nil
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // the pattern matches digits only
	return n
}

// Sanitize runs a command under a tool of compute-sanitizer, such as memcheck or racecheck, and returns the number of
// problems found. It fails if the command or the sanitizer fails.
func Sanitize(ctx context.Context, sanitizer, tool string, watched ...string) (found int, err error) {
	out, failed := command(ctx, sanitizer, append([]string{"--tool", tool}, watched...)...).CombinedOutput()
	m := summaryLine.FindSubmatch(out)
	switch {
	case m == nil:
		return 0, fmt.Errorf("compute-sanitizer printed no summary (%v): %.300s", failed, bytes.TrimSpace(out))
	case failed != nil && number(string(m[1])) == 0:
		return 0, fmt.Errorf("under compute-sanitizer: %w: %.300s", failed, bytes.TrimSpace(out))
	}
	return number(string(m[1])), nil
}

// summaryLine matches the last line of either tool: ERROR SUMMARY: 2 errors, or RACECHECK SUMMARY: 2 hazards displayed.
var summaryLine = regexp.MustCompile(`========= (?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)`)
