package coordinator

import (
	"math"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/message"
)

// saves lets every worker answer what it was asked to save.
func (p *party) saves() {
	p.t.Helper()
	if p.core.saving == nil {
		p.t.Fatal("nobody is asked to save")
	}
	for _, w := range p.core.roster.Workers() {
		p.step(message.Saved{Worker: w, Epoch: p.core.base, At: p.core.saving.at, Files: []event.File{{Path: "x", Digest: "blake3:" + strings.Repeat("0", 64), Bytes: 1}}})
	}
}

// keepNow is a checkpoint of the committed round.
func (p *party) keepNow() {
	p.t.Helper()
	p.step(event.Command{ID: 9, Action: event.Save})
	p.saves()
}

// probes is a round in which the centre has this loss.
func (p *party) probes(loss float64) {
	p.t.Helper()
	p.round(func(w int, d *message.Done) {
		for i := range d.Points {
			if d.Points[i].Series == "centre.loss" {
				d.Points[i].Values[0] = loss
			}
		}
	})
}

// blows lets a worker report that a block is not finite.
func (p *party) blows() {
	p.t.Helper()
	g := p.grant(0)
	p.step(message.Failed{Worker: 0, Epoch: p.core.base, Err: "not finite", NonFinite: &message.NonFinite{Block: "x", Member: p.core.roster.Hosted(0)[0], From: g.From, To: g.To}})
}

// TestOnTrouble: what a run does where a block is not finite, the disk is full, or its workers disagree, when nobody
// looks.
func TestOnTrouble(t *testing.T) {
	on := func(policy TroublePolicy) func(*Config) { return func(c *Config) { c.OnTrouble = policy } }
	troubles := map[string]func(p *party){
		"non-finite": func(p *party) { p.blows() },
		"disk":       func(p *party) { p.step(Trouble{"disk", "no space"}) },
		"disagree": func(p *party) {
			p.round(func(w int, d *message.Done) {
				if w == 0 {
					put(d, "progress/shared", [32]byte{1})
				}
			})
		},
	}
	for name, happens := range troubles {
		t.Run("wait/"+name, func(t *testing.T) {
			p := newParty(t, 2, on(OnTroubleWait))
			p.round(nil)
			happens(p)
			if p.core.Phase() != event.Paused || p.exit != nil {
				t.Errorf("%s, %+v", p.core.Phase(), p.exit)
			}
		})
		t.Run("stop/"+name, func(t *testing.T) {
			p := newParty(t, 2, on(OnTroubleStop))
			p.probes(0.5)
			p.probes(3)
			happens(p)
			p.ready()
			for len(p.core.done) > 0 { // rounds that are out are committed first
				p.round(nil)
			}
			p.saves()
			if p.exit == nil || p.exit.Phase != event.Failed {
				t.Fatalf("%s, %+v", p.core.Phase(), p.exit)
			}
			if cp := p.core.checkpoint; cp == nil || cp.Round != p.core.committed || cp.Round < 2 {
				t.Errorf("saved %+v of round %d", cp, p.core.committed)
			}
			want := uint64(0)
			if name == "non-finite" {
				want = 1
			}
			if p.exit.Branch != want {
				t.Errorf("branch at %d, want %d: %s", p.exit.Branch, want, p.exit.Reason)
			}
		})
	}
}

// TestBack: a run that goes back by itself takes the newest checkpoint that a probe found sane, or the start, without
// the edits that came since, and gives up after some tries.
func TestBack(t *testing.T) {
	p := newParty(t, 2, func(c *Config) {
		c.OnTrouble, c.Edits = OnTroubleBack, []event.Edit{{Algorithm: "parle", Knob: "eta", Expr: "0.07", By: "flag"}}
	})
	p.probes(0.5)
	p.blows() // nothing is saved yet
	p.ready()
	if at, _ := p.core.Committed(); at != 0 || p.core.Phase() != event.Training {
		t.Fatalf("round %d, %s", at, p.core.Phase())
	}
	p.probes(0.5)
	p.keepNow()
	sane, _ := p.core.Committed()
	p.probes(0.4) // tells that the checkpoint is sane
	p.step(event.Command{ID: 1, Set: []event.Setting{{Knob: "eta", Expr: "50"}}})
	p.probes(7)
	p.keepNow()
	p.probes(math.NaN())
	p.keepNow()
	p.blows()
	if cp := p.core.checkpoint; cp.Round != sane {
		t.Errorf("back to round %d, want %d", cp.Round, sane)
	}
	p.ready()
	for _, e := range p.core.edits {
		if e.Expr == "50" {
			t.Errorf("the edit %+v is in force again", e)
		}
	}
	if len(p.core.edits) != 1 || p.core.edits[0].Expr != "0.07" {
		t.Errorf("in force are %+v, want the run's own setting", p.core.edits)
	}
	p.probes(0.4)
	p.blows()
	p.ready()
	if at, _ := p.core.Committed(); at != sane || p.core.Phase() != event.Training || p.exit != nil {
		t.Fatalf("round %d, %s", at, p.core.Phase())
	}
	p.blows() // the fourth time
	p.ready()
	if p.core.checkpoint.Epoch != p.core.base {
		p.saves()
	}
	if p.exit == nil || p.exit.Phase != event.Failed || !strings.Contains(p.exit.Reason, "not finite") {
		t.Errorf("%s, %+v", p.core.Phase(), p.exit)
	}
}

// TestBackInBranch: what a branch begins with is where it goes back to.
func TestBackInBranch(t *testing.T) {
	var s Sane
	cp := &event.Checkpoint{Round: 40}
	s.Take(event.Record{Checkpoint: cp})
	s.Take(event.Record{Plan: &event.Plan{At: 40, From: event.Saved}})
	s.Take(event.Record{Commit: &event.Commit{To: 41}})
	s.Take(event.Record{Checkpoint: &event.Checkpoint{Round: 41}})
	probe := func(at uint64, loss float64) event.Record {
		return event.Record{Points: &event.Points{Round: at, Series: "centre.loss", Members: []engine.Member{engine.None}, Values: []float64{loss}}}
	}
	if s.Good != cp {
		t.Errorf("good is %+v", s.Good)
	}
	s.Take(probe(42, 1))
	if s.Round != 42 || s.Good == nil || s.Good.Round != 41 {
		t.Errorf("round %d, good %+v", s.Round, s.Good)
	}
	s.Take(probe(43, 2))
	s.Take(event.Record{Checkpoint: &event.Checkpoint{Round: 43}})
	if s.Round != 42 || s.Good.Round != 41 || s.Newest().Round != 43 {
		t.Errorf("round %d, good %+v, newest %+v", s.Round, s.Good, s.Newest())
	}
	s.Take(event.Record{Plan: &event.Plan{At: 41, From: event.Saved}})
	if s.Round != 41 || s.Newest().Round != 41 {
		t.Errorf("after going back: round %d, newest %+v", s.Round, s.Newest())
	}
}

// TestPoliciesAreKnown: a policy of no list is refused, and not taken for the first one.
func TestPoliciesAreKnown(t *testing.T) {
	for _, change := range []func(*Config){func(c *Config) { c.OnLoss = "pray" }, func(c *Config) { c.OnTrouble = "wait " }} {
		cfg := Config{Algorithm: "parle", Members: 2, Lookup: symbolic}
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "there is no policy on-") {
			t.Errorf("%q and %q: %v", cfg.OnLoss, cfg.OnTrouble, err)
		}
	}
}
