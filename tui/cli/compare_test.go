package cli

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"brood/optim"
	"brood/runtime/compare"
	"brood/runtime/event"
	"brood/runtime/session"
)

// TestResultsBearTheirRound: a result on the test set that is older than its run bears its round in the table.
func TestResultsBearTheirRound(t *testing.T) {
	var c comparison
	for _, tested := range []uint64{4, 6} {
		s, err := session.Create(filepath.Join(t.TempDir(), "run"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Append(event.Record{At: 1e18, Config: &event.Config{Version: 1, Model: "mlp", Data: "glyphs", Limit: event.Limit{Rounds: 9}}},
			event.Record{At: 1e18, Plan: &event.Plan{Epoch: 1, From: event.Fresh, Algorithm: "dp-sgd", New: optim.Place(optim.IDs(2), []int{0})}},
			event.Record{At: 2e18, Commit: &event.Commit{Epoch: 1, To: 6, Rounds: 6, Nanos: 1e9, Progress: event.Progress{Rounds: 6, Samples: 60, Epochs: 1}}},
			event.Record{At: 2e18, Evaluation: &event.Evaluation{Round: tested, TestError: 2.5, TestLoss: 0.5, Samples: 10}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		run, err := compare.Read(s.Dir())
		if err != nil {
			t.Fatal(err)
		}
		c.runs = append(c.runs, run)
	}
	compare.Join(c.runs)
	var out strings.Builder
	c.results(nil).write(&out)
	for i, want := range []string{`2\.50 @4[* ] +0\.5000 @4`, `2\.50[* ] +0\.5000[* ]`} {
		if line := strings.Split(out.String(), "\n")[1+i]; !regexp.MustCompile(want).MatchString(line) {
			t.Errorf("row %d is %q, want %s", i, line, want)
		}
	}
}
