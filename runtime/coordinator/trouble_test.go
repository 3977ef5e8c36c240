package coordinator

import (
	"math"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/message"
)

// answerSave lets every worker answer the save in progress.
func (p *testRun) answerSave() {
	p.t.Helper()
	if p.core.saving == nil {
		p.t.Fatal("no save is in progress")
	}
	for _, w := range p.core.roster.Workers() {
		p.step(message.Saved{
			Worker: w,
			Epoch:  p.core.base,
			At:     p.core.saving.at,
			Files:  []event.File{{Path: "x", Digest: "blake3:" + strings.Repeat("0", 64), Bytes: 1}},
		})
	}
}

// saveCheckpoint saves a checkpoint of the committed round.
func (p *testRun) saveCheckpoint() {
	p.t.Helper()
	p.step(event.Command{ID: 9, Action: event.Save})
	p.answerSave()
}

// roundWithLoss executes a round in which the centre has this loss.
func (p *testRun) roundWithLoss(loss float64) {
	p.t.Helper()
	p.round(func(w int, d *message.Done) {
		for i := range d.Points {
			if d.Points[i].Series == "centre.loss" {
				d.Points[i].Values[0] = loss
			}
		}
	})
}

// reportNonFinite lets worker 0 report that a block is not finite.
func (p *testRun) reportNonFinite() {
	p.t.Helper()
	g := p.grant(0)
	p.step(message.Failed{
		Worker:    0,
		Epoch:     p.core.base,
		Err:       "not finite",
		NonFinite: &message.NonFinite{Block: "x", Member: p.core.roster.Hosted(0)[0], From: g.From, To: g.To},
	})
}

// TestOnTrouble: under each policy, how a run reacts if a block is not finite, the disk is full, or its workers
// disagree.
func TestOnTrouble(t *testing.T) {
	on := func(policy TroublePolicy) func(*Config) { return func(c *Config) { c.OnTrouble = policy } }
	troubles := map[string]func(p *testRun){
		"non-finite": func(p *testRun) { p.reportNonFinite() },
		"disk":       func(p *testRun) { p.step(Trouble{"disk", "no space"}) },
		"disagree": func(p *testRun) {
			p.round(func(w int, d *message.Done) {
				if w == 0 {
					setDigest(d, "progress/shared", [32]byte{1})
				}
			})
		},
	}
	for name, happens := range troubles {
		t.Run("wait/"+name, func(t *testing.T) {
			p := newTestRun(t, 2, on(OnTroubleWait))
			p.round(nil)
			happens(p)
			if p.core.Phase() != event.Paused || p.exit != nil {
				t.Errorf("%s, %+v", p.core.Phase(), p.exit)
			}
		})
		t.Run("stop/"+name, func(t *testing.T) {
			p := newTestRun(t, 2, on(OnTroubleStop))
			p.roundWithLoss(0.5)
			p.roundWithLoss(3)
			happens(p)
			p.ready()
			for len(p.core.done) > 0 { // outstanding rounds are committed first
				p.round(nil)
			}
			p.answerSave()
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

// TestBack: with the policy back, a run returns to the newest good checkpoint, or to the start, without the edits
// since. It fails after several tries.
func TestBack(t *testing.T) {
	p := newTestRun(t, 2, func(c *Config) {
		c.OnTrouble, c.Edits = OnTroubleBack, []event.Edit{{Algorithm: "parle", Knob: "eta", Expr: "0.07", By: "flag"}}
	})
	p.roundWithLoss(0.5)
	p.reportNonFinite() // no checkpoint exists yet
	p.ready()
	if at, _ := p.core.Committed(); at != 0 || p.core.Phase() != event.Training {
		t.Fatalf("round %d, %s", at, p.core.Phase())
	}
	p.roundWithLoss(0.5)
	p.saveCheckpoint()
	good, _ := p.core.Committed()
	p.roundWithLoss(0.4) // makes the checkpoint good
	p.step(event.Command{ID: 1, Set: []event.Setting{{Knob: "eta", Expr: "50"}}})
	p.roundWithLoss(7)
	p.saveCheckpoint()
	p.roundWithLoss(math.NaN())
	p.saveCheckpoint()
	p.reportNonFinite()
	if cp := p.core.checkpoint; cp.Round != good {
		t.Errorf("back to round %d, want %d", cp.Round, good)
	}
	p.ready()
	for _, e := range p.core.edits {
		if e.Expr == "50" {
			t.Errorf("the edit %+v is in effect again", e)
		}
	}
	if len(p.core.edits) != 1 || p.core.edits[0].Expr != "0.07" {
		t.Errorf("the edits are %+v, want the initial setting", p.core.edits)
	}
	p.roundWithLoss(0.4)
	p.reportNonFinite()
	p.ready()
	if at, _ := p.core.Committed(); at != good || p.core.Phase() != event.Training || p.exit != nil {
		t.Fatalf("round %d, %s", at, p.core.Phase())
	}
	p.reportNonFinite() // the fourth time
	p.ready()
	if p.core.checkpoint.Epoch != p.core.base {
		p.answerSave()
	}
	if p.exit == nil || p.exit.Phase != event.Failed || !strings.Contains(p.exit.Reason, "not finite") {
		t.Errorf("%s, %+v", p.core.Phase(), p.exit)
	}
}

// TestBackInBranch: a fork returns to its initial checkpoint.
func TestBackInBranch(t *testing.T) {
	var s LastGood
	cp := &event.Checkpoint{Round: 40}
	s.Take(event.Record{Checkpoint: cp})
	s.Take(event.Record{Plan: &event.Plan{At: 40, From: event.Saved}})
	s.Take(event.Record{Commit: &event.Commit{To: 41}})
	s.Take(event.Record{Checkpoint: &event.Checkpoint{Round: 41}})
	probe := func(at uint64, loss float64) event.Record {
		return event.Record{Points: &event.Points{
			Round:   at,
			Series:  "centre.loss",
			Members: []engine.Member{engine.None},
			Values:  []float64{loss},
		}}
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
		t.Errorf("after a rollback: round %d, newest %+v", s.Round, s.Newest())
	}
}

// TestPoliciesAreKnown: an unknown policy is rejected. It does not select the default.
func TestPoliciesAreKnown(t *testing.T) {
	for _, change := range []func(*Config){func(c *Config) { c.OnLoss = "pray" },
		func(c *Config) { c.OnTrouble = "wait " }} {
		cfg := Config{Algorithm: "parle", Members: 2, Lookup: symbolic}
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "there is no policy on-") {
			t.Errorf("%q and %q: %v", cfg.OnLoss, cfg.OnTrouble, err)
		}
	}
}
