package host

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/machine"
	"brood/runtime/view"
	"brood/runtime/worker"
)

// How often this process is measured, and how often the log has it of all processes: as often at first, and the less
// the older the run's process is, so that the records of a year are a few thousand.
const (
	measureEvery = time.Second
	recordPart   = 600
)

// measuring knows the machine below this process, and has the log told of all machines of the run.
type measuring struct {
	mu      sync.Mutex
	here    map[event.Measure]float64
	workers []*worker.Worker // of this process, on a device
	all     []*worker.Worker // of this process, those that ended too
	commits uint64
	work    sync.WaitGroup
}

// hosts is told of a worker of this process.
func (s *measuring) hosts(w *worker.Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, w)
	if _, _, device := w.Held(); device {
		s.workers = append(s.workers, w)
	}
}

// take is told of each record, on the fleet's loop.
func (s *measuring) take(rec event.Record) {
	if rec.Commit != nil {
		s.mu.Lock()
		s.commits++
		s.mu.Unlock()
	}
}

// machine is this process as it was measured last.
func (s *measuring) machine() event.Machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return event.Machine{Worker: event.Here, Values: s.here}
}

// begin measures until end is called. fleet tells of all machines, note has them recorded; both may wait for the
// fleet's loop. Nothing is recorded while no round is committed.
func (s *measuring) begin(ctx context.Context, fleet func(context.Context) view.Fleet, note func(coordinator.Measured)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.work.Go(func() {
		meter, start := machine.New(), time.Now()
		last, was, commits := start, uint64(0), uint64(0)
		sent := sentBytes{}
		_ = meter.Measure(start) // rates count from here
		tick := time.NewTicker(measureEvery)
		defer tick.Stop()
		for {
			var now time.Time
			select {
			case <-tick.C:
				now = time.Now() // a tick that waited has the time when it was due
			case <-ctx.Done():
				return
			}
			values := meter.Measure(now)
			for _, w := range s.onDevice() {
				machine.Device(values, w)
			}
			s.programs(values)
			// of a tick ago, so that the workers have reported what they sent in the rounds of the newest commit
			settled := commits
			if commits = s.measure(values); settled == was || !due(now.Sub(last), now.Sub(start)) {
				continue
			}
			f := fleet(ctx)
			note(coordinator.Measured{Of: sent.perSecond(f, now.Sub(last))})
			last, was = now, settled
		}
	})
	return func() {
		cancel()
		s.work.Wait()
	}
}

// due says whether a record may follow the one before it, in a process of an age.
func due(since, age time.Duration) bool {
	return since >= max(measureEvery/2, age/recordPart) // ticks come a little early and late
}

// programs adds the restarts of the programs that workers of this process ask.
func (s *measuring) programs(values map[event.Measure]float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.all {
		machine.Programs(values, w)
	}
}

// onDevice are the workers of this process that hold memory of a device. Whoever asks them what its driver tells does
// so without the lock, for which the fleet's loop would wait.
func (s *measuring) onDevice() []*worker.Worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers = slices.DeleteFunc(s.workers, func(w *worker.Worker) bool {
		used, _, _ := w.Held()
		return used == 0 // it has ended
	})
	return slices.Clone(s.workers)
}

// measure keeps what was measured, and says how often was committed.
func (s *measuring) measure(values map[event.Measure]float64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, x := range values {
		values[name] = event.Short(x)
	}
	s.here = values // nobody changes it any more
	return s.commits
}

// sentBytes are the bytes that each link had sent when machines were recorded last.
type sentBytes map[[2]int]int64

// perSecond returns the machines of a fleet with what their links sent a second since the record before: the rate of
// the last second alone would miss the bursts of rounds that take longer.
func (b sentBytes) perSecond(f view.Fleet, since time.Duration) []event.Machine {
	to := map[int]map[int]float64{}
	for _, l := range f.Links {
		at := [2]int{l.From, l.To}
		rate := float64(max(0, l.Bytes-b[at])) / since.Seconds()
		if b[at] = l.Bytes; to[l.From] == nil {
			to[l.From] = map[int]float64{}
		}
		to[l.From][l.To] = event.Short(rate)
	}
	out := slices.Clone(f.Machines)
	for i, m := range out {
		links, ok := to[m.Worker]
		if !ok {
			continue
		}
		total := 0.0
		for _, rate := range links {
			total += rate
		}
		out[i].Values = maps.Clone(m.Values)
		out[i].Values[event.Sent] = event.Short(total)
		if m.To != nil {
			out[i].To = links
		}
	}
	return out
}
