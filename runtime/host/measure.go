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

const (
	// measureEvery is the period of measurements of this process.
	measureEvery = time.Second
	// recordPart bounds the records of all machines in the log: the time between two of them is at least the age of this
	// process divided by recordPart, so that a year of training has a few thousand.
	recordPart = 600
)

// measurements measures the machine of this process and records the measurements of all machines of the run. Methods
// may be called from any goroutine.
type measurements struct {
	mu      sync.Mutex
	here    map[event.Measure]float64 // the last values of this process; replaced, never modified
	workers []*worker.Worker          // workers of this process that use a device
	all     []*worker.Worker          // all workers of this process, including ended ones
	commits uint64                    // number of commits so far
	work    sync.WaitGroup
}

// add registers a worker of this process.
func (s *measurements) add(w *worker.Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, w)
	if _, _, device := w.DeviceMemory(); device {
		s.workers = append(s.workers, w)
	}
}

// take counts the commits. It is called for each record, on the event loop of the fleet.
func (s *measurements) take(rec event.Record) {
	if rec.Commit != nil {
		s.mu.Lock()
		s.commits++
		s.mu.Unlock()
	}
}

// machine returns the last measurement of this process. The caller must not modify it.
func (s *measurements) machine() event.Machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return event.Machine{Worker: event.Here, Values: s.here}
}

// begin starts a goroutine that measures until end is called or ctx ends; end waits for the goroutine. fleet returns
// the measurements of all machines and note records them; both may block on the event loop of the fleet. Nothing is
// recorded without a commit since the last record.
func (s *measurements) begin(
	ctx context.Context, fleet func(context.Context) view.Fleet, note func(coordinator.Measured),
) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.work.Go(func() {
		meter, start := machine.New(), time.Now()
		last, was, commits := start, uint64(0), uint64(0)
		sent := sentBytes{}
		_ = meter.Measure(start) // the first call starts the rates
		tick := time.NewTicker(measureEvery)
		defer tick.Stop()
		for {
			var now time.Time
			select {
			case <-tick.C:
				now = time.Now() // a delayed tick has an earlier time
			case <-ctx.Done():
				return
			}
			values := meter.Measure(now)
			for _, w := range s.onDevice() {
				machine.AddDevice(values, w)
			}
			s.addRestarts(values)
			// Use the commits of the previous tick: by now workers have reported the bytes that they sent in those rounds.
			settled := commits
			if commits = s.store(values); settled == was || !due(now.Sub(last), now.Sub(start)) {
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

// due reports whether machines are recorded again, given the time since the last record and the age of the process.
func due(since, age time.Duration) bool {
	return since >= max(measureEvery/2, age/recordPart) // half, since ticks jitter
}

// addRestarts adds the number of restarts of the objective programs of this process to values.
func (s *measurements) addRestarts(values map[event.Measure]float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.all {
		machine.AddRestarts(values, w)
	}
}

// onDevice returns the workers of this process that have memory allocated on a device, and removes the others. The
// caller queries the driver without holding mu, since the event loop of the fleet would block on it.
func (s *measurements) onDevice() []*worker.Worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers = slices.DeleteFunc(s.workers, func(w *worker.Worker) bool {
		used, _, _ := w.DeviceMemory()
		return used == 0 // the worker has ended
	})
	return slices.Clone(s.workers)
}

// store stores the measurement of this process, rounded, and returns the number of commits so far. The caller must not
// modify values afterwards.
func (s *measurements) store(values map[event.Measure]float64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, x := range values {
		values[name] = event.Short(x)
	}
	s.here = values
	return s.commits
}

// sentBytes maps a link, as the ids of its sender and receiver, to the bytes that it had sent at the last record.
type sentBytes map[[2]int]int64

// perSecond returns the machines of a fleet with the mean rates of their links since the last record, in bytes per
// second, and updates b. The rate of the last second alone would miss the bursts of longer rounds. f does not change.
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
