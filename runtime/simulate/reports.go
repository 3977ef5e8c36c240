package simulate

import (
	"math"
	"slices"
	"strconv"

	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/coordinator"
	"brood/runtime/message"
)

// said is what a deputy reported, and where it stood.
type said struct {
	n          *node
	report     message.Report
	at         int64
	passed     int
	since      int64
	work, took int64
}

// speak reports for those that are not simulated once all deputies have. Nobody has passed since the first of them did
// in an exchange in which all have. The caller holds the lock.
func (w *world) speak(s said) {
	key := keyOf(s.report)
	if w.said[key] == nil {
		w.said[key] = make([]said, len(w.nodes))
	}
	all := w.said[key]
	all[s.n.index] = s
	if slices.ContainsFunc(all, func(s said) bool { return s.n == nil }) {
		return
	}
	delete(w.said, key)
	var event func(worker int) coordinator.Event
	switch s.report.(type) {
	case message.Ready:
		event = func(worker int) coordinator.Event {
			r := all[w.crowd.nearest[worker]].report.(message.Ready)
			r.Worker = worker
			return coordinator.Report{Report: r}
		}
	case message.Done:
		event = w.others(all)
	default: // of what failed the deputy alone tells
		return
	}
	began := make([]lag, len(all))
	for i, s := range all {
		began[i] = lag{s.at - s.took, true}
	}
	times := make([]timed, 0, w.cfg.Workers-len(w.nodes))
	for id := range w.cfg.Workers {
		if w.at[id] != nil {
			continue
		}
		s := &all[w.crowd.nearest[id]]
		var at int64
		if w.own {
			at = max(w.clocks[id], s.since) + int64(w.cfg.Control)
		} else {
			at, _ = w.crowd.between(id, began)
		}
		at += w.computes(id, s.passed, s.work)
		times = append(times, timed{max(at, w.now), int32(id)})
	}
	w.serial++
	w.queue.together(times, w.serial, event)
}

// others makes reports of those that are not simulated of their deputies'. What it gives is good until the next.
func (w *world) others(all []said) func(worker int) coordinator.Event {
	each, first := w.shares(all)
	theirs := make([]message.Done, len(all))
	scored := make([]bool, len(all)) // they have a part of the test set, or the centre's digest
	for i, s := range all {
		d := s.report.(message.Done)
		d.Sent, d.Predicted, d.Points, d.Notes = each, nil, nil, nil
		theirs[i], scored[i] = d, slices.ContainsFunc(d.Tests, message.Test.HasPart)
	}
	least, alike := slices.Index(w.at, nil), new(coordinator.Alike)
	return func(worker int) coordinator.Event {
		index := w.crowd.nearest[worker]
		if worker != least && !scored[index] {
			alike.Worker, alike.Of = worker, &theirs[index]
			return alike
		}
		d := w.disguised(theirs[index], worker)
		if worker == least {
			d.Sent = first
		}
		return coordinator.Report{Report: d}
	}
}

// heard is what reports of several workers have in common.
type heard struct {
	done bool
	of   uint64
}

func keyOf(r message.Report) heard {
	switch r := r.(type) {
	case message.Done:
		return heard{true, r.From}
	case message.Ready:
		return heard{false, uint64(r.Epoch)}
	}
	return heard{true, math.MaxUint64}
}

// shares is what each worker that is not simulated sent: the formula's bytes without those of the deputies, dealt
// evenly, and the first what is left.
func (w *world) shares(all []said) (each, first collective.Ledger) {
	rest, others := collective.Ledger{}, int64(w.cfg.Workers-len(w.nodes))
	for _, s := range all {
		if d, ok := s.report.(message.Done); ok {
			rest.Add(d.Predicted)
			for op, b := range d.Sent {
				rest[op] -= b
			}
		}
	}
	each, first = collective.Ledger{}, collective.Ledger{}
	for op, b := range rest {
		b = max(0, b) // else the core says that a formula is wrong
		each[op], first[op] = b/others, b/others+b%others
	}
	return each, first
}

// disguised makes a deputy's report one of another worker: of its members, who are as many, and of its part of the test
// set.
func (w *world) disguised(d message.Done, id int) message.Done {
	host := w.hosting.Of(id)
	d.Digests = slices.Clone(d.Digests)
	at := 0 // among digests of members' rows
	for i := range d.Digests {
		if block, of := d.Digests[i].Parts(); of != "shared" {
			d.Digests[i].Row = block + "/" + strconv.Itoa(int(host[at%len(host)]))
			at++
		}
	}
	d.Tests = w.tests(d.Tests, id-d.Worker)
	d.Worker = id
	return d
}

// tests are a deputy's of the worker that lies so many further: of its part of the test set.
func (w *world) tests(of []message.Test, further int) []message.Test {
	tests := slices.Clone(of)
	for i := range tests {
		tests[i].Centre = ""
		tests[i].Chunks = slices.Clone(tests[i].Chunks)
		for j := range tests[i].Chunks {
			c := &tests[i].Chunks[j]
			c.Index += further
			c.Samples = int64(min(optim.ScoreChunk, w.cfg.Core.Tests-c.Index*optim.ScoreChunk))
			c.Correct = min(c.Correct, c.Samples)
		}
	}
	return tests
}
