package view

import "brood/runtime/event"

// Tally counts what a run did, for monitoring. Its counters never decrease: a rollback does not undo them, and a
// resumed run continues them, since they are computed from the log.
type Tally struct {
	// work of all commits; rounds that were committed again after a rollback count again
	Done event.Progress `cbor:"0,keyasint"`
	// part of Done.Rounds that had been committed before
	Repeated  uint64 `cbor:"1,keyasint"`
	Rollbacks uint64 `cbor:"2,keyasint"` // plans that continue from a round before the last commit
	Lost      uint64 `cbor:"3,keyasint"` // losses of workers; a worker that returns and is lost again counts again
	Mirrored  uint64 `cbor:"4,keyasint"` // members of lost workers that continued from a mirror
	SavedAt   int64  `cbor:"5,keyasint"` // Unix nanoseconds of the newest checkpoint; 0: none yet

	// number of rounds by duration: element i counts those of at most RoundBounds[i], the last element all longer ones
	Durations [len(RoundBounds) + 1]uint64 `cbor:"6,keyasint"`
	Nanos     int64                        `cbor:"7,keyasint"` // duration of all counted rounds

	Audits   uint64 `cbor:"10,keyasint,omitempty"` // parts of committed rounds that a second worker executed
	Furthest uint64 `cbor:"8,keyasint"`            // highest committed round
	// members that continue from a mirror as soon as the current plan commits
	Moving uint64 `cbor:"9,keyasint"`
}

// RoundBounds are the upper bounds of [Tally.Durations], in nanoseconds.
var RoundBounds = [...]int64{1e6, 2.5e6, 5e6, 1e7, 2.5e7, 5e7, 1e8, 2.5e8, 5e8, 1e9, 2.5e9, 5e9, 1e10, 3e10, 6e10, 3e11}

// alert counts lost workers: each has a warning. The error that no worker is left is not another loss.
func (t *Tally) alert(a *event.Alert) {
	if a.Kind == event.AlertLostWorker && a.Level == event.LevelWarning {
		t.Lost++
	}
}

// plan counts a rollback. at is the last committed round. A plan may be replaced before a commit, so its mirrored
// members are only noted.
func (t *Tally) plan(p *event.Plan, at uint64) {
	if p.At < at {
		t.Rollbacks++
	}
	t.Moving = uint64(len(p.Mirrored))
}

// commit counts the work d of a commit.
func (t *Tally) commit(c *event.Commit, d event.Progress) {
	t.Done.Rounds += d.Rounds
	t.Done.Steps += d.Steps
	t.Done.Samples += d.Samples
	t.Done.Evaluations += d.Evaluations
	t.Done.Epochs += d.Epochs
	if first := saturatingSub(c.To, c.Rounds); first < t.Furthest {
		t.Repeated += min(t.Furthest, c.To) - first
	}
	t.Furthest = max(t.Furthest, c.To)
	t.Audits += uint64(len(c.Audited))
	t.Mirrored, t.Moving = t.Mirrored+t.Moving, 0
	if c.Rounds == 0 {
		return
	}
	each, i := c.Nanos/int64(c.Rounds), 0
	for i < len(RoundBounds) && each > RoundBounds[i] {
		i++
	}
	t.Durations[i] += c.Rounds
	t.Nanos += c.Nanos
}
