package conformance

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/event"
)

// scripted is a program that makes the choice of the test instead of one by measured rates, and counts its calls.
type scripted struct {
	optim.Program
	expr  string
	calls *atomic.Int64
	rates *atomic.Pointer[optim.Rates]
}

func (s scripted) Noise(k optim.Values) engine.Noise { return s.Program.(optim.Chooser).Noise(k) }

func (s scripted) Prefer(_ optim.Shape, r optim.Rates) []optim.Choice {
	s.calls.Add(1)
	s.rates.Store(&r)
	return []optim.Choice{{Knob: "distribution", Expr: s.expr, Why: "the test requests it"}}
}

// choosing returns the rig with an algorithm that chooses expr.
func (r Rig) choosing(t *testing.T, expr string) (Rig, scripted) {
	t.Helper()
	a, err := catalog.Lookup(r.Algorithm)
	if err != nil {
		t.Fatal(err)
	}
	own := *a
	s := scripted{a.Program, expr, &atomic.Int64{}, &atomic.Pointer[optim.Rates]{}}
	own.Program = s
	r.Lookup = func(name string) (*optim.Algorithm, error) {
		if name == own.Name {
			return &own, nil
		}
		return catalog.Lookup(name)
	}
	return r, s
}

// choices returns the edits that the run made itself.
func (o *Outcome) choices() (out []event.Edit) {
	for _, r := range o.Log.Records {
		if r.Edit != nil && r.Edit.Why != "" {
			out = append(out, *r.Edit)
		}
	}
	return out
}

// TestAutoIsRecorded: whatever is chosen, at the start or later, the hash is that of distribution seed. The choice is
// one edit with its reason, which verify and resume read from the log without a new choice.
func TestAutoIsRecorded(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"openai-es", "snes"} {
		base := quick(Rig{Algorithm: name, Members: 8, Workers: 1, Rounds: 12, Seed: 3})
		want := run(t, base).Hash()
		for _, choice := range []string{"seed", "chromosome"} {
			t.Run(name+"/"+choice, func(t *testing.T) {
				r, s := base.With("distribution", optim.Auto).choosing(t, choice)
				r.Workers, r.Store = 3, &Memory{}
				o := run(t, r)
				got := o.choices()
				if len(got) != 1 || got[0].Expr != choice || got[0].At != 0 || got[0].Why != "the test requests it" ||
					s.calls.Load() != 1 {
					t.Fatalf("%d choices, edits %+v", s.calls.Load(), got)
				}
				if rates := s.rates.Load(); rates.Noise <= 0 || rates.Bytes <= 0 {
					t.Errorf("measured %+v", rates)
				}
				sent, predicted := o.Bytes()
				if !maps.Equal(sent, predicted) || (sent["slices"] > 0) != (choice == "chromosome") || sent["rates"] != 0 {
					t.Errorf("sent %v, predicted %v", sent, predicted)
				}
				if _, err := r.Verify(ctx, o); err != nil {
					t.Errorf("verify: %v", err)
				}
				more := r // from the same state, on other workers
				more.Workers, more.Resume, more.Epoch, more.Rounds = 2, o.Checkpoint(), o.Checkpoint().Epoch, 20
				rest := run(t, more)
				whole := base
				whole.Rounds = 20
				if rest.Hash() != run(t, whole).Hash() || len(rest.choices()) != 0 {
					t.Errorf("resumed: %d more choices, hash %s", len(rest.choices()), rest.Hash())
				}
				if sent, _ := rest.Bytes(); (sent["slices"] > 0) != (choice == "chromosome") {
					t.Errorf("resumed: sent %v", sent)
				}
				if s.calls.Load() != 1 {
					t.Errorf("verify and resume made %d more choices", s.calls.Load()-1)
				}
				if o.Hash() != want {
					t.Errorf("hash %s, with distribution seed on one worker %s", o.Hash(), want)
				}
			})
		}
	}
}

// TestAutoAgain: if auto is set during training, the choice is made at that round, also after a swap.
func TestAutoAgain(t *testing.T) {
	base := quick(Rig{
		Algorithm: "openai-es",
		Members:   8,
		Workers:   2,
		Rounds:    1 << 30,
		Seed:      3,
	}).With("distribution", "seed")
	r, s := base.choosing(t, "chromosome")
	commits, phase, last := 0, 0, uint64(0)
	r.OnRecord = func(rec event.Record) []event.Command {
		auto := []event.Setting{{Knob: "distribution", Expr: optim.Auto}}
		switch {
		case rec.Edit != nil && rec.Edit.Why != "", rec.Plan != nil && rec.Plan.Cause == "swap" && phase == 2:
			phase++
		case rec.Commit != nil:
			last = rec.Commit.To
			switch commits++; {
			case commits == 2:
				return []event.Command{{Set: auto}}
			case phase == 1:
				phase++
				return []event.Command{{Algorithm: "snes"}}
			case phase == 3:
				phase++
				return []event.Command{{Algorithm: "openai-es", Set: auto}}
			case phase == 5:
				phase++
				return []event.Command{{Action: event.Stop}}
			}
		}
		return nil
	}
	o, err := r.Run(context.Background())
	if err != nil || o.Exit.Phase != event.Stopped {
		t.Fatalf("%+v, %v", o, err)
	}
	for _, rc := range o.Replies {
		if !rc.Accepted {
			t.Error(rc.Reason)
		}
	}
	got := o.choices()
	if len(got) != 2 || s.calls.Load() != 2 || got[1].At <= got[0].At || got[1].At > last {
		t.Errorf("%d choices, edits %+v, %d rounds", s.calls.Load(), got, last)
	}
	if _, err := r.Verify(context.Background(), o); err != nil {
		t.Errorf("verify: %v", err)
	}
}

// TestAutoByRates: the reason contains the comparison with the measured rates; with one worker there is no comparison.
func TestAutoByRates(t *testing.T) {
	for workers, want := range map[int]string{1: "one worker", 2: "4 vectors "} {
		r := quick(Rig{Algorithm: "openai-es", Members: 8, Workers: workers, Rounds: 4, Seed: 3}).With("distribution",
			optim.Auto)
		o := run(t, r)
		got := o.choices()
		if len(got) != 1 || !strings.HasPrefix(got[0].Why, want) || got[0].By != optim.Auto ||
			workers == 1 && got[0].Expr != "seed" {
			t.Fatalf("%d workers: %+v", workers, got)
		}
		if workers == 1 {
			continue
		}
		var limit, F, B float64
		var sign string
		if _, err := fmt.Sscanf(got[0].Why, "4 vectors %s 4F/B = %g, F = %g elements/s, B = %g bytes/s", &sign, &limit, &F,
			&B); err != nil {
			t.Fatalf("%q: %v", got[0].Why, err)
		}
		if (got[0].Expr == "seed") != (4 < limit) || limit < 3.9*F/B || limit > 4.1*F/B {
			t.Errorf("%s because %s", got[0].Expr, got[0].Why)
		}
	}
}
