package view

import (
	"math"
	"slices"

	"brood/optim"
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

// Process is whose values a series of the machines has: of the process of a worker, or of [event.Here].
func Process(worker int) optim.Member { return optim.Member(worker + 1) }

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
}

// measured adds what the processes have of a measure. A process that is not among those of the record is forgotten once
// there are many.
func (v *View) measured(r *event.Machines, name event.Measure, of func(event.Machine) (float64, bool)) {
	p := &event.Points{Round: r.Round}
	for _, m := range r.Of {
		if x, ok := of(m); ok && m.Worker >= event.Here && m.Worker < math.MaxInt32 {
			p.Members, p.Values = append(p.Members, Process(m.Worker)), append(p.Values, x)
		}
	}
	if len(p.Members) == 0 {
		return
	}
	s := v.MachinesOf(name)
	if s == nil {
		v.Machines = append(v.Machines, Series{Name: string(name), small: true})
		s = &v.Machines[len(v.Machines)-1]
	}
	s.add(p)
	s.forget(optim.Roster{Members: p.Members})
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
