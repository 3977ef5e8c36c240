package collective

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/zeebo/blake3"
)

// FrameSums describes the frames that a worker exchanged with a peer. If both workers are honest, what one sent is what
// the other received.
type FrameSums struct {
	Peer     int    `cbor:"0,keyasint"`
	Sent     Frames `cbor:"1,keyasint,omitzero"`
	Received Frames `cbor:"2,keyasint,omitzero"`
}

// Frames are the frames of one direction. The zero value stands for no frame.
type Frames struct {
	Bytes int64    `cbor:"0,keyasint,omitempty"` // payload
	Count int      `cbor:"1,keyasint"`
	Sum   FrameSum `cbor:"2,keyasint"` // of the last frame
}

// FrameSum is a BLAKE3 digest of a frame and of the sum of the frame before it in its direction.
type FrameSum [16]byte

// Frame is a frame that was received.
type Frame struct {
	Op      string
	Payload []byte
}

// Exchange is what a worker exchanged with a peer until now.
type Exchange struct {
	Peer      int        `cbor:"0,keyasint"`
	Sent      []FrameSum `cbor:"1,keyasint,omitempty"` // of each frame
	SentBytes int64      `cbor:"2,keyasint,omitempty"`
	Received  Frames     `cbor:"3,keyasint,omitzero"`
	frames    []Frame    // received
}

// Witness is a Link that digests the frames of each peer, and keeps the received ones, between Begin and End.
type Witness struct {
	Link
	peers  map[int]*Exchange // nil: off
	hasher *blake3.Hasher    // nil before the first frame
}

// next returns the sum of a frame that follows one with the sum before.
func (w *Witness) next(before FrameSum, op string, p []byte) (s FrameSum) {
	if w.hasher == nil {
		w.hasher = blake3.New()
	}
	h := w.hasher
	h.Reset()
	var sizes [8]byte
	binary.LittleEndian.PutUint32(sizes[:], uint32(len(op)))
	binary.LittleEndian.PutUint32(sizes[4:], uint32(len(p)))
	for _, part := range [][]byte{before[:], sizes[:], []byte(op), p} {
		_, _ = h.Write(part) // it never fails
	}
	copy(s[:], h.Sum(nil))
	return s
}

// Begin forgets all frames so far and digests the next ones.
func (w *Witness) Begin() { w.peers = map[int]*Exchange{} }

// End stops it. It returns what was exchanged since Begin, by ascending peer; nil if it was off.
func (w *Witness) End() (all []Exchange) {
	for _, id := range slices.Sorted(maps.Keys(w.peers)) {
		all = append(all, *w.peers[id])
	}
	w.peers = nil
	return all
}

// Sums returns the sums of all frames.
func Sums(all []Exchange) (sums []FrameSums) {
	for _, x := range all {
		s := FrameSums{Peer: x.Peer, Received: x.Received}
		if n := len(x.Sent); n > 0 {
			s.Sent = Frames{Bytes: x.SentBytes, Count: n, Sum: x.Sent[n-1]}
		}
		sums = append(sums, s)
	}
	return sums
}

// Received returns the received frames by peer.
func Received(all []Exchange) map[int][]Frame {
	frames := map[int][]Frame{}
	for _, x := range all {
		frames[x.Peer] = x.frames
	}
	return frames
}

func (w *Witness) with(peer int) *Exchange {
	x := w.peers[peer]
	if x == nil {
		x = &Exchange{Peer: peer}
		w.peers[peer] = x
	}
	return x
}

// Send implements [Link].
func (w *Witness) Send(to int, epoch uint32, seq uint64, op string, p []byte) error {
	if w.peers != nil {
		x := w.with(to)
		var last FrameSum
		if n := len(x.Sent); n > 0 {
			last = x.Sent[n-1]
		}
		x.Sent, x.SentBytes = append(x.Sent, w.next(last, op, p)), x.SentBytes+int64(len(p))
	}
	return w.Link.Send(to, epoch, seq, op, p)
}

// Recv implements [Link].
func (w *Witness) Recv(ctx context.Context, from int, epoch uint32) (seq uint64, op string, p []byte, err error) {
	seq, op, p, err = w.Link.Recv(ctx, from, epoch)
	if err == nil && w.peers != nil {
		x := w.with(from)
		x.Received.Bytes += int64(len(p))
		x.Received.Count++
		x.Received.Sum = w.next(x.Received.Sum, op, p)
		x.frames = append(x.frames, Frame{op, slices.Clone(p)}) // a relay may send p on
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
