package quic

import "brood/transport/wire"

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
	return wire.Header{Kind: wire.KindData, Run: p.mesh.run, Sender: p.self, Op: m.op, Epoch: m.epoch, Order: m.order, Seq: m.seq, Total: uint64(len(m.p))}
}

// nextShard waits for a piece of bulk. It is false when the association is over.
func (p *pair) nextShard(s *association) (wire.Header, []byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.out.bulk) == 0 && p.association == s {
		p.change.Wait()
	}
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
