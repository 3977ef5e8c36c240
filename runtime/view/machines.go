package view

import (
	"maps"
	"math"
	"slices"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
)

// Series of the run's speed, of each commit over the rounds: a second of its slowest worker.
const (
	RoundsASecond  = "rounds/s"
	SamplesASecond = "samples/s"
)

// Samples is the series of the machines that has what a process's members had of the samples a second. The view works
// it out: rounds are done together, so that a member has its share.
const Samples event.Measure = "samples"

// Between is the series of the machines that has what is sent over each link in bytes a second, by [LinkOf]. The view
// works it out: what one worker sends to all is in every log of a fleet, what it sends to one other in newer ones, and
// what all send to all is known where every process tells it.
const Between event.Measure = "between"

// mostEnds bounds the worker numbers whose links are kept.
const mostEnds = 1<<15 - 1

// LinkOf is whose values [Between] has: of the link from a worker to another, either of them [event.Every] for all.
func LinkOf(from, to int) engine.Member { return engine.Member(from+1)<<16 | engine.Member(to+1) }

// LinkEnds is the link whose values [Between] has under an id.
func LinkEnds(id engine.Member) (from, to int) { return int(id>>16) - 1, int(id&(1<<16-1)) - 1 }

// between adds what was sent over the links.
func (v *View) between(r *event.Machines) {
	sent, known := map[engine.Member]float64{}, true
	total, workers := 0.0, 0
	for _, m := range r.Of {
		if m.Worker < 0 || m.Worker >= mostEnds {
			continue
		}
		x, ok := m.Values[event.Sent]
		if known, workers = known && ok, workers+1; ok {
			sent[LinkOf(m.Worker, event.Every)] = x
			total += x
		}
		for to, x := range m.To {
			if to >= 0 && to < mostEnds && to != m.Worker {
				sent[LinkOf(m.Worker, to)] = x
			}
		}
	}
	if known && workers > 0 {
		sent[LinkOf(event.Every, event.Every)] = total
	}
	p := &event.Points{Round: r.Round, Members: slices.Sorted(maps.Keys(sent))}
	for _, id := range p.Members {
		p.Values = append(p.Values, sent[id])
	}
	v.keep(Between, p)
}

// Process is whose values a series of the machines has: of the process of a worker, or of [event.Here].
func Process(worker int) engine.Member { return engine.Member(worker + 1) }

// A series of the machines has few buckets: they are drawn small, and there are many of them.
const (
	machineBudget = 1 << 13
	machineMost   = 512
)

func machineLimit(processes int) uint64 {
	return uint64(min(max(machineBudget/max(1, processes), minBuckets), machineMost))
}

// MachineRoom predicts the bytes that a view holds of the machines of so many processes after so many rounds, and what
// a snapshot has of them.
func MachineRoom(processes int, rounds float64) (held, encoded int64) {
	held, encoded = Room(processes, min(rounds, float64(machineLimit(processes))))
	n := int64(len(event.Measures) + 1)
	return n * held, n * encoded
}

// MachinesOf is the series of a measure of the machines, nil where nobody told it.
func (v *View) MachinesOf(m event.Measure) *Series { return find(v.Machines, string(m)) }

func (v *View) machines(r *event.Machines) {
	v.Processes = v.Processes[:0:0]
	for _, m := range r.Of {
		v.Processes = append(v.Processes, m.Worker)
	}
	slices.Sort(v.Processes)
	for _, of := range event.Measures {
		v.measured(r, of.Measure, func(m event.Machine) (float64, bool) {
			x, ok := m.Values[of.Measure]
			return x, ok
		})
	}
	if v.Rates.Weight > 0 {
		v.measured(r, Samples, func(m event.Machine) (float64, bool) {
			n := v.Hosted(m.Worker, v.Processes)
			return v.Rates.Samples * float64(n) / float64(max(1, len(v.Members().Members))), n > 0
		})
	}
	v.between(r)
}

// measured adds what the processes have of a measure.
func (v *View) measured(r *event.Machines, name event.Measure, of func(event.Machine) (float64, bool)) {
	p := &event.Points{Round: r.Round}
	for _, m := range r.Of {
		if x, ok := of(m); ok && m.Worker >= event.Here && m.Worker < math.MaxInt32 {
			p.Members, p.Values = append(p.Members, Process(m.Worker)), append(p.Values, x)
		}
	}
	v.keep(name, p)
}

// keep adds points to a series of the machines. What is not among those of the record is forgotten once there is much.
func (v *View) keep(name event.Measure, p *event.Points) {
	if len(p.Members) == 0 {
		return
	}
	s := v.MachinesOf(name)
	if s == nil {
		v.Machines = append(v.Machines, Series{Name: string(name), small: true})
		s = &v.Machines[len(v.Machines)-1]
	}
	s.add(p)
	s.forget(collective.Roster{Members: p.Members})
}

// Hosted is how many members a process hosts: a worker's own, and of [event.Here] all of workers that are none of these
// processes of their own, which ascend.
func (v *View) Hosted(worker int, processes []int) (n int) {
	r := v.Members()
	for i := range r.Members {
		owner := r.Owner[i]
		if _, alone := slices.BinarySearch(processes, owner); !alone {
			owner = event.Here
		}
		if owner == worker {
			n++
		}
	}
	return n
}

// paced adds a commit to the run's speed.
func (v *View) paced(c *event.Commit, d event.Progress) {
	if c.Nanos <= 0 || c.Rounds == 0 {
		return
	}
	s := float64(c.Nanos) / 1e9
	v.Speed = carry(v.Speed, RoundsASecond, c.To, float64(c.Rounds)/s)
	v.Speed = carry(v.Speed, SamplesASecond, c.To, float64(d.Samples)/s)
}
