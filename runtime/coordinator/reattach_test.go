package coordinator

import (
	"slices"
	"testing"
	"time"

	"brood/models/engine"
	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/message"
)

// reattached is a core that is resumed from the log of a run of two workers, and what each of them holds.
type reattached struct {
	*testRun
	cp   event.Checkpoint // the last commit, without files
	held [2]*message.Held
	own  [2][]engine.Member
}

const testPatience = 3 * time.Second

// newReattached commits a round in a run of two workers, and resumes its log in a new core.
func newReattached(t *testing.T, change func(*Config)) *reattached {
	t.Helper()
	p := newTestRun(t, 2, change)
	first := [2]message.Done{p.done(0), p.done(1)}
	p.step(first[0])
	p.step(first[1])
	r := &reattached{}
	cfg := p.core.cfg
	var plan event.Plan
	for _, rec := range p.log {
		switch {
		case rec.Plan != nil:
			plan = *rec.Plan
		case rec.Commit != nil:
			c := rec.Commit
			r.cp = event.Checkpoint{Round: c.To, Epoch: c.Epoch, Roster: plan.New, Algorithm: plan.Algorithm, Hash: c.Hash,
				Progress: c.Progress, Timeline: plan.Timeline}
		}
	}
	for w, d := range first {
		r.own[w] = plan.New.Hosted(w)
		r.held[w] = &message.Held{Committed: message.Committed{Epoch: r.cp.Epoch, Round: r.cp.Round}, Digests: d.Digests}
		for _, x := range first[1-w].Digests {
			if _, of := x.Parts(); of != "shared" {
				r.held[w].Mirrored = append(r.held[w].Mirrored, x)
			}
		}
	}
	cfg.Resume, cfg.Epoch, cfg.Cause, cfg.Edits = &r.cp, r.cp.Epoch, event.CauseResume, nil
	saved := r.cp
	saved.Round, saved.Hash = 0, "saved"
	cfg.Reattach = &Reattach{Plan: plan, Saved: &saved, Patience: testPatience}
	core, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.testRun = &testRun{t: t, core: core, now: p.now, sent: map[int][]any{}}
	r.step(Tick{})
	return r
}

func (r *reattached) join(w int) []Effect { return r.step(Joined{Worker: w, Held: r.held[w]}) }

// plan returns the plan that was sent; nil if none was.
func (r *reattached) plan() *event.Plan {
	if r.core.plan == nil {
		return nil
	}
	return &r.core.plan.Plan
}

// wait lets the patience of the core pass, and reports whether it orders the state.
func (r *reattached) wait() bool {
	r.now = r.now.Add(testPatience)
	return slices.Contains(r.step(Tick{}), Effect(Recompute{}))
}

// trains checks that the run continues after the committed round.
func (r *reattached) trains() {
	r.t.Helper()
	r.ready()
	d := [2]message.Done{r.done(0), r.done(1)}
	r.step(d[0])
	r.step(d[1])
	if at, _ := r.core.Committed(); at <= r.cp.Round || r.core.Phase() != event.Training {
		r.t.Errorf("committed round %d, %s", at, r.core.Phase())
	}
}

func mirror(c *Config) { c.OnLoss = OnLossMirror }

// TestReattach: once the workers of an earlier process hold all rows of the last commit, the first plan continues from
// them, and no round is repeated.
func TestReattach(t *testing.T) {
	r := newReattached(t, nil)
	r.join(1)
	if p := r.plan(); p != nil {
		t.Fatalf("with one of two workers: %+v", p)
	}
	r.join(0)
	p := r.plan()
	if p == nil || p.From != event.Workers || p.At != r.cp.Round || p.Base != r.cp.Epoch ||
		len(p.Lost)+len(p.Mirrored) > 0 || !slices.Equal(p.Old.Owner, r.cp.Roster.Owner) || p.Cause != event.CauseResume {
		t.Fatalf("the first plan: %+v", p)
	}
	r.trains()
	for _, rec := range r.log {
		if rec.Alert != nil || rec.Checkpoint != nil {
			t.Errorf("the log has %+v", rec)
		}
	}
}

// TestReattachLosesAWorker: a worker that is lost before all are ready may return with its rows.
func TestReattachLosesAWorker(t *testing.T) {
	r := newReattached(t, nil)
	r.join(0)
	r.join(1)
	r.step(message.Ready{Worker: 0, Epoch: r.core.epoch})
	r.step(Lost{1, "it is gone"})
	if r.plan() != nil {
		t.Fatal("a plan without all rows")
	}
	r.join(1)
	if p := r.plan(); p == nil || p.From != event.Workers {
		t.Fatalf("after it returned: %+v", p)
	}
	r.trains()
}

// TestReattachFromMirrors: rows of a worker that does not return come from its mirror, after a while. Other policies do
// not use mirrors.
func TestReattachFromMirrors(t *testing.T) {
	r := newReattached(t, mirror)
	r.join(0)
	if r.plan() != nil {
		t.Fatal("it does not wait for the worker itself")
	}
	if r.wait() {
		t.Error("it recomputes what a mirror holds")
	}
	if p := r.plan(); p == nil || p.From != event.Workers || !slices.Equal(p.Mirrored, r.own[1]) ||
		!slices.Equal(p.New.Workers(), []int{0}) {
		t.Errorf("the first plan: %+v", p)
	}
	if r = newReattached(t, nil); r.join(0) == nil && !r.wait() {
		t.Error("without mirrors it does not recompute the state")
	}
}

// TestReattachRecomputes: whatever is wrong with the rows of the workers, the shell recomputes the state, and the run
// continues from it.
func TestReattachRecomputes(t *testing.T) {
	other := func(d message.Digests, row int) message.Digests {
		d = slices.Clone(d)
		d[row].Sum[31]++
		return d
	}
	for name, c := range map[string]struct {
		change func(r *reattached)
		waits  bool // it recomputes only after its patience
	}{
		"another row":        {change: func(r *reattached) { r.held[1].Digests = other(r.held[1].Digests, len(r.held[1].Digests)-1) }},
		"another shared row": {change: func(r *reattached) { r.held[1].Digests = other(r.held[1].Digests, 0) }},
		"no rows":            {func(r *reattached) { r.held[1] = nil }, true},
		"another round":      {func(r *reattached) { r.held[1].Round++ }, true},
		"another epoch":      {func(r *reattached) { r.held[1].Epoch++ }, true},
		"rows are missing":   {func(r *reattached) { r.held[1].Digests = r.held[1].Digests[:2] }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReattached(t, nil)
			c.change(r)
			r.join(0)
			at := slices.Contains(r.join(1), Effect(Recompute{}))
			if at == c.waits || c.waits && !r.wait() {
				t.Fatalf("recomputed at once: %t, want %t", at, !c.waits)
			}
			if r.plan() != nil || r.core.granted != r.cp.Round {
				t.Fatal("it continues before the state is there")
			}
			cp := r.cp
			cp.Files = []event.File{{Path: "f"}}
			r.step(Recomputed{Checkpoint: cp})
			if p := r.plan(); p == nil || p.From != event.Saved || r.core.plan.Checkpoint.Files[0].Path != "f" {
				t.Fatalf("the first plan: %+v", p)
			}
			r.trains()
		})
	}
}

// TestReattachWhileRecomputing: rows that arrive before the state is recomputed are continued from. If a worker is lost
// before all are ready, the recomputed state is used, in whichever order the two happen.
func TestReattachWhileRecomputing(t *testing.T) {
	for _, c := range []struct {
		recomputed, lost bool // before the plan is ready
		from             event.Source
	}{{false, false, event.Workers}, {true, false, event.Workers}, {true, true, event.Saved}} {
		r := newReattached(t, nil)
		r.join(0)
		if !r.wait() {
			t.Fatal("it does not recompute the state")
		}
		r.join(1)
		if p := r.plan(); p == nil || p.From != event.Workers {
			t.Fatalf("%+v: the plan is %+v", c, p)
		}
		cp := r.cp
		cp.Files = []event.File{{Path: "f"}}
		if c.recomputed {
			r.step(Recomputed{Checkpoint: cp})
		}
		if c.lost {
			r.step(Lost{1, "it is gone"})
			r.join(1)
		}
		if p := r.plan(); p == nil || p.From != c.from {
			t.Fatalf("%+v: the plan is %+v", c, p)
		}
		r.trains()
		r.step(Recomputed{Checkpoint: cp})
	}
}

// TestReattachRefuses: an accepted command of the log that can no longer be applied is reported.
func TestReattachRefuses(t *testing.T) {
	r := newReattached(t, func(c *Config) {
		c.Asked.Commands = []event.Accepted{{Command: event.Command{ID: 7, Algorithm: "no-such-algorithm"}}}
	})
	r.join(0)
	r.join(1)
	if !slices.ContainsFunc(r.log, func(rec event.Record) bool {
		return rec.Alert != nil && rec.Alert.Kind == event.AlertRejected
	}) {
		t.Error("nothing is reported")
	}
}

// TestReattachLate: an edit that was in the log but not committed takes effect after the first plan, as after a
// recomputation.
func TestReattachLate(t *testing.T) {
	late := event.Edit{At: 5, Algorithm: "parle", Knob: "eta", Expr: "0.01", By: "flag"}
	r := newReattached(t, nil)
	cfg := r.core.cfg
	cfg.Late = []event.Edit{late}
	core, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.testRun = &testRun{t: t, core: core, now: r.now, sent: map[int][]any{}}
	r.join(0)
	r.join(1)
	r.trains()
	if !slices.ContainsFunc(core.edits, late.Same) &&
		!slices.ContainsFunc(core.edits, func(e event.Edit) bool { return e.Expr == "0.01" }) {
		t.Errorf("the edits are %v", core.edits)
	}
}

// TestHeldTwice: a worker that has joined cannot report rows.
func TestHeldTwice(t *testing.T) {
	p := newTestRun(t, 2, func(c *Config) { c.Lookup = catalog.Lookup })
	p.step(message.Ready{Worker: 1, Epoch: p.core.epoch, Held: &message.Held{}})
	if !slices.Equal(p.evicted, []int{1}) {
		t.Errorf("evicted: %v", p.evicted)
	}
}
