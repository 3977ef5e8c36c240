package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"brood/runtime/host"
)

// TestFirstContactIsBounded: the bounds of the stages of a card by both drivers, without the last two by OpenCL, sum to
// at most suiteBound.
func TestFirstContactIsBounded(t *testing.T) {
	sum := listBound + stageFigures*DefaultEach + peerBound
	for i, s := range deviceStages {
		if sum += s.bound + stageFigures*DefaultEach; i < len(deviceStages)-2 {
			sum += s.bound + stageFigures*DefaultEach
		}
		if s.bound <= 0 || s.run == nil {
			t.Errorf("stage %s has no bound", s.name)
		}
	}
	if sum > suiteBound {
		t.Errorf("the stages may take %s, the suite %s", sum, suiteBound)
	}
}

// TestRefusedByPtxas: the stage toolkit fails if ptxas rejects the kernels, and not if there is no ptxas.
func TestRefusedByPtxas(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	var card host.Device
	card.Info.Tensor = "cuda8.0"
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	var got []Figure
	suite := DeviceSuite{Report: func(m Figure) { got = append(got, m) }}
	if _, err := host.Assembler(); err != nil { // else it is at its usual place
		if err := suite.assemble(t.Context(), card); err != nil || len(got) != 1 || got[0].Value == got[0].Value {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "ptxas"),
		[]byte("#!/bin/sh\necho 'ptxas fatal : no' >&2\nexit 255\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := suite.toolkit(t.Context(), card); err == nil || !strings.Contains(err.Error(), "ptxas fatal : no") {
		t.Error(err)
	}
}

// TestRelay: relay reports the figures of another process, and its last line on stderr as the error.
func TestRelay(t *testing.T) {
	var got []string
	child := exec.Command("sh", "-c", `echo '{"name":"a","value":2,"unit":"s"}'; echo no line; echo one >&2
		echo brood: two >&2; exit 3`)
	err := relay(child, func(m Figure) { got = append(got, fmt.Sprintf("%s %g %s", m.Name, m.Value, m.Unit)) })
	if err == nil || err.Error() != "two" || len(got) != 1 || got[0] != "a 2 s" {
		t.Errorf("%q, %v", got, err)
	}
	if err := relay(exec.Command("sh", "-c", "exit 3"), func(Figure) {}); err == nil || err.Error() != "exit status 3" {
		t.Error(err)
	}
}
