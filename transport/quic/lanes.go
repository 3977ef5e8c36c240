package quic

import (
	"time"

	quicgo "github.com/quic-go/quic-go"

	"brood/transport/wire"
)

// adapt judges the lanes every adaptEvery if they have sent at least busy packets since.
const (
	adaptEvery = 500 * time.Millisecond
	busy       = 256
)

// lanesFor returns how many lanes a pair should have. NewReno uses a connection poorly if packets are lost or the round
// trip is long; several connections use it better. Below 1 ms retransmission is cheap and losses come from full
// buffers, which more lanes would make worse.
func lanesFor(have int, rtt time.Duration, lost float64) int {
	if rtt <= time.Millisecond || rtt <= 20*time.Millisecond && lost <= 0.0005 {
		return have
	}
	if have < 4 {
		return 4
	}
	return wire.MaxLanes
}

// Lanes returns the number of lanes that a pair with this round trip and share of lost packets reaches under bulk load.
func Lanes(rtt time.Duration, lost float64) int {
	for n := 1; ; {
		more := min(lanesFor(n, rtt, lost), wire.MaxLanes)
		if more <= n {
			return n
		}
		n = more
	}
}

// requestLanes raises the number of requested lanes to n; it never lowers it. The pair's lock is held.
func (s *association) requestLanes(n int) {
	n = min(n, wire.MaxLanes)
	if n <= s.want {
		return
	}
	s.want = n
	s.pair.change.Broadcast()
	if s.dialler {
		return
	}
	if frame, err := wire.Marshal(wire.Header{Run: s.pair.mesh.run, Sender: s.pair.self},
		wire.Lanes{Want: uint8(n)}); err == nil {
		_ = s.post(frame) // a failure ends the association by itself
	}
}

// adapt requests more lanes while bulk is sent and lanesFor asks for more, and writes packets several times while
// copyPolicy asks for it.
func (s *association) adapt() error {
	tick := time.NewTicker(adaptEvery)
	defer tick.Stop()
	shaper, to := s.pair.mesh.node.shaperOf(s.conn.RemoteAddr()), s.conn.RemoteAddr()
	defer shaper.copies.set(to, s, 1)
	var policy copyPolicy
	var lost, sent, allLost, allSent uint64
	times := 1
	for {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return nil
		}
		s.pair.mu.Lock()
		first := s.conn.ConnectionStats()
		var l, n uint64
		rtt, smooth, latest := time.Duration(0), first.SmoothedRTT, first.LatestRTT
		for _, c := range s.lanes {
			x := c.ConnectionStats()
			l, n, rtt = l+x.PacketsLost, n+x.PacketsSent, max(rtt, x.MinRTT)
			smooth, latest = max(smooth, x.SmoothedRTT), min(latest, x.LatestRTT)
		}
		if len(s.lanes) == s.want && n >= sent+busy && l >= lost {
			s.requestLanes(lanesFor(s.want, rtt, share(l-lost, n-sent)))
		}
		lost, sent = l, n
		s.pair.mu.Unlock()
		l, n = l+first.PacketsLost, n+first.PacketsSent
		if l >= allLost { // a packet that counted as lost may arrive
			wanted := policy.judge(time.Now(), l-allLost, n-allSent, smooth, latest)
			if wanted != times {
				times = wanted
				shaper.copies.set(to, s, times)
			}
			allLost, allSent = l, n
		}
	}
}

// openLanes runs on the dialling side: it opens lanes until there are as many as requested.
func (s *association) openLanes() error {
	p := s.pair
	failures := 0
	for {
		p.mu.Lock()
		for p.association == s && len(s.lanes) >= s.want {
			p.change.Wait()
		}
		over, have := p.association != s, len(s.lanes)
		p.mu.Unlock()
		if over {
			return nil
		}
		open := wire.Open{Run: p.mesh.run, From: p.self, To: p.other, Association: s.id, Lane: uint8(have + 1)}
		o, err := p.mesh.node.begin(s.ctx, s.address, p.node, open)
		if err == nil {
			if _, ok := o.body.(wire.Opened); !ok {
				return broken("expected Opened in answer to Open")
			}
			s.addLane(o.conn)
			failures = 0
			continue
		}
		if s.ctx.Err() != nil {
			return nil
		}
		if failures++; failures == 5 {
			if have > 0 { // fewer lanes are only slower
				return nil
			}
			return err
		}
		select {
		case <-time.After(time.Duration(failures) * 100 * time.Millisecond):
		case <-s.ctx.Done():
			return nil
		}
	}
}

// openedLane runs on the other side: it accepts a lane that the dialling side opened.
func (p *pair) openedLane(o opening, open wire.Open) error {
	p.mu.Lock()
	s := p.association
	ok := s != nil && s.id == open.Association && len(s.lanes) < wire.MaxLanes
	p.mu.Unlock()
	if !ok {
		return refuseRoster("the pair's association is over, or has all its lanes")
	}
	frame, err := wire.Marshal(wire.Header{Run: p.mesh.run, Sender: p.self}, wire.Opened{})
	if err != nil {
		return err
	}
	if _, err := o.stream.Write(frame); err != nil {
		return err
	}
	s.addLane(o.conn)
	return nil
}

// addLane makes a connection a lane. The end of either ends the other.
func (s *association) addLane(conn *quicgo.Conn) {
	p := s.pair
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.association != s || len(s.lanes) == wire.MaxLanes {
		_ = conn.CloseWithError(codeDone, "the association is over")
		return
	}
	lane := len(s.lanes)
	s.lanes = append(s.lanes, conn)
	s.run(func() error { return s.transmit(conn, lane) })
	s.run(func() error {
		stream, err := conn.AcceptUniStream(s.ctx)
		if err != nil {
			if s.ctx.Err() != nil {
				return nil
			}
			return err
		}
		return s.receive(wire.NewReader(stream))
	})
	p.change.Broadcast()
}
