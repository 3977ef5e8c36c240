package toolkit

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestUsage parses the output of ptxas 11.8 for kernels with unlimited registers, and with 32.
func TestUsage(t *testing.T) {
	for name, want := range map[string][]Usage{
		"tf32.txt":   {{"conv_tensor", 168, 0, 0, 0, 19072}, {"gemm_tensor", 124, 0, 0, 0, 9216}},
		"spills.txt": {{"conv_tensor", 32, 692, 468, 248, 19072}, {"gemm_tensor", 32, 1016, 808, 600, 9216}},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parse(string(text)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		cut := strings.TrimRight(string(text), "\n")
		if _, err := parse(cut[:strings.LastIndex(cut, "\n")]); err == nil {
			t.Errorf("%s without its last line is read", name)
		}
		lines := strings.SplitAfter(string(text), "\n")
		if _, err := parse(strings.Join(slices.Delete(lines, 4, 5), "")); err == nil {
			t.Errorf("%s without a line of the first kernel is read", name)
		}
	}
	if _, err := parse("ptxas info    : 0 bytes gmem\n"); err == nil {
		t.Error("output without a kernel is accepted")
	}
}

// program creates a shell script that replaces a program of the toolkit.
func program(t *testing.T, name, script string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAssemble: the program receives the PTX and the architecture, and the error contains its message.
func TestAssemble(t *testing.T) {
	record, err := filepath.Abs("testdata/tf32.txt")
	if err != nil {
		t.Fatal(err)
	}
	path := program(t, "ptxas",
		`[ "$1 $2 $3" = "-v -arch=sm_90 -o" ] && grep -q .version "$5" || { echo "ptxas fatal : Missing .version" >&2; exit 255; }
cat `+record+" >&2\n")
	if used, err := Assemble(context.Background(), path, "sm_90", ".version 7.0\n"); err != nil || len(used) != 2 {
		t.Errorf("%v, %v", used, err)
	}
	if _, err := Assemble(context.Background(), path, "sm_90", "nonsense"); err == nil ||
		err.Error() != "ptxas: exit status 255: ptxas fatal : Missing .version" {
		t.Error(err)
	}
	t.Setenv("PATH", filepath.Dir(path))
	if found, err := Find("ptxas"); err != nil || found != path {
		t.Errorf("%s, %v", found, err)
	}
	if _, err := Find("no-such-tool"); err == nil ||
		!strings.HasPrefix(err.Error(), "there is no no-such-tool in the path nor in /usr/local/cuda/bin") {
		t.Error(err)
	}
}

// TestSanitize parses the last line of either tool, and distinguishes failures of the command from problems found.
func TestSanitize(t *testing.T) {
	path := program(t, "compute-sanitizer", `echo "========= COMPUTE-SANITIZER"
shift; tool=$1; shift; "$@" || { echo "========= Target application returned an error"; code=1; }
[ $tool = racecheck ] && echo "========= RACECHECK SUMMARY: ${FAULTS:-0} hazards displayed (${FAULTS:-0} errors, 0 warnings)"
[ $tool = memcheck ] && echo "========= ERROR SUMMARY: ${FAULTS:-0} errors"
exit ${code:-0}
`)
	try := func(tool, faults string, command ...string) (int, error) {
		t.Setenv("FAULTS", faults)
		return Sanitize(context.Background(), path, tool, command...)
	}
	for _, tool := range []string{"memcheck", "racecheck"} {
		if n, err := try(tool, "0", "true"); n != 0 || err != nil {
			t.Errorf("%s of nothing: %d, %v", tool, n, err)
		}
		if n, err := try(tool, "3", "false"); n != 3 || err != nil {
			t.Errorf("%s of three: %d, %v", tool, n, err)
		}
		if _, err := try(tool, "0", "sh", "-c", "exit 1"); err == nil ||
			!strings.HasPrefix(err.Error(), "under compute-sanitizer: exit status 1") {
			t.Errorf("%s of a command that fails: %v", tool, err)
		}
	}
	if _, err := try("initcheck", "0", "true"); err == nil || !strings.Contains(err.Error(), "printed no summary") {
		t.Error(err)
	}
}
