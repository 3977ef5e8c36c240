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
	"brood/transport/quic"
)

// between tellings of what a worker measures.
const telemetryPeriod = time.Second

// linkRates makes rates of the counts that a worker tells.
type linkRates struct {
	at    time.Time
	last  map[int]message.LinkCount
	bytes map[int]int64 // sent since the first report, over all connections of a link
	rates []view.Link
	sent  float64 // bytes a second, over all links
	recv  float64
}

// A worker may tell so many times at once, after a while of silence.
const maxTold = 16

// bucket holds the tellings that a worker may make now: one more each period.
type bucket struct {
	at   time.Time
	left float64
}

func (b *bucket) take(now time.Time) bool {
	if b.at.IsZero() {
		b.left = maxTold
	} else {
		b.left = min(maxTold, b.left+2*now.Sub(b.at).Seconds()/telemetryPeriod.Seconds())
	}
	b.at = now
	b.left--
	return b.left >= 0
}

// maxLate tellings beyond what is due may come at once, and are passed over: those that waited while a checkpoint was
// written, say.
const maxLate = 600

// stale is how old what a worker told of its machine may be while it is shown as what is.
const stale = 10 * time.Second

// measured takes a worker's telemetry: of links to workers that there are, each once, of its machine what can be, and
// no more often than it is due.
func (t *seat) measured(m message.Telemetry) error {
	now := time.Now()
	if !t.told.take(now) {
		if t.told.left < -maxLate {
			return errors.New("it tells what it measures more often than once a second")
		}
		return nil
	}
	t.run.srv.mu.Lock()
	there := len(t.run.roster)
	t.run.srv.mu.Unlock()
	seen := map[int]bool{}
	for _, l := range m.Links {
		switch {
		case l.To == t.id || seen[l.To] || len(m.Links) > there+maxGone:
			return fmt.Errorf("it tells of %d links, one of them to worker %d, of a run with %d workers", len(m.Links), l.To, there)
		case l.Sent < 0 || l.Received < 0 || l.RTT < 0 || !(l.Lost >= 0 && l.Lost <= 1):
			return fmt.Errorf("it measures %+v of a link", l)
		}
		seen[l.To] = true
	}
	machine, err := event.Told(m.Machine)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links.take(m, now)
	t.machine, t.machineAt = machine, now
	return nil
}

// maxGone workers may be told of that are on the roster no more.
const maxGone = 64

// take computes rates over the time since the report before. Reports that were held up come together: one that follows
// within half a period is skipped, since the next has its bytes.
func (r *linkRates) take(m message.Telemetry, now time.Time) {
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
		out := view.Link{From: m.Worker, To: l.To, RTT: l.RTT, Lost: l.Lost}
		if was, ok := last[l.To]; ok { // a link that was made anew counts from zero
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

// to is what the log has of each link.
func (r *linkRates) to() map[int]float64 {
	if len(r.rates) == 0 || len(r.rates) > event.MostLinks {
		return nil
	}
	out := map[int]float64{}
	for _, l := range r.rates {
		out[l.To] = event.Short(l.Sent)
	}
	return out
}

// counts are a worker's links as it measures them.
func counts(mesh *quic.Mesh, self int) message.Telemetry {
	m := message.Telemetry{Worker: self}
	for _, p := range mesh.Pairs() {
		if int(p.Self) == self && p.Connected {
			m.Links = append(m.Links, message.LinkCount{To: int(p.Other), Sent: p.Sent, Received: p.Received, RTT: p.RTT, Lost: p.Lost})
		}
	}
	slices.SortFunc(m.Links, func(a, b message.LinkCount) int { return a.To - b.To })
	return m
}

// shape makes the worker slow its links down.
func (t *seat) shape(l event.Link) {
	if l.From == event.Every || l.From == t.id {
		t.send(message.Shape{Link: l})
	}
}

// describe adds what the connections tell to what the core knows of the workers, and those that are on their way in.
func (r *run) describe(workers []view.Worker) (f view.Fleet) {
	now := time.Now()
	r.srv.mu.Lock()
	defer r.srv.mu.Unlock()
	byID := map[int]*seat{}
	for _, t := range r.seats {
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
	for id, t := range byID { // not in the core, yet or any more
		w := view.Worker{ID: id, State: event.Joining}
		if t.seated {
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

// describe fills in what the connection tells of a worker, and gives its links and its machine.
func (t *seat) describe(w *view.Worker, now time.Time) ([]view.Link, event.Machine) {
	h, s := t.peer.Hello(), t.peer.Stats()
	w.Name, w.Address, w.Software = h.Name, t.peer.Address().String(), h.Software
	w.Kernels, w.Device = t.run.config.Kernels, h.Device
	w.Key = t.peer.Node().Short()
	w.Since, w.RTT, w.Silent = now.Sub(t.since), s.RTT, s.Silent
	t.mu.Lock()
	defer t.mu.Unlock()
	w.Sent, w.Received = t.links.sent, t.links.recv
	m := event.Machine{Worker: w.ID, Values: map[event.Measure]float64{event.RoundTrip: event.Short(s.RTT.Seconds())}}
	if now.Sub(t.machineAt) < stale {
		maps.Copy(m.Values, t.machine)
	}
	if now.Sub(t.links.at) < stale {
		m.Values[event.Sent], m.Values[event.Received] = event.Short(t.links.sent), event.Short(t.links.recv)
		m.To = t.links.to()
	}
	return slices.Clone(t.links.rates), m
}
