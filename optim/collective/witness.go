package collective

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/zeebo/blake3"
)

// FrameSums describes the frames that a worker exchanged with a peer, in order: their payload and the digests of
// operations and payloads. If both workers are honest, what one sent is what the other received.
type FrameSums struct {
	Peer     int    `cbor:"0,keyasint"`
	Sent     Frames `cbor:"1,keyasint,omitzero"`
	Received Frames `cbor:"2,keyasint,omitzero"`
}

// Frames are the frames of one direction. The zero value stands for no frame.
type Frames struct {
	Bytes int64    `cbor:"0,keyasint,omitempty"` // payload
	Sum   [16]byte `cbor:"1,keyasint"`           // BLAKE3
}

// Frame is a frame that was received.
type Frame struct {
	Op      string
	Payload []byte
}

// Witness is a Link that digests the frames of each peer, and keeps the received ones, between Begin and End.
type Witness struct {
	Link
	peers map[int]*peerFrames // nil: off
}

// peerFrames are the frames exchanged with one peer.
type peerFrames struct {
	sent, received direction
	kept           []Frame
}

// direction digests the frames of one direction; the hasher is nil before the first one.
type direction struct {
	bytes  int64
	hasher *blake3.Hasher
}

func (d *direction) add(op string, p []byte) {
	if d.hasher == nil {
		d.hasher = blake3.New()
	}
	var sizes [8]byte
	binary.LittleEndian.PutUint32(sizes[:], uint32(len(op)))
	binary.LittleEndian.PutUint32(sizes[4:], uint32(len(p)))
	for _, part := range [][]byte{sizes[:], []byte(op), p} {
		_, _ = d.hasher.Write(part) // it never fails
	}
	d.bytes += int64(len(p))
}

func (d *direction) frames() (f Frames) {
	if d.hasher != nil {
		f.Bytes = d.bytes
		copy(f.Sum[:], d.hasher.Sum(nil))
	}
	return f
}

// Begin forgets all frames so far and digests the next ones.
func (w *Witness) Begin() { w.peers = map[int]*peerFrames{} }

// End stops it. It returns the sums by peer, in ascending order, and the received frames by peer.
func (w *Witness) End() (sums []FrameSums, received map[int][]Frame) {
	received = map[int][]Frame{}
	for _, id := range slices.Sorted(maps.Keys(w.peers)) {
		p := w.peers[id]
		sums = append(sums, FrameSums{id, p.sent.frames(), p.received.frames()})
		received[id] = p.kept
	}
	w.peers = nil
	return sums, received
}

func (w *Witness) peer(id int) *peerFrames {
	p := w.peers[id]
	if p == nil {
		p = &peerFrames{}
		w.peers[id] = p
	}
	return p
}

// Send implements [Link].
func (w *Witness) Send(to int, epoch uint32, seq uint64, op string, p []byte) error {
	if w.peers != nil {
		w.peer(to).sent.add(op, p)
	}
	return w.Link.Send(to, epoch, seq, op, p)
}

// Recv implements [Link].
func (w *Witness) Recv(ctx context.Context, from int, epoch uint32) (seq uint64, op string, p []byte, err error) {
	seq, op, p, err = w.Link.Recv(ctx, from, epoch)
	if err == nil && w.peers != nil {
		peer := w.peer(from)
		peer.received.add(op, p)
		peer.kept = append(peer.kept, Frame{op, slices.Clone(p)}) // a relay may send p on
	}
	return seq, op, p, err
}

// Replay is the Link of rounds that are executed again in the place of another worker: it returns the frames that the
// worker received, and drops those that are sent.
type Replay struct {
	Received map[int][]Frame // by peer; consumed
	seen     map[int]uint64
}

// Send implements [Link].
func (*Replay) Send(int, uint32, uint64, string, []byte) error { return nil }

// Recv implements [Link].
func (r *Replay) Recv(_ context.Context, from int, _ uint32) (seq uint64, op string, p []byte, err error) {
	frames := r.Received[from]
	if len(frames) == 0 {
		return 0, "", nil, fmt.Errorf("there is no further frame of worker %d", from)
	}
	if r.seen == nil {
		r.seen = map[int]uint64{}
	}
	r.seen[from]++
	r.Received[from] = frames[1:]
	return r.seen[from], frames[0].Op, frames[0].Payload, nil
}

// Send sends a frame to a worker outside the collectives; it takes ownership of p.
func (c *Comm) Send(to int, op Op, p []byte) error { return c.send(to, op, p) }

// Receive returns the next frame from a worker, which must have operation op and may have any size.
func (c *Comm) Receive(ctx context.Context, from int, op Op) ([]byte, error) {
	seq, got, p, err := c.Link.Recv(ctx, from, c.Epoch)
	if err != nil {
		return nil, fmt.Errorf("%s: receive from worker %d: %w", op, from, err)
	}
	c.seen[from]++
	return p, c.inStep(from, op, c.seen[from], len(p), seq, got, p)
}
