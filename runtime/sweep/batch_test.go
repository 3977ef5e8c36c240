package sweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

// small is a batch of two settings with two seeds in dir; its runs train no model.
func small(t *testing.T, dir string) *Batch {
	t.Helper()
	b := &Batch{Kind: "sweep", Columns: []string{"n"}, Metrics: []string{"bytes", "epochs"}, Jobs: 2, Threads: 2}
	if err := b.Place(dir, "small", map[string]any{"preset": "leader"}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"50", "100"} {
		o := host.Options{Algorithm: "leader", Members: 2, Limit: event.Limit{Rounds: 400},
			Set: []event.Setting{{Knob: "n", Expr: n}}, By: "test"}
		b.Add([]string{n}, "n="+n, o, func(seed int) string { return fmt.Sprintf("n=%s,seed=%d", n, seed) }, []int{1, 2})
	}
	if err := b.Check(t.Context(), func(int) {}); err != nil {
		t.Fatal(err)
	}
	if err := b.Create(); err != nil {
		t.Fatal(err)
	}
	b.ReadStates()
	return b
}

// trainer returns a runner like that of a command, which is interrupted after stop rounds; 0: never.
func trainer(rounds uint64) Runner {
	return func(ctx context.Context, r Ready) error {
		var run *host.Run
		run, err := host.Start(r.Job, r.Session, r.From, func(rec event.Record) {
			if r.Watch(rec); rounds > 0 && rec.Commit != nil && rec.Commit.To >= rounds {
				go run.Interrupt()
			}
		})
		if err != nil {
			r.Session.Close()
			return err
		}
		exit, err := run.Train(context.WithoutCancel(ctx))
		if err == nil && exit.Phase == event.Stopped {
			err = ErrInterrupted
		}
		return errors.Join(err, run.Close())
	}
}

func states(b *Batch) (out []State) {
	b.Each(func(t *Trial) { out = append(out, t.State) })
	return out
}

// TestContinuesBatch: an interrupted batch continues with the same bits, repeats no run, skips runs of other processes,
// and reports a damaged log without ending the other runs.
func TestContinuesBatch(t *testing.T) {
	dir := t.TempDir()
	whole := small(t, filepath.Join(dir, "whole"))
	whole.Run(t.Context(), trainer(0), func(*Trial) {})
	if got, want := states(whole), []State{Done, Done, Done, Done}; !slices.Equal(got, want) {
		t.Fatalf("the states are %v, want %v", got, want)
	}

	cut := filepath.Join(dir, "cut")
	b := small(t, cut)
	ctx, leave := context.WithCancel(t.Context())
	b.Run(ctx, func(ctx context.Context, r Ready) error {
		defer leave()
		return trainer(100)(ctx, r)
	}, func(x *Trial) { // on a slow machine one may end before it hears that it should stop
		if x.State != Done {
			t.Errorf("%s is over, but its state is %d", x, x.State)
		}
	})
	if !b.Unfinished() {
		t.Fatalf("nothing is left of %v", states(b))
	}
	b = small(t, cut)
	b.Run(t.Context(), trainer(0), func(*Trial) {})
	for i, x := range b.Trials {
		if want := whole.Trials[i].Tally.Sum.ParamsHash; x.State != Done || x.Tally.Sum.ParamsHash != want {
			t.Errorf("%s is %d with %s, undisturbed %s", x, x.State, x.Tally.Sum.ParamsHash, want)
		}
	}
	rows := string(b.Rows())
	if strings.Count(rows, "measured") != 4 || !strings.HasPrefix(rows, "n,seed,outcome,bytes,epochs\n50,1,measured,") {
		t.Errorf("the rows are\n%s", rows)
	}

	again := func(context.Context, Ready) error { t.Error("a run that is done runs again"); return nil }
	small(t, cut).Run(t.Context(), again, func(*Trial) {})

	log := filepath.Join(cut, "n=50,seed=1", "log-000001.brood")
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(log, text, 0o600); err != nil {
		t.Fatal(err)
	}
	b = small(t, cut)
	if got, want := states(b), []State{Failed, Done, Done, Done}; !slices.Equal(got, want) ||
		!strings.Contains(b.Trials[0].Failed.Error(), "remove "+filepath.Dir(log)) {
		t.Errorf("with a damaged log the states are %v, want %v: %v", got, want, b.Trials[0].Failed)
	}
}

// TestClaimed: a trial that another process runs is left to it, and continued after that process has ended.
func TestClaimed(t *testing.T) {
	b := small(t, filepath.Join(t.TempDir(), "b"))
	theirs := b.Trials[1]
	claim, err := session.Lock(theirs.claim)
	if err != nil {
		t.Fatal(err)
	}
	b = small(t, b.Dir)
	if b.Trials[1].State != Elsewhere {
		t.Fatalf("the claimed trial is %d", b.Trials[1].State)
	}
	n := 0
	b.Jobs = 1
	b.Run(t.Context(), trainer(0), func(*Trial) {
		if n++; n == 3 {
			if b.Trials[1].State != Elsewhere {
				t.Errorf("the claimed trial is %d when all others are done", b.Trials[1].State)
			}
			claim.Close()
		}
	})
	if n != 4 || b.Trials[1].State != Done {
		t.Errorf("%d trials were reported, and the claimed one is %d", n, b.Trials[1].State)
	}
}

// TestOtherSettings: a directory contains one batch.
func TestOtherSettings(t *testing.T) {
	b := small(t, filepath.Join(t.TempDir(), "b"))
	other := &Batch{Kind: "sweep"}
	err := other.Place(b.Dir, "x", map[string]any{"preset": "other"})
	if err == nil || !strings.Contains(err.Error(), "with other settings") {
		t.Errorf("another batch in the same directory: %v", err)
	}
	err = (&Batch{Kind: "study"}).Place(b.Dir, "x", nil)
	if err == nil || !strings.Contains(err.Error(), "other files than a study") {
		t.Errorf("a study in a sweep's directory: %v", err)
	}
	for _, dir := range []string{filepath.Join(b.Dir, "sweep.json"), filepath.Join(b.Dir, "sweep.json", "below")} {
		err = (&Batch{Kind: "sweep"}).Place(dir, "x", nil)
		if err == nil || !strings.Contains(err.Error(), "choose another directory") {
			t.Errorf("a directory that is a file: %v", err)
		}
	}
}
