package view

import (
	"testing"

	"brood/optim/collective"
	"brood/runtime/event"
)

// TestRecentTraffic: recent bytes per round are averaged over the current workers and members only; a plan
// that moves no member keeps them.
func TestRecentTraffic(t *testing.T) {
	plan := func(epoch uint32, at uint64, was, is collective.Roster) event.Record {
		return event.Record{At: 1e9, Plan: &event.Plan{Epoch: epoch, At: at, Algorithm: "parle", Old: was, New: is}}
	}
	commit := func(epoch uint32, to uint64, bytes int64) event.Record {
		return event.Record{At: 1e9, Commit: &event.Commit{
			Epoch:    epoch,
			To:       to,
			Rounds:   10,
			Nanos:    1e9,
			Sent:     map[collective.Op]int64{"couple": bytes},
			Progress: event.Progress{Rounds: to},
		}}
	}
	three, two := collective.Place(collective.IDs(3), []int{0, 1, 2}), collective.Place(collective.IDs(3), []int{0, 1})
	v := New()
	per := func() int64 {
		ops, _, rounds := v.Ledger.Recent()
		if len(ops) == 0 {
			return 0
		}
		return ops[0].Sent / int64(rounds)
	}
	fold(v, []event.Record{plan(1, 0, collective.Roster{}, three), commit(1, 10, 8000), plan(2, 10, three, three),
		commit(2, 20, 8000)})
	if got := per(); got != 800 || len(v.Ledger.Ring) != 2 {
		t.Errorf("three workers send %d bytes a round, want 800", got)
	}
	if got := v.Ledger.Waiting(); got != 0 {
		t.Errorf("a log that does not count it says that a worker waits %g of the time", got)
	}
	late := commit(2, 20, 8000)
	late.Commit.Waited = 5e8
	fold(v, []event.Record{late})
	if got := v.Ledger.Waiting(); got != .5/3 {
		t.Errorf("a worker waits %g of the time, want half of the last of three commits", got)
	}
	v.Ledger.Ring = v.Ledger.Ring[:2]
	fold(v, []event.Record{plan(3, 20, three, two)})
	if got := per(); got != 0 {
		t.Errorf("two workers sent nothing yet, and it says %d", got)
	}
	fold(v, []event.Record{commit(3, 30, 5000)})
	if got := per(); got != 500 {
		t.Errorf("two workers send %d bytes a round, want 500", got)
	}
	if n := len(v.Ledger.Ring); n != 3 {
		t.Errorf("%d commits are known, want all 3", n)
	}
}
