package host_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"brood/models/enginetest"
	"brood/models/longtest"
	"brood/models/program"
	"brood/runtime/event"
	"brood/runtime/host"
)

// TestProgramAgainstTorch: DiLoCo and Parle on a PyTorch module have the losses of separate loops in plain PyTorch over
// 50 rounds, up to rounding: 1e-7 in the first ten. Later the differences grow, since max-pooling may pick another
// element.
func TestProgramAgainstTorch(t *testing.T) {
	longtest.Need(t, longtest.Arithmetic, "torch takes seconds to start")
	python := enginetest.Python("torch")
	if python == "" {
		t.Skip("no python3 on this machine has torch")
	}
	const members, rounds, steps = 3, 50, 4
	for title, set := range map[string]map[string]string{
		"diloco":       {"h": "4", "eta_in": "0.003", "decay": "0.01"},
		"diloco steps": {"h": "4", "eta_in": "0.003", "decay": "0.01"},
		"diloco radam": {"h": "4", "eta_in": "0.003"},
		"parle": {"ell": "4", "gamma": "10", "rho": "0.5", "alpha": "0.75", "momentum": "0.9", "eta": "0.1",
			"eta_in": "0.02"},
	} {
		t.Run(title, func(t *testing.T) {
			name, how, _ := strings.Cut(title, " ")
			script, err := filepath.Abs("testdata/reference.py")
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			log := filepath.Join(dir, "log")
			p, err := program.Open(t.Context(), []string{python, script, "serve", log, how}, "")
			if err != nil {
				t.Fatal(err)
			}
			o := host.Options{Algorithm: name, Members: members, Threads: 1, Seed: 5, Limit: event.Limit{Rounds: rounds}}
			for knob, value := range set {
				o.Set = append(o.Set, event.Setting{Knob: knob, Expr: value})
			}
			o.Set = append(o.Set, event.Setting{Knob: "batch", Expr: "16"})
			_, _, err = runProgram(&host.Own{Program: p}, filepath.Join(dir, "s"), o)
			p.Close()
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(python, script, name, log, strconv.Itoa(members), how).CombinedOutput()
			var count int
			var early, worst float64
			if _, scan := fmt.Sscan(string(out), &count, &early, &worst); err != nil || scan != nil {
				t.Fatalf("%s: %v, %v", out, err, scan)
			}
			t.Logf("%d losses, the largest relative differences %.2g in 10 rounds and %.2g in all", count, early, worst)
			if count != members*rounds*steps || !(early < 2e-5) || !(worst < 5e-2) {
				t.Errorf("%d losses differ by up to %.3g in 10 rounds and %.3g in all, want %d within 2e-5 and 5e-2",
					count, early, worst, members*rounds*steps)
			}
		})
	}
}
