package quic

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"brood/transport/wire"
)

// Heartbeat times. A dead peer is suspected within 1 s and gone within 2 s; packets are counted twice a beat. A worker
// waits longer for its coordinator, since no other process waits for the worker meanwhile: a coordinator that the
// system suspends for three seconds loses no worker. Both are below idleTimeout.
const (
	beatEvery           = 200 * time.Millisecond
	countEvery          = beatEvery / 2
	suspectedAt         = 800 * time.Millisecond
	silentAt            = 1600 * time.Millisecond
	coordinatorSilentAt = 5 * time.Second
)

// silenceFor returns how long a peer of a node with n connections may be silent. The processes of a large fleet often
// share machines, and then wait for each other's processors, so the time grows with n from 20 connections on.
func silenceFor(n int) time.Duration {
	return min(max(silentAt, time.Duration(n)*silentAt/20), coordinatorSilentAt)
}

// probedAfter returns the silence after which the port of a peer is probed that is sent a heartbeat in each interval
// and has not answered one: see control.probePort.
func probedAfter(interval, silence time.Duration) time.Duration {
	return max(interval-countEvery/2, silence/10)
}

// pulse records when the peer was last alive, and its round-trip time.
type pulse struct {
	mu   sync.Mutex
	last time.Time // of the last received packet: heartbeats may queue behind bulk data, acknowledgements do not
	rtt  time.Duration
	out  *quicgo.SendStream
}

func (p *pulse) received(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = now
}

// quiet returns the time since the last packet.
func (p *pulse) quiet(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.last)
}

func (p *pulse) roundTrip() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rtt
}

// answered records the round-trip time of a heartbeat. It ignores times that are negative or longer than idleTimeout; a
// peer that lies about its times changes only this figure.
func (p *pulse) answered(rtt time.Duration) {
	if rtt < 0 || rtt > idleTimeout {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rtt = rtt
}

// send writes a heartbeat if the stream takes it at once: one that waited would not measure the network. The lock
// orders beat and listen, which both send. Without an open stream it drops the heartbeat.
func (p *pulse) send(m wire.Heartbeat) error {
	frame, err := wire.Marshal(wire.Header{Sender: wire.NoWorker}, m)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil {
		return nil
	}
	if err := p.out.TryWriteAll(frame); err != nil && !errors.Is(err, quicgo.ErrWouldBlock) {
		return err
	}
	return nil
}

// beat sends a heartbeat every 200 ms, between workers of a large fleet less often, and fails with Silent when no
// packet has come for c.silence.
func (c *control) beat() error {
	s, err := c.conn.OpenUniStreamSync(c.ctx)
	if err != nil {
		return err
	}
	c.pulse.mu.Lock()
	c.pulse.out = s
	c.pulse.mu.Unlock()
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	silence, probed := silence{woke: time.Now()}, false
	for n := time.Duration(0); ; n++ {
		if silence.update(c.packets()) {
			c.pulse.received(time.Now())
			probed = false
		}
		interval := beatEvery
		if c.sparse {
			interval *= c.silence() / silentAt
		}
		if n%(interval/countEvery) == 0 {
			if err := c.pulse.send(beatNow(c)); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return nil
		}
		switch quiet := silence.tick(time.Now(), c.packets()); {
		case quiet >= c.silence():
			return &GoneError{Silent, fmt.Sprintf("it sent nothing for %.1f s", quiet.Seconds())}
		case quiet >= probedAfter(interval, c.silence()) && c.probes.Load() && !probed:
			probed = true
			c.run(c.probePort)
		}
	}
}

// probePort ends the connection if the machine of a silent peer answers that no program uses the peer's port: its
// process was killed.
func (c *control) probePort() error {
	if PortClosed(c.ctx, c.conn.RemoteAddr().String()) {
		return &GoneError{Silent, "its process has ended"}
	}
	return nil
}

// allowProbes allows probes of the peer's port, if it is on this machine, or in a private network and does not answer
// now that it is closed: a firewall, or a router that translates addresses, may answer so for a live peer.
func (c *control) allowProbes() error {
	a, ok := c.conn.RemoteAddr().(*net.UDPAddr)
	near := ok && (a.IP.IsPrivate() || a.IP.IsLinkLocalUnicast())
	if ok && a.IP.IsLoopback() || near && !PortClosed(c.ctx, a.String()) {
		c.probes.Store(true)
	}
	return nil
}

// silence measures how long no packet came while this process was scheduled. If the system suspended the process for
// longer than countEvery, packets may still wait in the socket, so only 5/4 of it counts.
type silence struct {
	packets uint64
	woke    time.Time
	quiet   time.Duration
}

// update records the packet count and reports whether it has changed. A change ends the silence.
func (s *silence) update(packets uint64) bool {
	if packets == s.packets {
		return false
	}
	s.packets, s.quiet = packets, 0
	return true
}

// tick adds the time since the last tick and returns the silence so far, 0 if packets came.
func (s *silence) tick(now time.Time, packets uint64) time.Duration {
	awake := min(now.Sub(s.woke), countEvery*5/4)
	s.woke = now
	if packets != s.packets {
		return 0 // update counts them
	}
	s.quiet += awake
	return s.quiet
}

// listen answers the peer's heartbeats and records the round-trip time of answers to ours.
func (c *control) listen(r *wire.Reader) error {
	for {
		h, p, err := r.Next()
		if err != nil {
			return err
		}
		now := time.Now()
		if h.Kind != wire.KindHeartbeat {
			return broken("kind %d on the stream of heartbeats", h.Kind)
		}
		m, err := wire.Unmarshal(h, p)
		if err != nil {
			return err
		}
		beat := m.(wire.Heartbeat)
		if beat.Answer {
			c.pulse.answered(now.Sub(c.born) - time.Duration(beat.Nanos))
			continue
		}
		if err := c.pulse.send(wire.Heartbeat{Nanos: beat.Nanos, Answer: true}); err != nil {
			return err
		}
	}
}

// beatNow returns a heartbeat with the current time.
func beatNow(c *control) wire.Heartbeat { return wire.Heartbeat{Nanos: int64(time.Since(c.born))} }
