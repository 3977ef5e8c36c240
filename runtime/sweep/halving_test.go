package sweep

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/runtime/event"
	"brood/runtime/host"
)

// contest is a batch of four learning rates in dir, of which half remain after each rung.
func contest(t *testing.T, dir string) *Batch {
	t.Helper()
	b := &Batch{Kind: "sweep", Columns: []string{"eta"}, Metrics: []string{"epochs"}, Jobs: 2, Threads: 2,
		Halving: Halving{Factor: 2, By: "centre_loss"}}
	if err := b.Place(dir, "contest", map[string]any{}); err != nil {
		t.Fatal(err)
	}
	for _, eta := range []string{"0.0001", "0.03", "0.001", "0.01"} {
		b.Add([]string{eta}, "eta="+eta, contender(eta, 48), func(int) string { return "eta=" + eta }, []int{1})
	}
	if err := b.Check(t.Context(), func(int) {}); err != nil {
		t.Fatal(err)
	}
	if err := b.Create(); err != nil {
		t.Fatal(err)
	}
	if err := b.ReadStates(); err != nil {
		t.Fatal(err)
	}
	return b
}

func contender(eta string, rounds uint64) host.Options {
	return host.Options{Algorithm: "dp-sgd", Model: "linear", Data: "glyphs", Members: 1, Seed: 1, By: "test",
		Limit: event.Limit{Rounds: rounds}, Set: []event.Setting{{Knob: "eta", Expr: eta}, {Knob: "batch", Expr: "16"}}}
}

// rounds returns the rounds of the trials.
func rounds(b *Batch) (out []uint64) {
	b.Each(func(t *Trial) { out = append(out, t.Tally.Sum.Rounds) })
	return out
}

// TestHalving: the better half continues from where it was, the winner ends with the bits of an undisturbed run, and an
// interrupted batch continues with the decisions that it made and repeats no run.
func TestHalving(t *testing.T) {
	dir := t.TempDir()
	b := contest(t, filepath.Join(dir, "whole"))
	var rungs []string
	b.Halving.Begin = func(rung, of, settings int, limit event.Limit) {
		rungs = append(rungs, fmt.Sprintf("%d of %d: %d to %d", rung, of, settings, limit.Rounds))
	}
	if err := b.Run(t.Context(), trainer(0), func(*Trial) {}); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(rungs, "; "), "1 of 3: 4 to 12; 2 of 3: 2 to 24; 3 of 3: 1 to 48"; got != want {
		t.Errorf("the rungs are %s, want %s", got, want)
	}
	if got, want := rounds(b), []uint64{12, 24, 12, 48}; !slices.Equal(got, want) {
		t.Errorf("trained %d rounds, want %d", got, want)
	}
	if got, want := order(b, "centre_loss", false), []string{"0.01", "0.03", "0.001", "0.0001"}; !slices.Equal(got, want) {
		t.Errorf("sorted %q, want %q", got, want)
	}
	if text := string(b.Rows()); strings.Count(text, ",out,") != 3 || !strings.Contains(text, "0.01,1,measured,") {
		t.Errorf("the rows are\n%s", text)
	}

	alone := &Batch{Kind: "sweep", Jobs: 1, Threads: 1}
	if err := alone.Place(filepath.Join(dir, "alone"), "alone", nil); err != nil {
		t.Fatal(err)
	}
	alone.Add(nil, "alone", contender("0.01", 48), func(int) string { return "alone" }, []int{1})
	if err := alone.Run(t.Context(), trainer(0), func(*Trial) {}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.Trials[3].Tally.Sum.ParamsHash, alone.Trials[0].Tally.Sum.ParamsHash; got != want {
		t.Errorf("the winner ends with %s, an undisturbed run with %s", got, want)
	}

	cut := contest(t, filepath.Join(dir, "cut"))
	ctx, leave := context.WithCancel(t.Context())
	err := cut.Run(ctx, func(ctx context.Context, r Ready) error {
		if r.From == nil {
			return trainer(0)(ctx, r)
		}
		defer leave()
		return trainer(18)(ctx, r)
	}, func(*Trial) {})
	if err != nil || !cut.Unfinished() {
		t.Fatalf("trained %d, %v", rounds(cut), err)
	}
	cut = contest(t, cut.Dir)
	if err := cut.Run(t.Context(), func(ctx context.Context, r Ready) error {
		if r.Trial.Rung < 2 || r.From == nil {
			t.Errorf("%s trains again in rung %d", r.Trial, r.Trial.Rung)
		}
		return trainer(0)(ctx, r)
	}, func(*Trial) {}); err != nil {
		t.Fatal(err)
	}
	for i, x := range cut.Trials {
		if x.Tally.Sum.ParamsHash != b.Trials[i].Tally.Sum.ParamsHash || x.Rung != b.Trials[i].Rung ||
			x.Out != b.Trials[i].Out {
			t.Errorf("continued, %s ends in rung %d with %s", x, x.Rung, x.Tally.Sum.ParamsHash)
		}
	}
	again := func(context.Context, Ready) error { t.Error("a run that is done runs again"); return nil }
	if err := contest(t, cut.Dir).Run(t.Context(), again, func(*Trial) {}); err != nil {
		t.Error(err)
	}

	if err := os.WriteFile(filepath.Join(cut.Dir, decisionsFile), []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	cut.Trials[0].State = Waits
	if err := cut.ReadStates(); err == nil || !strings.Contains(err.Error(), "halving.json") {
		t.Errorf("damaged decisions: %v", err)
	}
}

// TestHalvingOfOthers: a process that is still in the first rung takes over the decision that another one made.
func TestHalvingOfOthers(t *testing.T) {
	b := contest(t, filepath.Join(t.TempDir(), "b"))
	if err := b.Run(t.Context(), trainer(0), func(x *Trial) {
		if x.Rung > 1 || x.Label != "eta=0.01" {
			return
		}
		if err := b.write(decisionsFile, []byte(`[["eta=0.001","eta=0.0001"]]`)); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := rounds(b), []uint64{24, 12, 48, 12}; !slices.Equal(got, want) {
		t.Errorf("trained %d rounds, want %d", got, want)
	}
}

// TestRungs: rungs depend on the settings and on the rounds.
func TestRungs(t *testing.T) {
	for _, c := range []struct {
		factor, settings int
		rounds           uint64
		want             int
	}{{3, 2, 0, 1}, {3, 3, 0, 2}, {3, 26, 0, 3}, {3, 27, 0, 4}, {3, 27, 8, 2}, {3, 27, 9, 3}, {2, 9, 1, 1},
		{2, 9, 1000, 4}} {
		if got := (Halving{Factor: c.factor}).rungs(c.settings, event.Limit{Rounds: c.rounds, Epochs: 1}); got != c.want {
			t.Errorf("%+v: %d rungs", c, got)
		}
	}
}
