package quic

import (
	"bytes"
	"math"

	"brood/transport/wire"
)

// message is what a program sends.
type message struct {
	order uint64 // in this direction of the pair, since its association began
	epoch uint32
	seq   uint64
	op    string
	p     []byte
}

const (
	shard     = wire.MaxData // a message is cut into pieces of this size
	maxParked = 32 << 20     // bytes that may wait to be received, beside the message that is next
	perEntry  = 160          // what a message costs besides its payload
	// maxMessage is the largest message that is received.
	maxMessage = min(16<<30, math.MaxInt/4)
)

// inbox puts the messages of an association together and in order. The pair's lock guards it.
type inbox struct {
	wake  chan struct{} // holds a token when ready, or the pair, may have changed
	ready []message     // whole and in order
	next  uint64        // order of the message that comes after those
	parts map[uint64]*part
	bytes int // of ready and parts
}

// cost is what a message takes of a bound.
func (m message) cost() int { return len(m.p) + perEntry }

// part is a message of which something came.
type part struct {
	message
	total  uint64
	entire bool            // p is there
	taken  map[uint64]bool // offsets that came or are being read
	got    uint64
	held   int               // bytes of it that came or are being read
	pieces map[uint64][]byte // before whole is there
	whole  []byte            // made once a sixteenth came: a claimed total alone allocates nothing
}

// reset forgets what is not whole; a new association begins.
func (in *inbox) reset() {
	for _, q := range in.parts {
		in.bytes -= q.held + perEntry
	}
	in.parts, in.next = map[uint64]*part{}, 0
}

// take removes the next message of an epoch, and all older ones before it.
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

// fits says whether a frame may be read now. Where nothing is ready, the message that comes next always may: it is what
// somebody waits for.
func (in *inbox) fits(h wire.Header) bool {
	return h.Order <= in.next && len(in.ready) == 0 || in.bytes+int(h.Length)+perEntry <= maxParked
}

// place reserves what a frame brings, and returns where to read it if that is known: nil is anywhere.
func (in *inbox) place(h wire.Header) ([]byte, error) {
	if h.Total > maxMessage {
		return nil, broken("a message of %d bytes", h.Total)
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
			in.hold(q, h)
			return nil, nil
		}
		q.taken, q.pieces = map[uint64]bool{}, map[uint64][]byte{}
	}
	if q.total != h.Total || q.epoch != h.Epoch || q.seq != h.Seq || q.op != h.Op {
		return nil, broken("message %d is two messages", h.Order)
	}
	if q.taken == nil || q.taken[h.Offset] {
		return nil, broken("bytes at %d of message %d again", h.Offset, h.Order)
	}
	q.taken[h.Offset] = true
	in.hold(q, h)
	if q.whole == nil && q.got > 0 && 16*q.got >= q.total {
		q.assemble()
	}
	if q.whole == nil {
		return nil, nil
	}
	end := h.Offset + uint64(h.Length)
	return q.whole[h.Offset:h.Offset:end], nil
}

func (in *inbox) hold(q *part, h wire.Header) {
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

// put completes what place reserved. Unless p was read where place said, the caller must not use it again.
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

// copied is a copy of what was read into a buffer that is used again.
func copied(p []byte) []byte {
	if len(p) == 0 {
		return []byte{}
	}
	return bytes.Clone(p)
}
