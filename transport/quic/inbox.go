package quic

import (
	"bytes"
	"math"

	"brood/transport/wire"
)

// message is one frame of a Link, whole.
type message struct {
	order uint64 // number in this direction of the pair since its association began
	epoch uint32
	seq   uint64
	op    string
	p     []byte
}

const (
	shard     = wire.MaxData // messages are split into pieces of this size
	maxParked = 32 << 20     // bytes that may wait for Recv, apart from the message that is next
	perEntry  = 160          // bytes counted for a message in addition to its payload
	// maxMessage is the size in bytes of the largest message that is accepted.
	maxMessage = min(16<<30, math.MaxInt/4)
)

// inbox reassembles and orders the messages of an association. The pair's lock guards it.
type inbox struct {
	wake  chan struct{} // holds a token when ready, or the pair, may have changed
	ready []message     // complete and in order
	next  uint64        // order of the message after those in ready
	parts map[uint64]*part
	bytes int // size of ready and parts
}

// cost returns the bytes that a message counts against a limit.
func (m message) cost() int { return len(m.p) + perEntry }

// part is an incomplete message.
type part struct {
	message
	total  uint64
	entire bool            // p is complete
	taken  map[uint64]bool // offsets received or being read
	// got counts the bytes received.
	got    uint64
	held   int               // bytes received or being read
	pieces map[uint64][]byte // by offset, while whole is nil
	whole  []byte            // allocated once a sixteenth has come, so that a false total alone allocates nothing
}

// reset drops incomplete messages when an association ends.
func (in *inbox) reset() {
	for _, q := range in.parts {
		in.bytes -= q.held + perEntry
	}
	in.parts, in.next = map[uint64]*part{}, 0
}

// take removes the next message of an epoch and drops all older ones before it. It reports whether there was one, and
// whether it removed any.
func (in *inbox) take(epoch uint32) (m message, ok, freed bool) {
	for len(in.ready) > 0 {
		m = in.ready[0]
		if m.epoch > epoch {
			return message{}, false, freed
		}
		in.ready[0] = message{}
		in.ready = in.ready[1:]
		in.bytes -= m.cost()
		freed = true
		if m.epoch == epoch {
			if len(in.ready) > 0 {
				signal(in.wake)
			}
			return m, true, freed
		}
	}
	return message{}, false, freed
}

// fits reports whether the inbox has room for a frame. While no message is ready, frames of the next message always
// fit: Recv may wait for it.
func (in *inbox) fits(h wire.Header) bool {
	return h.Order <= in.next && len(in.ready) == 0 || in.bytes+int(h.Length)+perEntry <= maxParked
}

// place reserves room for a frame and returns the slice to read it into; nil means any buffer. It fails for a frame
// that contradicts the message's other frames or is out of range.
func (in *inbox) place(h wire.Header) ([]byte, error) {
	if h.Total > maxMessage {
		return nil, broken("a message of %d bytes, more than the limit of %d", h.Total, int64(maxMessage))
	}
	if h.Offset%shard != 0 || uint64(h.Length) != min(shard, h.Total-h.Offset) {
		return nil, broken("%d bytes at %d of a message of %d", h.Length, h.Offset, h.Total)
	}
	if h.Order < in.next {
		return nil, broken("message %d again", h.Order)
	}
	q := in.parts[h.Order]
	if q == nil {
		q = &part{message: message{order: h.Order, epoch: h.Epoch, seq: h.Seq, op: h.Op}, total: h.Total}
		in.parts[h.Order] = q
		in.bytes += perEntry
		if q.total <= shard {
			in.count(q, h)
			return nil, nil
		}
		q.taken, q.pieces = map[uint64]bool{}, map[uint64][]byte{}
	}
	if q.total != h.Total || q.epoch != h.Epoch || q.seq != h.Seq || q.op != h.Op {
		return nil, broken("message %d: its frames disagree", h.Order)
	}
	if q.taken == nil || q.taken[h.Offset] {
		return nil, broken("bytes at %d of message %d again", h.Offset, h.Order)
	}
	q.taken[h.Offset] = true
	in.count(q, h)
	if q.whole == nil && q.got > 0 && 16*q.got >= q.total {
		q.assemble()
	}
	if q.whole == nil {
		return nil, nil
	}
	end := h.Offset + uint64(h.Length)
	return q.whole[h.Offset:h.Offset:end], nil
}

func (in *inbox) count(q *part, h wire.Header) {
	q.held += int(h.Length)
	in.bytes += int(h.Length)
}

func (q *part) assemble() {
	q.whole = make([]byte, q.total)
	for at, b := range q.pieces {
		copy(q.whole[at:], b)
	}
	q.pieces = nil
}

// put completes what place reserved. If inPlace is false, the inbox owns p afterwards.
func (in *inbox) put(h wire.Header, p []byte, inPlace bool) {
	q := in.parts[h.Order]
	q.got += uint64(h.Length)
	switch {
	case q.taken == nil:
		q.p = p
	case inPlace:
	case q.whole != nil:
		copy(q.whole[h.Offset:], p)
	default:
		q.pieces[h.Offset] = p
	}
	if q.got < q.total {
		return
	}
	if q.taken != nil {
		if q.whole == nil {
			q.assemble()
		}
		q.p = q.whole
	}
	q.entire = true
	for q = in.parts[in.next]; q != nil && q.entire; q = in.parts[in.next] {
		delete(in.parts, in.next)
		in.next++
		in.ready = append(in.ready, q.message)
		signal(in.wake)
	}
}

// copied returns a copy of p, not nil if p is empty.
func copied(p []byte) []byte {
	if len(p) == 0 {
		return []byte{}
	}
	return bytes.Clone(p)
}
