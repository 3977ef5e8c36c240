package quic

import (
	"math/bits"

	"brood/transport/wire"
)

// smallest is the largest size in bytes of a message that is sent with others on the pair's first connection; larger
// ones use the lanes.
const smallest = 16 << 10

// outbox holds the messages that wait to be sent to a worker. The pair's lock guards it.
type outbox struct {
	small []message
	bulk  []*outgoing
	bytes int
	next  uint64 // order of the next message
}

// outgoing is a message whose first at bytes were handed to a lane.
type outgoing struct {
	message
	at int
}

// header returns the header of a message sent in one frame.
func (m message) header(p *pair) wire.Header {
	return wire.Header{
		Kind:   wire.KindData,
		Run:    p.mesh.run,
		Sender: p.self,
		Op:     m.op,
		Epoch:  m.epoch,
		Order:  m.order,
		Seq:    m.seq,
		Total:  uint64(len(m.p)),
	}
}

// shards returns the number of pieces of bulk that wait, at most most.
func (o *outbox) shards(most int) (n int) {
	for _, m := range o.bulk {
		if n += (len(m.p) - m.at + shard - 1) / shard; n >= most {
			return most
		}
	}
	return n
}

// nextShard waits for a piece of bulk for a lane and returns its header and payload; false once the association is
// over. Idle lanes with lower numbers take pieces first: a lane's congestion window fits its recent rate, and an idle
// lane starts slowly.
func (p *pair) nextShard(s *association, lane int) (wire.Header, []byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.idle |= 1 << lane
	before := s.idle & (1<<lane - 1)
	for p.association == s && p.out.shards(wire.MaxLanes+1) <= bits.OnesCount32(before) {
		p.change.Wait()
		before = s.idle & (1<<lane - 1)
	}
	s.idle &^= 1 << lane
	if p.association != s {
		return wire.Header{}, nil, false
	}
	s.lossy = true
	m := p.out.bulk[0]
	h := m.header(p)
	h.Offset = uint64(m.at)
	b := m.p[m.at:min(m.at+shard, len(m.p))]
	m.at += len(b)
	p.out.bytes -= len(b)
	if m.at == len(m.p) {
		p.out.bulk[0] = nil
		p.out.bulk = p.out.bulk[1:]
	}
	if len(p.out.bulk) > 0 {
		p.change.Broadcast() // lanes with lower numbers may have stopped waiting
	}
	return h, b, true
}

// nextSmall waits for small messages and takes about 4*smallest bytes of them for one write; false once the association
// is over.
func (p *pair) nextSmall(s *association) ([]message, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.writing = false
	for len(p.out.small) == 0 && p.association == s {
		p.change.Wait()
	}
	if p.association != s {
		return nil, false
	}
	n, size := 0, 0
	for n < len(p.out.small) && size < 4*smallest {
		size += wire.HeaderSize + len(p.out.small[n].p)
		p.out.bytes -= p.out.small[n].cost()
		n++
	}
	batch := p.out.small[:n:n]
	p.out.small = p.out.small[n:]
	s.writing, s.lossy = true, true
	return batch, true
}
