package view

import (
	"testing"

	"brood/optim/collective"
	"brood/runtime/event"
)

// TestTraffic: the view has the bytes per round of each operation over all rounds, also beyond the last commits, and
// their excess over the formula; a rollback removes later ones.
func TestTraffic(t *testing.T) {
	v := New()
	commit := func(to uint64, sent, predicted int64) {
		v.Apply(event.Record{Commit: &event.Commit{To: to, Rounds: 4, Nanos: 1e6,
			Sent:      map[collective.Op]int64{"gather": sent, "move": 0},
			Predicted: map[collective.Op]int64{"gather": predicted, "move": 0}, Progress: event.Progress{Rounds: to}}})
	}
	for i := range uint64(1000) {
		commit(4*i+4, 400, 400)
	}
	if len(v.Traffic) != 1 || v.Traffic[0].Name != "gather" {
		t.Fatalf("traffic of %d operations, want gather alone: move sent nothing, and nothing beyond the formula",
			len(v.Traffic))
	}
	for i, b := range v.Traffic[0].Columns(Whole, Even(1, 4001, 10)) {
		if b.Min != 100 || b.Max != 100 || b.Count != 100 {
			t.Errorf("column %d has %+v, want 100 commits with 100 bytes a round", i, b)
		}
	}
	commit(4004, 480, 400)
	if s := find(v.Traffic, Excess); s == nil || s.all.last != 20 {
		t.Errorf("80 bytes too many in 4 rounds are an excess of %+v a round", s)
	}
	commit(4008, 400, 400)
	if s := find(v.Traffic, Excess); s.all.last != 0 {
		t.Errorf("the excess stays %g when all is well again", s.all.last)
	}
	before := v.Clone()
	v.back(2000)
	if _, hi := v.Traffic[0].Rounds(); hi != 2001 {
		t.Errorf("after the way back to round 2000 the traffic ends before %d", hi)
	}
	if _, hi := before.Traffic[0].Rounds(); hi != 4009 {
		t.Errorf("the clone's traffic ends before %d", hi)
	}
}
