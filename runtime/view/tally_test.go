package view_test

import (
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/view"
)

// TestTally: a log with a rollback, a death before the rollback commits, a recovery from a mirror that a second death
// replaces, and a process that was killed has the counters that are counted by hand below.
func TestTally(t *testing.T) {
	roster := collective.Roster{Members: []engine.Member{0, 1, 2}, Owner: []int{0, 1, 2}}
	var rs []event.Record
	put := func(r event.Record) {
		r.At = int64(1+len(rs)) * 1e9
		rs = append(rs, r)
	}
	epoch := uint32(0)
	plan := func(at uint64, from event.Source, mirrored ...engine.Member) {
		epoch++
		put(event.Record{Plan: &event.Plan{Epoch: epoch, At: at, From: from, Old: roster, New: roster, Algorithm: "sample",
			Mirrored: mirrored}})
	}
	commit := func(to, rounds uint64, nanos int64) {
		put(event.Record{Commit: &event.Commit{Epoch: epoch, To: to, Rounds: rounds, Nanos: nanos,
			Progress: event.Progress{Rounds: to, Steps: 3 * to, Samples: 96 * to, Epochs: float64(to) / 10}}})
	}
	save := func(at uint64) {
		put(event.Record{Checkpoint: &event.Checkpoint{Round: at, Progress: event.Progress{Rounds: at, Steps: 3 * at,
			Samples: 96 * at, Epochs: float64(at) / 10}}})
	}
	lost := func(level event.Level) {
		put(event.Record{Alert: &event.Alert{Level: level, Kind: event.AlertLostWorker, Member: engine.None}})
	}
	plan(0, event.Fresh)
	commit(10, 10, 10*1e6) // at most 1 ms each
	save(10)
	commit(20, 10, 10*2e6) // at most 2.5 ms each
	lost(event.LevelWarning)
	plan(10, event.Saved)
	lost(event.LevelWarning)
	lost(event.LevelError) // no worker is left
	plan(10, event.Saved)  // the first rollback has not committed anything: this is the same one
	commit(15, 5, 5*1e9)
	commit(25, 10, 10*1e9) // rounds 16 to 20 are repeated, 21 to 25 are new
	save(25)
	lost(event.LevelWarning)
	plan(25, event.Workers, 2)
	lost(event.LevelWarning)
	plan(25, event.Workers, 1, 2)
	commit(30, 5, 5*400*1e9) // longer than any bound
	plan(25, event.Saved)    // the process was killed, and the next one resumed
	commit(31, 6, 6*1e6)
	for i := range rs {
		if c := rs[i].Commit; c != nil && c.To == 15 {
			c.Audited = []event.Audit{{Of: 1, By: 2}, {Of: 2, By: 0}}
		}
	}
	v := view.New()
	for _, r := range rs {
		v.Apply(r)
	}
	want := view.Tally{
		Done:      event.Progress{Rounds: 46, Steps: 3 * 46, Samples: 96 * 46},
		Repeated:  5 + 5 + 5,
		Rollbacks: 2,
		Lost:      4,
		Mirrored:  2,
		SavedAt:   12e9,
		Audits:    2,
		Nanos:     10*1e6 + 10*2e6 + 15*1e9 + 5*400*1e9 + 6*1e6,
		Furthest:  31,
	}
	want.Durations[0], want.Durations[1], want.Durations[9], want.Durations[len(view.RoundBounds)] = 16, 10, 15, 5
	got := v.Tally
	if x := got.Done.Epochs; x < 4.6-1e-9 || x > 4.6+1e-9 {
		t.Errorf("%g epochs", x)
	}
	got.Done.Epochs = 0
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	text, err := cbor.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back view.View
	if err := cbor.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back.Tally, v.Tally) {
		t.Errorf("encoded and read again: %v, %+v", err, back.Tally)
	}
}
