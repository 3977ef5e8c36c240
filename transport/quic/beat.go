package quic

import (
	"errors"
	"fmt"
	"sync"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"brood/transport/wire"
)

// Times of the heartbeat. The promises are: suspected within 1 s, gone within 2 s. A packet is noticed with the next
// beat.
const (
	beatEvery   = 200 * time.Millisecond
	suspectedAt = 800 * time.Millisecond
	silentAt    = 1600 * time.Millisecond
)

// pulse is when and how fast the peer answers.
type pulse struct {
	mu   sync.Mutex
	last time.Time // any packet came: a heartbeat may be stuck behind others, the acknowledgement of ours is not
	rtt  time.Duration
	out  *quicgo.SendStream
}

func (p *pulse) heard(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = now
}

// quiet is how long nothing came.
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

// answered notes how long an answer took; a peer that makes up times can only harm its own figure.
func (p *pulse) answered(rtt time.Duration) {
	if rtt < 0 || rtt > idleTimeout {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rtt = rtt
}

// send queues a heartbeat if the stream takes it at once: one that waited would measure nothing. The lock orders the
// two goroutines that send. A question that comes before the own stream is open is not answered; the next one is.
func (p *pulse) send(m wire.Heartbeat) error {
	frame, err := wire.Marshal(wire.Header{Sender: wire.Nobody}, m)
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

// beat asks the peer every 200 ms, and ends the connection when nothing comes any more.
func (c *control) beat() error {
	s, err := c.conn.OpenUniStreamSync(c.ctx)
	if err != nil {
		return err
	}
	c.pulse.mu.Lock()
	c.pulse.out = s
	c.pulse.mu.Unlock()
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	silence := silence{woke: time.Now()}
	for {
		if silence.heard(c.packets()) {
			c.pulse.heard(time.Now())
		}
		if err := c.pulse.send(beatNow(c)); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return nil
		}
		if quiet := silence.tick(time.Now(), c.packets()); quiet >= silentAt {
			return &GoneError{Silent, fmt.Sprintf("nothing came for %.1f s", quiet.Seconds())}
		}
	}
}

// silence is how long nothing came while this process was awake to hear it. One that the system left no time for longer
// than a beat has itself to blame, and what came meanwhile may lie in the socket still.
type silence struct {
	packets uint64
	woke    time.Time
	quiet   time.Duration
}

// heard says whether packets came since the last look.
func (s *silence) heard(packets uint64) bool {
	if packets == s.packets {
		return false
	}
	s.packets, s.quiet = packets, 0
	return true
}

// tick is the silence at a beat.
func (s *silence) tick(now time.Time, packets uint64) time.Duration {
	awake := min(now.Sub(s.woke), beatEvery*5/4)
	s.woke = now
	if packets != s.packets {
		return 0 // heard counts them with the next beat
	}
	s.quiet += awake
	return s.quiet
}

// listen answers heartbeats, and measures the answers.
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

// beatNow asks at this moment.
func beatNow(c *control) wire.Heartbeat { return wire.Heartbeat{Nanos: int64(time.Since(c.born))} }
