package host

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/runtime/event"
)

// TestRollbackToSameState: after a rollback a run reaches the state that it had before, and saves it again. The model
// is loaded from the second checkpoint of that state, not from the first, which differs only in its epoch and precedes
// the rollback.
func TestRollbackToSameState(t *testing.T) {
	home := t.TempDir()
	once, twice := filepath.Join(home, "once"), filepath.Join(home, "twice")
	train(t, once, prepare(t, tiny(6)), nil, nil)
	var all, again []event.Record
	var last event.Checkpoint
	for _, rec := range records(t, once) {
		if rec.Checkpoint != nil {
			last = *rec.Checkpoint
			early := last
			early.Round = 2
			all = append(all, event.Record{Checkpoint: &early})
		}
		if c := rec.Commit; c != nil && c.To > 2 {
			later := *c
			later.Epoch = 2
			again = append(again, event.Record{Commit: &later})
		}
		if rec.State == nil || rec.State.Phase != event.Finished {
			all = append(all, rec)
		}
	}
	if last.Round != 6 {
		t.Fatalf("the newest checkpoint has round %d, want 6", last.Round)
	}
	all = append(all, event.Record{Plan: &event.Plan{Epoch: 2, At: 2, From: event.Saved, Cause: "rollback",
		Old: last.Roster, New: last.Roster,
		OldAlg: last.Algorithm, Algorithm: last.Algorithm, Timeline: last.Timeline}})
	last.Epoch = 2
	killed(t, twice, once, append(append(all, again...), event.Record{Checkpoint: &last}))
	round, x := centreOf(t, twice)
	if _, want := centreOf(t, once); round != 6 || !slices.Equal(x, want) {
		t.Errorf("the centre differs after round %d", round)
	}
}

// TestRollbackWithoutCommits: a run that was killed right after a rollback is at the round of the rollback. It resumes
// with a schedule that ends later, and has none of the rounds that were taken back.
func TestRollbackWithoutCommits(t *testing.T) {
	home := t.TempDir()
	once, dir := filepath.Join(home, "once"), filepath.Join(home, "twice")
	train(t, once, prepare(t, tiny(60)), nil, nil)
	var all []event.Record
	for _, rec := range records(t, once) {
		if rec.State == nil || rec.State.Phase != event.Finished {
			all = append(all, rec)
		}
	}
	back := *all[slices.IndexFunc(all, func(r event.Record) bool { return r.Plan != nil })].Plan
	back.Epoch, back.Cause, back.Old, back.OldAlg = back.Epoch+1, event.CauseRollback, back.New, back.Algorithm
	killed(t, dir, once, append(all, event.Record{Plan: &back}))
	if _, err := (*Own)(nil).Past(dir, 30); err == nil ||
		!strings.Contains(err.Error(), "round 30 is after the last committed round 0") {
		t.Errorf("a round that was taken back: %v", err)
	}
	o := Options{By: "test", Limit: event.Limit{Rounds: 60}, Set: []event.Setting{{Knob: "eta", Expr: "linear:1..0.1@40"}}}
	r, err := Order{Dir: dir, Resume: true, Options: o}.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Session.Close()
}

// centreOf returns the last round of a session and its centre.
func centreOf(t *testing.T, dir string) (round uint64, params []float32) {
	t.Helper()
	p, err := (*Own)(nil).Past(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	w, err := p.Recompute(t.Context(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Free()
	x, _, err := w.Centre(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now, err := w.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now.Round, slices.Clone(x.Row(0))
}
