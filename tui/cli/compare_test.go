package cli

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"brood/runtime/archive"
	"brood/runtime/view/sourcetest"

	"brood/optim/collective"
	"brood/runtime/event"
)

// TestRoundOfResults: a test result that is older than its run has its round in the table.
func TestRoundOfResults(t *testing.T) {
	var c comparison
	for _, tested := range []uint64{4, 6} {
		dir := filepath.Join(t.TempDir(), "run")
		sourcetest.Write(t, dir, event.Record{At: 1e18,
			Config: &event.Config{Version: 1, Model: "mlp", Data: "glyphs", Limit: event.Limit{Rounds: 9}}},
			event.Record{At: 1e18, Plan: &event.Plan{
				Epoch:     1,
				From:      event.Fresh,
				Algorithm: "dp-sgd",
				New:       collective.Place(collective.IDs(2), []int{0}),
			}},
			event.Record{At: 2e18, Commit: &event.Commit{
				Epoch:    1,
				To:       6,
				Rounds:   6,
				Nanos:    1e9,
				Progress: event.Progress{Rounds: 6, Samples: 60, Epochs: 1},
			}},
			event.Record{At: 2e18, Evaluation: &event.Evaluation{Round: tested, TestError: 2.5, TestLoss: 0.5, Samples: 10}})
		run, err := archive.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		c.runs = append(c.runs, run)
	}
	archive.Join(c.runs)
	var out strings.Builder
	c.results(nil).write(&out)
	for i, want := range []string{`2\.50 @4[* ] +0\.5000 @4`, `2\.50[* ] +0\.5000[* ]`} {
		if line := strings.Split(out.String(), "\n")[1+i]; !regexp.MustCompile(want).MatchString(line) {
			t.Errorf("row %d is %q, want %s", i, line, want)
		}
	}
}

// TestCompareEqualsWorkbench: series of the centre are preferred, as in the charts of marked runs.
func TestCompareEqualsWorkbench(t *testing.T) {
	for objective, want := range map[string]string{"": "centre.loss", "walk.py": "fitness"} {
		records := []event.Record{{Config: &event.Config{Version: 1, Model: "mlp", Data: "glyphs", Objective: objective}},
			{Plan: &event.Plan{Epoch: 1, From: event.Fresh, Algorithm: "dp-sgd", New: collective.Place(collective.IDs(1), []int{0})}}}
		for _, name := range []string{"loss", "centre.loss", "fitness"} {
			members := collective.IDs(1)
			if name == "centre.loss" {
				members = nil
			}
			records = append(records, event.Record{Points: &event.Points{
				Round:   1,
				Series:  name,
				Members: members,
				Values:  []float64{1},
			}})
		}
		records = append(records, event.Record{Commit: &event.Commit{
			Epoch:    1,
			To:       1,
			Rounds:   1,
			Nanos:    1e9,
			Progress: event.Progress{Rounds: 1},
		}})
		for i := range records {
			records[i].At = 1e18
		}
		dir := filepath.Join(t.TempDir(), "run")
		sourcetest.Write(t, dir, records...)
		run, err := archive.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := comparedSeries([]*archive.Run{run, run}, ""); err != nil || got != want {
			t.Errorf("objective %q: compared by %q, %v; want %q", objective, got, err, want)
		}
	}
}
