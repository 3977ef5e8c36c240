package view

import (
	"maps"
	"math"
	"slices"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
)

// Series of the speed of the run: the rate of each commit, by the time of its slowest worker.
const (
	RoundsASecond  = "rounds/s"
	SamplesASecond = "samples/s"
)

// Samples is the machine series of samples per second of a process. The view derives it: all members execute a round
// together, so each has an equal share of the rate of the run.
const Samples event.Measure = "samples"

// Between is the machine series of bytes per second over each link, by [LinkOf]. The view derives it from the
// measurements. The rate from one worker to all others is in every log of a fleet, the rates of single links only in
// newer logs. The rate from all to all is known if every process reports its own.
const Between event.Measure = "between"

// mostEnds bounds the ids of workers whose links are stored.
const mostEnds = 1<<15 - 1

// LinkOf returns the member id under which [Between] has the link between two workers. Either may be [event.Every].
func LinkOf(from, to int) engine.Member { return engine.Member(from+1)<<16 | engine.Member(to+1) }

// LinkEnds is the inverse of [LinkOf].
func LinkEnds(id engine.Member) (from, to int) { return int(id>>16) - 1, int(id&(1<<16-1)) - 1 }

// between adds the rates of the links to [Between].
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

// Process returns the member id under which machine series have the process of a worker, or of [event.Here].
func Process(worker int) engine.Member { return engine.Member(worker + 1) }

// Bounds of the buckets of machine series, which are many and are drawn small.
const (
	machineBudget = 1 << 13
	machineMost   = 512
)

func machineLimit(processes int) uint64 {
	return uint64(min(max(machineBudget/max(1, processes), minBuckets), machineMost))
}

// EstimateMachineMemory estimates the bytes of the machine series of this many processes after this many rounds: held
// in memory, and encoded in a snapshot.
func EstimateMachineMemory(processes int, rounds float64) (held, encoded int64) {
	held, encoded = EstimateMemory(processes, min(rounds, float64(machineLimit(processes))))
	n := int64(len(event.Measures) + 1)
	return n * held, n * encoded
}

// MachinesOf returns the machine series of a measure; nil if it has no points.
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

// measured adds the values of the processes to the machine series of a measure. of returns the value of a machine.
func (v *View) measured(r *event.Machines, name event.Measure, of func(event.Machine) (float64, bool)) {
	p := &event.Points{Round: r.Round}
	for _, m := range r.Of {
		if x, ok := of(m); ok && m.Worker >= event.Here && m.Worker < math.MaxInt32 {
			p.Members, p.Values = append(p.Members, Process(m.Worker)), append(p.Values, x)
		}
	}
	v.keep(name, p)
}

// keep adds points to a machine series. It removes processes or links that are not in p once there are many of them.
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

// Hosted returns the number of members that a process hosts. processes lists the processes with measurements,
// ascending. All workers that are not among them belong to the process of [event.Here].
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

// paced adds a commit to the speed series.
func (v *View) paced(c *event.Commit, d event.Progress) {
	if c.Nanos <= 0 || c.Rounds == 0 {
		return
	}
	s := float64(c.Nanos) / 1e9
	v.Speed = carry(v.Speed, RoundsASecond, c.To, float64(c.Rounds)/s)
	v.Speed = carry(v.Speed, SamplesASecond, c.To, float64(d.Samples)/s)
}
