package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"brood/runtime/host"
)

// TestFirstContactIsBounded: a card by both drivers takes no longer than the suite says. The last two stages have
// nothing to do by OpenCL.
func TestFirstContactIsBounded(t *testing.T) {
	each, err := time.ParseDuration(benchCommand(streams{}).Flags().Lookup("each").DefValue)
	if err != nil {
		t.Fatal(err)
	}
	sum := listBound + stageFigures*each + peerBound
	for i, s := range deviceStages {
		if sum += s.bound + stageFigures*each; i < len(deviceStages)-2 {
			sum += s.bound + stageFigures*each
		}
		if s.bound <= 0 || s.run == nil {
			t.Errorf("stage %s has no bound", s.name)
		}
	}
	if sum > suiteBound {
		t.Errorf("the stages may take %s, the suite %s", sum, suiteBound)
	}
}

// TestRefusedByPtxas: a stage whose assembler refuses the kernels has failed, and one that has no assembler has not.
func TestRefusedByPtxas(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	var card host.Device
	card.Info.Tensor = "cuda8.0"
	c := &cobra.Command{}
	c.SetContext(t.Context())
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	var told []string
	report := func(m measurement) { told = append(told, m.text()) }
	if _, err := host.Assembler(); err != nil { // else it is at its usual place
		if err := benchAssembler(c, card, report); err != nil || len(told) != 1 || !strings.Contains(told[0], "–") {
			t.Errorf("%q, %v", told, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "ptxas"), []byte("#!/bin/sh\necho 'ptxas fatal : no' >&2\nexit 255\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := benchToolkit(c, card, report); err == nil || !strings.Contains(err.Error(), "ptxas fatal : no") {
		t.Error(err)
	}
}

// TestNotMeasured: what was not measured is null, there and back.
func TestNotMeasured(t *testing.T) {
	text, err := json.Marshal(notMeasured("a", "s", "why"))
	if want := `{"suite":"","name":"a","unit":"s","note":"why","value":null}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	var m measurement
	if err := json.Unmarshal(text, &m); err != nil || m.Value == m.Value || m.Name != "a" {
		t.Errorf("%+v, %v", m, err)
	}
	if text, err := json.Marshal(measurement{Value: 0}); err != nil || !strings.Contains(string(text), `"value":0`) {
		t.Errorf("%s, %v", text, err)
	}
}
