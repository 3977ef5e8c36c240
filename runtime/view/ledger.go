package view

import (
	"maps"
	"math"
	"slices"
	"time"

	"brood/optim/collective"
	"brood/runtime/event"
)

// Rates are the rates of the run per second of training time, exponentially smoothed over [smoothing].
type Rates struct {
	Rounds  float64 `cbor:"0,keyasint"`
	Steps   float64 `cbor:"1,keyasint"`
	Samples float64 `cbor:"2,keyasint"`
	Epochs  float64 `cbor:"3,keyasint"`
	Bytes   float64 `cbor:"4,keyasint"` // payload sent by all workers
	Weight  float64 `cbor:"5,keyasint"` // discounted seconds that the means cover; 0 before the first commit
}

const smoothing = 5 * time.Second

// observe adds the work d and the bytes of dt seconds. The means are bias-corrected: early ones are plain means.
func (r *Rates) observe(dt float64, d event.Progress, bytes int64) {
	if dt <= 0 {
		return
	}
	keep := math.Exp(-dt / smoothing.Seconds())
	w := r.Weight * keep
	mean := func(old *float64, amount float64) { *old = (*old*w + amount) / (w + dt) }
	mean(&r.Rounds, float64(d.Rounds))
	mean(&r.Steps, float64(d.Steps))
	mean(&r.Samples, float64(d.Samples))
	mean(&r.Epochs, d.Epochs)
	mean(&r.Bytes, float64(bytes))
	r.Weight = w + dt
}

// Ledger is the traffic of the run: the payload of committed rounds by operation, and all other bytes on the wire.
type Ledger struct {
	Ops        []Bytes  `cbor:"0,keyasint"` // ascending by name
	Evaluation []Bytes  `cbor:"1,keyasint"` // evaluation and probes, Predicted is 0
	Aborted    int64    `cbor:"2,keyasint"`
	Overhead   int64    `cbor:"3,keyasint"`
	Ring       []Commit `cbor:"4,keyasint"` // the last commits, oldest first
	Since      uint32   `cbor:"5,keyasint"` // epoch of the last plan that changed the members or their placement
}

// Bytes of one operation, summed over workers.
type Bytes struct {
	Op        collective.Op `cbor:"0,keyasint"`
	Sent      int64         `cbor:"1,keyasint"`
	Predicted int64         `cbor:"2,keyasint"`
}

// Commit is the traffic of one commit.
type Commit struct {
	To        uint64  `cbor:"0,keyasint"`
	Rounds    uint64  `cbor:"1,keyasint"`
	Nanos     int64   `cbor:"2,keyasint"`
	Sent      int64   `cbor:"3,keyasint"`
	Predicted int64   `cbor:"4,keyasint"`
	Overhead  int64   `cbor:"5,keyasint"`
	Ops       []Bytes `cbor:"6,keyasint"`
	Epoch     uint32  `cbor:"7,keyasint"`
	Waited    int64   `cbor:"8,keyasint,omitempty"` // part of Nanos spent waiting, see [event.Commit]
}

const maxRing = 256

// add adds a commit and returns its payload bytes.
func (l *Ledger) add(c *event.Commit) (sent int64) {
	k := Commit{To: c.To, Rounds: c.Rounds, Nanos: c.Nanos, Overhead: c.Overhead, Epoch: c.Epoch, Waited: c.Waited}
	for _, op := range slices.Sorted(maps.Keys(union(c.Sent, c.Predicted))) {
		b := Bytes{op, c.Sent[op], c.Predicted[op]}
		k.Ops = append(k.Ops, b)
		k.Sent, k.Predicted = k.Sent+b.Sent, k.Predicted+b.Predicted
		count(&l.Ops, b)
	}
	for _, op := range slices.Sorted(maps.Keys(c.Evaluation)) {
		count(&l.Evaluation, Bytes{Op: op, Sent: c.Evaluation[op]})
	}
	l.Aborted, l.Overhead = l.Aborted+c.Aborted, l.Overhead+c.Overhead
	if l.Ring = append(l.Ring, k); len(l.Ring) > maxRing {
		l.Ring = slices.Delete(slices.Clone(l.Ring), 0, maxRing/2)
	}
	return k.Sent
}

func union(a, b map[collective.Op]int64) map[collective.Op]bool {
	out := map[collective.Op]bool{}
	for op := range a {
		out[op] = true
	}
	for op := range b {
		out[op] = true
	}
	return out
}

func count(to *[]Bytes, b Bytes) {
	i, ok := slices.BinarySearchFunc(*to, b.Op, func(x Bytes, op collective.Op) int {
		if x.Op < op {
			return -1
		} else if x.Op > op {
			return 1
		}
		return 0
	})
	if !ok {
		*to = slices.Insert(*to, i, Bytes{Op: b.Op})
	}
	(*to)[i].Sent += b.Sent
	(*to)[i].Predicted += b.Predicted
}

func (l *Ledger) clone() Ledger {
	c := *l
	c.Ops, c.Evaluation, c.Ring = slices.Clone(l.Ops), slices.Clone(l.Evaluation), slices.Clip(l.Ring)
	return c
}

// Total returns the payload of all committed rounds.
func (l *Ledger) Total() (t Bytes) {
	for _, b := range l.Ops {
		t.Sent, t.Predicted = t.Sent+b.Sent, t.Predicted+b.Predicted
	}
	return t
}

// Recent sums the commits in Ring with the current placement of members. It returns the bytes by operation, ascending
// by name, the overhead in bytes, and the number of rounds.
func (l *Ledger) Recent() (ops []Bytes, overhead int64, rounds uint64) {
	for _, c := range l.Ring {
		if c.Epoch < l.Since {
			continue
		}
		for _, b := range c.Ops {
			count(&ops, b)
		}
		overhead, rounds = overhead+c.Overhead, rounds+c.Rounds
	}
	return ops, overhead, rounds
}

// Waiting returns the share of the time of these commits in which a worker waited for frames of others, on average; 0
// if it was not measured.
func (l *Ledger) Waiting() float64 {
	var nanos, waited int64
	for _, c := range l.Ring {
		if c.Epoch >= l.Since {
			nanos, waited = nanos+c.Nanos, waited+c.Waited
		}
	}
	return float64(waited) / float64(max(1, nanos))
}
