package remote

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/view"
	"brood/runtime/worker"
	"brood/transport/quic"
)

// telemetryPeriod is the time between two telemetry messages of a worker.
const telemetryPeriod = time.Second

// linkRates computes rates from the counters in a worker's telemetry.
type linkRates struct {
	at    time.Time
	last  map[int]message.LinkCount
	bytes map[int]int64 // sent since the first telemetry, over all connections of a link
	rates []view.Link
	sent  float64 // bytes per second, over all links
	recv  float64 // bytes per second, over all links
}

// maxBurst is the number of telemetry messages that a worker may send at once after a silence.
const maxBurst = 16

// tokenBucket limits the rate of telemetry: it holds up to maxBurst tokens and gains two per telemetryPeriod.
type tokenBucket struct {
	at   time.Time
	left float64
}

// take uses a token and reports whether there was one. left goes below 0 by each excess message.
func (b *tokenBucket) take(now time.Time) bool {
	if b.at.IsZero() {
		b.left = maxBurst
	} else {
		b.left = min(maxBurst, b.left+2*now.Sub(b.at).Seconds()/telemetryPeriod.Seconds())
	}
	b.at = now
	b.left--
	return b.left >= 0
}

// maxDropped bounds the excess telemetry messages that are dropped without ending the session. They can accumulate
// while a checkpoint is written, for example.
const maxDropped = 600

// staleAfter is the age at which telemetry is no longer shown.
const staleAfter = 10 * time.Second

// handleTelemetry validates and stores a worker's telemetry: each link at most once, to another worker; plausible
// values; and at most two messages per telemetryPeriod on average. Excess messages are dropped.
func (t *workerHandle) handleTelemetry(m message.Telemetry) error {
	now := time.Now()
	if !t.budget.take(now) {
		if t.budget.left < -maxDropped {
			return errors.New("it sends telemetry more often than once a second")
		}
		return nil
	}
	t.run.srv.mu.Lock()
	there := len(t.run.roster)
	t.run.srv.mu.Unlock()
	seen := map[int]bool{}
	for _, l := range m.Links {
		switch {
		case l.To == t.id || seen[l.To] || len(m.Links) > there+maxGoneLinks:
			return fmt.Errorf("it reports %d links, one of them to worker %d, in a run with %d workers",
				len(m.Links), l.To, there)
		case l.Sent < 0 || l.Received < 0 || l.RTT < 0 || !(l.Lost >= 0 && l.Lost <= 1):
			return fmt.Errorf("it measures %+v of a link", l)
		}
		seen[l.To] = true
	}
	machine, err := event.CheckReport(m.Machine)
	if err != nil {
		return err
	}
	doing, err := t.activity(m.Doing, now)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links.update(m, now)
	t.machine, t.doing, t.machineAt = machine, doing, now
	return nil
}

// maxRound is the largest round that a worker may report as its current one.
const maxRound = 1 << 53

// activity validates the activity that a worker reports at now and returns it with a start time of this process's
// clock, at the earliest the start of the session. It does not check the stage: package host skips stages of later
// versions.
func (t *workerHandle) activity(d *message.Doing, now time.Time) (out worker.Doing, err error) {
	if d == nil {
		return out, nil
	}
	if d.For < 0 || d.Round > maxRound || min(d.Done, d.Of, d.Members) < 0 || max(d.Of, d.Members) > event.MaxMembers {
		return out, fmt.Errorf("it reports its activity as %d of %d, with %d members, in round %d, for %s",
			d.Done, d.Of, d.Members, d.Round, d.For)
	}
	began := now.Add(-min(d.For, now.Sub(t.since)))
	return worker.Doing{
		Stage:   worker.Stage(d.Stage),
		Since:   began.UnixNano(),
		Round:   d.Round,
		Done:    min(d.Done, d.Of),
		Of:      d.Of,
		Members: d.Members,
	}, nil
}

// activity returns the current activity of a worker as telemetry, nil if it is idle.
func activity(w *worker.Worker) *message.Doing {
	d := w.Doing()
	if d.Stage == "" {
		return nil
	}
	return &message.Doing{
		Stage:   string(d.Stage),
		For:     max(0, time.Since(time.Unix(0, d.Since))), // the clock may have been set back
		Round:   d.Round,
		Done:    d.Done,
		Of:      d.Of,
		Members: d.Members,
	}
}

// doing returns the activities of the workers whose telemetry is recent.
func (r *run) doing() (out []worker.Doing) {
	now := time.Now()
	r.srv.mu.Lock()
	defer r.srv.mu.Unlock()
	for _, t := range r.handles {
		t.mu.Lock()
		if now.Sub(t.machineAt) < staleAfter {
			out = append(out, t.doing)
		}
		t.mu.Unlock()
	}
	return out
}

// maxGoneLinks bounds the links to workers that are no longer on the roster.
const maxGoneLinks = 64

// update computes rates over the time since the previous telemetry. Delayed messages arrive together: one that arrives
// within half a period is skipped, since the next one contains its bytes.
func (r *linkRates) update(m message.Telemetry, now time.Time) {
	since, last := now.Sub(r.at), r.last
	if since < telemetryPeriod/2 {
		return
	}
	dt := since.Seconds()
	if r.bytes == nil {
		r.bytes = map[int]int64{}
	}
	r.at, r.last, r.rates, r.sent, r.recv = now, map[int]message.LinkCount{}, nil, 0, 0
	for _, l := range m.Links {
		r.last[l.To] = l
		out := view.Link{From: m.Worker, To: l.To, RTT: l.RTT, Lost: l.Lost, Relayed: l.Relayed}
		if was, ok := last[l.To]; ok { // a new connection of the link counts from zero
			sent := max(0, l.Sent-was.Sent)
			r.bytes[l.To] += sent
			out.Sent = float64(sent) / dt
			r.recv += max(0, float64(l.Received-was.Received)/dt)
		}
		out.Bytes = r.bytes[l.To]
		r.sent += out.Sent
		r.rates = append(r.rates, out)
	}
}

// logRates returns the sent rates for the log, by destination; nil if there are no links, or too many.
func (r *linkRates) logRates() map[int]float64 {
	if len(r.rates) == 0 || len(r.rates) > event.MostLinks {
		return nil
	}
	out := map[int]float64{}
	for _, l := range r.rates {
		out[l.To] = event.Short(l.Sent)
	}
	return out
}

// counts returns the counters of a worker's connected links.
func counts(mesh *quic.Mesh, self int) message.Telemetry {
	m := message.Telemetry{Worker: self}
	for _, p := range mesh.Pairs() {
		if int(p.Self) == self && p.Connected {
			m.Links = append(m.Links, message.LinkCount{
				To:       int(p.Other),
				Sent:     p.Sent,
				Received: p.Received,
				RTT:      p.RTT,
				Lost:     p.Lost,
				Relayed:  p.Relayed,
			})
		}
	}
	slices.SortFunc(m.Links, func(a, b message.LinkCount) int { return a.To - b.To })
	return m
}

// shape sends the shape of a link to the worker if it applies to links that start there.
func (t *workerHandle) shape(l event.Link) {
	if l.From == event.Every || l.From == t.id {
		t.send(message.Shape{Link: l})
	}
}

// describe adds what the connections measure to the core's view of the workers, and includes workers that are joining
// or leaving.
func (r *run) describe(workers []view.Worker) (f view.Fleet) {
	now := time.Now()
	r.srv.mu.Lock()
	defer r.srv.mu.Unlock()
	byID := map[int]*workerHandle{}
	for _, t := range r.handles {
		byID[t.id] = t
	}
	for _, w := range workers {
		if t := byID[w.ID]; t != nil {
			delete(byID, w.ID)
			links, machine := t.describe(&w, now)
			f.Links, f.Machines = append(f.Links, links...), append(f.Machines, machine)
		}
		f.Workers = append(f.Workers, w)
	}
	for id, t := range byID { // not in the core: joining or leaving
		w := view.Worker{ID: id, State: event.Joining}
		if t.joined {
			w.State = event.Leaving
		}
		_, machine := t.describe(&w, now)
		f.Workers, f.Machines = append(f.Workers, w), append(f.Machines, machine)
	}
	slices.SortFunc(f.Machines, func(a, b event.Machine) int { return a.Worker - b.Worker })
	slices.SortFunc(f.Workers, func(a, b view.Worker) int { return a.ID - b.ID })
	for i := range f.Links {
		if l := shapeOf(r.shapes, f.Links[i].From, f.Links[i].To); l != nil && l.Slow() {
			f.Links[i].Shape = l
		}
	}
	slices.SortFunc(f.Links, func(a, b view.Link) int {
		if a.From != b.From {
			return a.From - b.From
		}
		return a.To - b.To
	})
	return f
}

// describe fills in the connection's data of a worker, and returns its links and its machine.
func (t *workerHandle) describe(w *view.Worker, now time.Time) ([]view.Link, event.Machine) {
	h, s := t.peer.Hello(), t.peer.Stats()
	w.Name, w.Address, w.Software = h.Name, t.peer.Address().String(), h.Software
	w.Kernels, w.Device = t.run.config.Kernels, h.Device
	w.Key = t.peer.Node().Short()
	w.Since, w.RTT, w.Silent = now.Sub(t.since), s.RTT, s.Silent
	t.mu.Lock()
	defer t.mu.Unlock()
	w.Sent, w.Received = t.links.sent, t.links.recv
	m := event.Machine{Worker: w.ID, Values: map[event.Measure]float64{event.RoundTrip: event.Short(s.RTT.Seconds())}}
	if now.Sub(t.machineAt) < staleAfter {
		maps.Copy(m.Values, t.machine)
	}
	if now.Sub(t.links.at) < staleAfter {
		m.Values[event.Sent], m.Values[event.Received] = event.Short(t.links.sent), event.Short(t.links.recv)
		m.To = t.links.logRates()
	}
	return slices.Clone(t.links.rates), m
}
