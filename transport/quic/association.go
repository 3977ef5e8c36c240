package quic

import (
	"fmt"
	"sync/atomic"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"brood/transport/wire"
)

// association is one connected period of a pair: its first connection and its lanes. A failure of any of them ends the
// association.
type association struct {
	*control
	pair    *pair
	id      wire.AssociationID
	dialler bool
	address string // the address that this side dialled; "" on the other side

	// Guarded by the pair's lock.
	wanted  time.Time          // when the pair first needed this connection; zero if only the other side did
	lossy   bool               // a frame was sent or received: its end may lose frames
	small   *quicgo.SendStream // stream for small messages; nil until it is open
	writing bool               // transmitSmall is writing to small
	lanes   []*quicgo.Conn
	want    int    // number of lanes requested so far
	idle    uint32 // bit i is set while lane i waits for bulk
	buf     []byte

	copied atomic.Int64 // bytes of copies of packets, see copies
}

func newAssociation(p *pair, o opening, id wire.AssociationID, dialler bool) *association {
	s := &association{control: newControl(o, defaultQueue), pair: p, id: id, dialler: dialler}
	s.frame, s.data, s.packets = s.handleFrame, s.receive, s.received
	s.silence, s.sparse = p.mesh.silence, true
	if s.relayed() { // it lasts as long as a worker waits for a silent coordinator
		s.silence, s.sparse = func() time.Duration { return coordinatorSilentAt }, false
	}
	return s
}

// relayed reports whether the association goes through the coordinator.
func (s *association) relayed() bool {
	_, ok := s.conn.RemoteAddr().(relayID)
	return ok
}

// received returns the number of packets received on all connections of the association.
func (s *association) received() uint64 {
	s.pair.mu.Lock()
	defer s.pair.mu.Unlock()
	n := s.conn.ConnectionStats().PacketsReceived
	for _, c := range s.lanes {
		n += c.ConnectionStats().PacketsReceived
	}
	return n
}

// start runs the association; the pair's lock is held.
func (s *association) start() {
	s.control.start()
	if s.pair.mesh.node.cfg.Conn == nil {
		s.run(s.allowProbes)
	}
	s.run(s.transmitSmall)
	s.run(s.adapt)
	if s.dialler {
		s.run(s.openLanes)
	}
}

// awaitEnd waits until the association ends, detaches it from its pair and closes its lanes.
func (s *association) awaitEnd() {
	<-s.ctx.Done()
	p := s.pair
	p.mu.Lock()
	p.endAssociation(s, s.failure())
	lanes := s.lanes
	p.change.Broadcast()
	p.mu.Unlock()
	for _, c := range lanes {
		_ = c.CloseWithError(codeDone, s.failure().Error())
	}
	s.wait()
	m := p.mesh
	m.count.Lock()
	defer m.count.Unlock()
	m.count.sent += s.copied.Load()
	for _, c := range append(lanes, s.conn) {
		m.count.sent += int64(c.ConnectionStats().BytesSent)
	}
}

// handleFrame handles a frame from the first connection's own stream. Only the dialling side accepts one, Lanes.
func (s *association) handleFrame(h wire.Header, payload []byte) error {
	if h.Kind != wire.KindLanes || !s.dialler {
		return broken("kind %d between workers", h.Kind)
	}
	m, err := wire.Unmarshal(h, payload)
	if err != nil {
		return err
	}
	s.pair.mu.Lock()
	defer s.pair.mu.Unlock()
	s.requestLanes(int(m.(wire.Lanes).Want))
	return nil
}

// trySend writes a small message at once and reports whether it did: it does not if earlier messages wait or the stream
// would block. The pair's lock is held.
func (s *association) trySend(m message) bool {
	if s.small == nil || s.writing || len(s.pair.out.small) > 0 {
		return false
	}
	frame, err := m.header(s.pair).Append(s.buf[:0], m.p)
	if err != nil {
		return false
	}
	s.buf = append(frame, m.p...)
	if s.small.TryWriteAll(s.buf) != nil {
		return false // transmitSmall waits, or returns the error
	}
	s.lossy = true
	s.pair.mesh.charge(m.op, len(m.p), false)
	return true
}

// transmitSmall sends small messages on a stream of the first connection until the association ends.
func (s *association) transmitSmall() error {
	stream, err := s.conn.OpenUniStreamSync(s.ctx)
	if err != nil {
		return err
	}
	p := s.pair
	p.mu.Lock()
	s.small = stream
	p.mu.Unlock()
	var buf []byte
	for {
		batch, ok := p.nextSmall(s)
		if !ok {
			return nil
		}
		buf = buf[:0]
		for _, m := range batch {
			if buf, err = m.header(p).Append(buf, m.p); err != nil {
				return err
			}
			buf = append(buf, m.p...)
		}
		if _, err := stream.Write(buf); err != nil {
			return err
		}
		for _, m := range batch {
			p.mesh.charge(m.op, len(m.p), false)
		}
	}
}

// transmit sends shards over a lane until the association ends.
func (s *association) transmit(conn *quicgo.Conn, lane int) error {
	stream, err := conn.OpenUniStreamSync(s.ctx)
	if err != nil {
		return err
	}
	var head []byte
	for {
		h, b, ok := s.pair.nextShard(s, lane)
		if !ok {
			return nil
		}
		if head, err = h.Append(head[:0], b); err != nil {
			return err
		}
		if _, err := stream.Write(head); err != nil {
			return err
		}
		if _, err := stream.Write(b); err != nil {
			return err
		}
		s.pair.mesh.charge(h.Op, len(b), false)
	}
}

// receive reads data frames from one stream and stores them in the pair's inbox. It waits while the inbox is full.
func (s *association) receive(r *wire.Reader) error {
	p := s.pair
	var buf []byte
	for {
		h, err := r.Header()
		if err != nil {
			return err
		}
		switch {
		case h.Kind != wire.KindData:
			return broken("kind %d on a stream of data", h.Kind)
		case h.Sender != p.other:
			return broken("sender is worker %d by its certificate, worker %d by its frame", p.other, h.Sender)
		case h.Run != p.mesh.run:
			return broken("a frame of run %s in run %s", h.Run, p.mesh.run)
		}
		p.mu.Lock()
		s.lossy = true
		for p.association == s && !p.in.fits(h) {
			p.change.Wait()
		}
		if p.association != s {
			p.mu.Unlock()
			return nil
		}
		dst, err := p.in.place(h)
		p.mu.Unlock()
		if err != nil {
			return err
		}
		b, err := r.Payload(h, pick(dst, buf))
		if err != nil {
			return err
		}
		if dst == nil {
			buf, b = b, copied(b)
		}
		p.mu.Lock()
		if p.association == s {
			p.used = max(p.used, uint64(h.Epoch)+1)
			p.in.put(h, b, dst != nil)
			p.change.Broadcast()
		}
		p.mu.Unlock()
	}
}

func pick(dst, buf []byte) []byte {
	if dst != nil {
		return dst
	}
	return buf
}

// PairStats describes the connection between a worker of this process and another worker.
type PairStats struct {
	Self, Other uint32
	Connected   bool
	Relayed     bool   // through the coordinator
	Reason      string // why it is not connected, or why it last broke; "" if neither
	Lanes       int
	Backlog     int           // bytes that wait to be sent
	Parked      int           // bytes received that no Recv has taken
	RTT         time.Duration // round trip of the last heartbeat; 0 before the first
	Lost        float64       // share of the packets sent in this association that were lost, 0 to 1
	Sent        int64         // bytes of packets in this association, copies included
	Received    int64
}

func (p *pair) stats() PairStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := PairStats{
		Self:      p.self,
		Other:     p.other,
		Connected: p.association != nil || p.local,
		Backlog:   p.out.bytes,
		Parked:    p.in.bytes,
	}
	if p.why != nil {
		out.Reason = fmt.Sprint(p.why)
	}
	if s := p.association; s != nil {
		out.Relayed, out.Lanes, out.RTT = s.relayed(), len(s.lanes), s.pulse.roundTrip()
		var lost, sent uint64
		for _, c := range append(s.lanes[:len(s.lanes):len(s.lanes)], s.conn) {
			x := c.ConnectionStats()
			lost, sent = lost+x.PacketsLost, sent+x.PacketsSent
			out.Sent, out.Received = out.Sent+int64(x.BytesSent), out.Received+int64(x.BytesReceived)
		}
		out.Sent += s.copied.Load()
		out.Lost = share(lost, sent)
	}
	return out
}
