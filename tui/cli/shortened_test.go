package cli

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/session"
)

// TestReadersOfShortenedLogs: commands that list or count records say that the log of a session begins later; its
// records keep their numbers, and the view at its beginning is not printed.
func TestReadersOfShortenedLogs(t *testing.T) {
	home := t.TempDir()
	t.Setenv("BROOD_SESSIONS", home)
	dir := filepath.Join(home, "short")
	s, err := session.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	config := event.Config{Version: 1, Model: "mlp", Data: "glyphs"}
	plan := event.Plan{Epoch: 1, At: 40, Algorithm: "dp-sgd"}
	plan.New = collective.Roster{Members: []engine.Member{0}, Owner: []int{0}}
	records := []event.Record{{At: 1, Config: &config}, {At: 2, Plan: &plan}}
	for round := uint64(1); round <= 60; round++ {
		records = append(records, event.Record{At: int64(2 + round), Commit: &event.Commit{Epoch: 1, To: round, Rounds: 1,
			Progress: event.Progress{Rounds: round, Steps: round, Samples: 9 * round}}})
	}
	begins := config
	begins.Begins = &event.Beginning{Round: 40, First: 40, Head: 2, View: []byte("of another version")}
	head := []event.Record{{At: 1, Config: &begins}, {At: 42, Plan: &plan}}
	if err := errors.Join(s.Append(records...), s.Shorten(42, head), s.Close()); err != nil {
		t.Fatal(err)
	}
	const sentence = "the log begins after round 40: older records were removed (--keep-log)"
	brood := func(args ...string) (string, string) {
		var out, text strings.Builder
		Run(t.Context(), args, streams{out: &out, err: &text})
		return out.String(), text.String()
	}
	table := []string{"export", "short", "--to", "csv", "-o", filepath.Join(home, "short.csv")}
	for _, args := range [][]string{table, {"compare", "short"}} {
		if _, text := brood(args...); !strings.Contains(text, "short: "+sentence) {
			t.Errorf("brood %s prints %q", strings.Join(args, " "), text)
		}
	}
	out, _ := brood("log", "short", "--json")
	first, _, _ := strings.Cut(out, "\n")
	if !strings.Contains(first, `"n":40,`) || !strings.Contains(first, `"begins":{"first":40,"head":2,"round":40}`) {
		t.Errorf("the first record is %s", first)
	}
	if out, _ := brood("sessions", "--json"); !strings.Contains(out, `"begins":40`) {
		t.Errorf("brood sessions prints %s", out)
	}
}
