package view_test

import (
	"math"
	"testing"

	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/view"
)

// hosting is a run of 6 members: one on worker 0 in the process of the coordinator, two on worker 1, three on worker 4.
func hosting() *view.View {
	v := view.New()
	v.Apply(event.Record{Plan: &event.Plan{
		Epoch:     1,
		From:      event.Fresh,
		Algorithm: "x",
		New:       collective.Roster{Members: collective.IDs(6), Owner: []int{0, 1, 1, 4, 4, 4}},
	}})
	v.Apply(event.Record{State: &event.State{Phase: event.Training}})
	return v
}

func committed(to uint64) event.Record {
	return event.Record{Commit: &event.Commit{
		To:       to,
		Rounds:   1,
		Nanos:    5e8,
		Progress: event.Progress{Rounds: to, Samples: 300 * to},
	}}
}

func reported(round uint64, of ...event.Machine) event.Record {
	return event.Record{Machines: &event.Machines{Round: round, Of: of}}
}

// TestMachines: a measure is a series by process, missing measures have none, and a process has the samples of its
// members.
func TestMachines(t *testing.T) {
	v := hosting()
	v.Apply(committed(1))
	v.Apply(reported(1, event.Machine{Worker: event.Here, Values: map[event.Measure]float64{event.Busy: 1}},
		event.Machine{Worker: 1, Values: map[event.Measure]float64{event.Busy: 2, event.RoundTrip: 0.1}},
		event.Machine{Worker: 4}))
	s := v.MachinesOf(event.Busy)
	for worker, want := range map[int]float64{event.Here: 1, 1: 2} {
		if x, ok := s.Last(view.Process(worker)); !ok || x != want {
			t.Errorf("worker %d keeps %g busy (%t), want %g", worker, x, ok, want)
		}
	}
	if x, ok := s.Last(view.Process(4)); ok {
		t.Errorf("worker 4, which tells nothing, keeps %g busy", x)
	}
	if v.MachinesOf(event.DeviceHeat) != nil {
		t.Error("there is a temperature that was not reported")
	}
	for worker, want := range map[int]float64{event.Here: 100, 1: 200, 4: 300} { // of 600 samples a second
		if x, ok := v.MachinesOf(view.Samples).Last(view.Process(worker)); !ok || math.Abs(x-want) > 1e-9 {
			t.Errorf("worker %d has %g samples/s (%t), want %g", worker, x, ok, want)
		}
	}
	for name, want := range map[string]float64{view.RoundsASecond: 2, view.SamplesASecond: 600} {
		found := false
		for i := range v.Speed {
			if x, ok := v.Speed[i].Last(view.Whole); v.Speed[i].Name == name {
				found = ok && x == want
			}
		}
		if !found {
			t.Errorf("%s is not %g", name, want)
		}
	}
	before := v.Clone()
	v.Apply(committed(2))
	v.Apply(reported(2, event.Machine{Worker: event.Here, Values: map[event.Measure]float64{event.Busy: 9}}))
	if x, _ := before.MachinesOf(event.Busy).Last(view.Process(event.Here)); x != 1 {
		t.Errorf("a clone sees %g", x)
	}
	v.Apply(event.Record{Plan: &event.Plan{
		Epoch:     2,
		At:        1,
		From:      event.Saved,
		Algorithm: "x",
		Old:       v.Members(),
		New:       v.Members(),
	}})
	if _, hi := v.MachinesOf(event.Busy).Rounds(); hi != 2 {
		t.Errorf("a run that went back to round 1 has machines up to round %d", hi-1)
	}
}

// TestMachinesAreBounded: a view of many rounds with workers that come and go stays small.
func TestMachinesAreBounded(t *testing.T) {
	v := hosting()
	for r := uint64(1); r < 30000; r++ {
		if v.Apply(committed(r)); r%3 == 0 {
			v.Apply(reported(r, event.Machine{Worker: event.Here, Values: map[event.Measure]float64{event.Busy: 1}},
				event.Machine{Worker: int(r), Values: map[event.Measure]float64{event.Busy: float64(r)}},
				event.Machine{Worker: math.MaxInt64, Values: map[event.Measure]float64{event.Busy: 1}},
				event.Machine{Worker: -7, Values: map[event.Measure]float64{event.Busy: 1}}))
		}
	}
	s := v.MachinesOf(event.Busy)
	if n := len(s.Members); n > 100 || s.Width() < 64 {
		t.Errorf("%d processes are remembered, in buckets of %d rounds", n, s.Width())
	}
	if x, ok := s.Last(view.Process(29999 - 29999%3)); !ok || x != 29999-29999%3 {
		t.Errorf("the newest is %g", x)
	}
}

// TestDamagedMachines: an invalid record changes nothing.
func TestDamagedMachines(t *testing.T) {
	v := hosting()
	v.Apply(reported(math.MaxUint64, event.Machine{Worker: 1, Values: map[event.Measure]float64{event.Busy: math.NaN()}}))
	v.Apply(reported(5, event.Machine{Worker: 4, Values: map[event.Measure]float64{event.Busy: math.Inf(1)}},
		event.Machine{Worker: 1, Values: map[event.Measure]float64{event.Busy: 1}}))
	v.Apply(event.Record{Machines: &event.Machines{}})
	if x, ok := v.MachinesOf(event.Busy).Last(view.Process(1)); !ok || x != 1 {
		t.Errorf("%g, %t", x, ok)
	}
}

// TestBetween: a link has the bytes sent over it. Without links, a worker has its bytes to all others.
// The sum is unknown if a worker reports nothing, and an invalid record adds no link.
func TestBetween(t *testing.T) {
	sends := func(worker int, x float64, to map[int]float64) event.Machine {
		return event.Machine{Worker: worker, Values: map[event.Measure]float64{event.Sent: x}, To: to}
	}
	v, here := hosting(), event.Machine{Worker: event.Here}
	check := func(when string, want map[[2]int]float64) {
		t.Helper()
		s := v.MachinesOf(view.Between)
		for _, id := range s.Members {
			if from, to := view.LinkEnds(id); view.LinkOf(from, to) != id {
				t.Errorf("%s: %d is %d → %d", when, id, from, to)
			} else if _, ok := want[[2]int{from, to}]; !ok {
				t.Errorf("%s: there is a link %d → %d", when, from, to)
			}
		}
		for at, x := range want {
			if got, ok := s.Last(view.LinkOf(at[0], at[1])); !ok || got != x {
				t.Errorf("%s: %d → %d has %g (%t), want %g", when, at[0], at[1], got, ok, x)
			}
		}
	}
	v.Apply(committed(1))
	if v.Apply(reported(1, here)); v.MachinesOf(view.Between) != nil {
		t.Error("one process has links")
	}
	all := event.Every
	v.Apply(reported(2, here, sends(0, 5, nil), sends(4, 7, nil)))
	check("before", map[[2]int]float64{{0, all}: 5, {4, all}: 7, {all, all}: 12})
	v.Apply(reported(3, here, sends(0, 6, map[int]float64{4: 6}), event.Machine{Worker: 4}))
	check("one is silent", map[[2]int]float64{{0, all}: 6, {0, 4}: 6, {4, all}: 7, {all, all}: 12})
	if _, at, _ := v.MachinesOf(view.Between).At(view.LinkOf(all, all), 3); at != 2 {
		t.Errorf("the sum is of round %d, of which one worker reported nothing", at)
	}
	v.Apply(reported(4, here, sends(0, 8, map[int]float64{0: 1, -1: 1, 1 << 40: 1, 4: 8}), sends(1<<40, 1, nil),
		sends(-7, 1, nil)))
	check("damage", map[[2]int]float64{{0, all}: 8, {0, 4}: 8, {4, all}: 7, {all, all}: 8})
}
