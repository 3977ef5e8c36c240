package quic

import (
	"math/bits"

	"brood/transport/wire"
)

// smallest is the size in bytes up to which a message goes with others on the pair's own connection; a larger one goes
// to the lanes.
const smallest = 16 << 10

// outbox is what waits to be sent to a worker. The pair's lock guards it.
type outbox struct {
	small []message
	bulk  []*outgoing
	bytes int
	next  uint64 // order of the next message
}

// outgoing is a message of which the first bytes are on their way.
type outgoing struct {
	message
	at int
}

// header is that of a message's only frame.
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

// shards are how many pieces of bulk wait, counted as far as most.
func (o *outbox) shards(most int) (n int) {
	for _, m := range o.bulk {
		if n += (len(m.p) - m.at + shard - 1) / shard; n >= most {
			return most
		}
	}
	return n
}

// nextShard waits for a piece of bulk for a lane, of which the first are preferred: a lane carries as much at once as
// it has lately, and one that was idle begins slowly. It is false when the association is over.
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
		p.change.Broadcast() // fewer are before the other lanes now
	}
	return h, b, true
}

// nextSmall waits for small messages and takes as many as make a good write.
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
	s.writing = true
	return batch, true
}
