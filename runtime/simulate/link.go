package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"brood/transport/quic"
	"brood/transport/wire"
)

// Link describes a connection from one worker to another, in one direction. The zero Link takes no time.
type Link struct {
	Rate   float64       // bytes per second; 0 means no limit
	Delay  time.Duration // of every packet
	Jitter time.Duration // maximum additional delay, uniformly distributed; frames of a pair keep their order
	Loss   float64       // share of lost packets, from 0 to below 1
}

// Check returns an error if the link is invalid.
func (l Link) Check() error {
	switch {
	case !(l.Rate >= 0) || math.IsInf(l.Rate, 0):
		return fmt.Errorf("a rate of %g bytes per second: give a positive number, or 0 for no limit", l.Rate)
	case l.Delay < 0 || l.Delay > time.Minute || l.Jitter < 0 || l.Jitter > time.Minute:
		return fmt.Errorf("a delay of %s and a jitter of %s: give each from 0 to a minute", l.Delay, l.Jitter)
	case !(l.Loss >= 0 && l.Loss < 1):
		return fmt.Errorf("a loss of %g: give a share of packets from 0 to below 1", l.Loss)
	}
	return nil
}

// packetBytes is the payload of a packet, frameBytes the size of a frame's header.
const (
	packetBytes = 1200
	frameBytes  = 64
)

// rate returns the bytes per second at which a pair transfers a frame of this size; 0 means no limit. With packet loss
// the limit of each connection is sqrt(3/2)*packet/(rtt*sqrt(loss)) (Mathis, Semke, Mahdavi, Ott 1997). A frame uses
// one connection for each of its pieces, up to the number of connections.
func (l Link) rate(bytes float64) float64 {
	if rtt := 2 * l.Delay; l.Loss > 0 && rtt > 0 {
		each := math.Sqrt(1.5/l.Loss) * packetBytes / rtt.Seconds()
		most := each * min(float64(quic.Lanes(rtt, l.Loss)), max(1, math.Ceil(bytes/wire.MaxData)))
		if l.Rate == 0 || most < l.Rate {
			return most
		}
	}
	return l.Rate
}

// lost returns the number of packets of a frame on the wire, and the probability that some of them are lost.
func (l Link) lost(bytes float64) (packets, lost float64) {
	if l.Loss > 0 {
		packets = math.Ceil(bytes / packetBytes)
		lost = 1 - math.Pow(1-l.Loss, packets)
	}
	return packets, lost
}

func (l Link) delayed(packets, lost float64, uniform func() float64) int64 {
	d := float64(l.Delay)
	if l.Jitter > 0 {
		d += float64(l.Jitter) * uniform()
	}
	if l.Loss > 0 {
		for ; uniform() < lost; lost = 1 - math.Pow(1-l.Loss, packets) {
			d += 2 * float64(l.Delay)
			packets = max(1, packets*l.Loss)
		}
	}
	return int64(d)
}

// queue is a resource that is used sequentially, such as a network card: the time in nanoseconds at which it is free.
type queue int64

// pass occupies the queue with bytes that arrive at a time, and returns when the last byte has left. A rate of 0 means
// no limit.
func (q *queue) pass(at int64, bytes, rate float64) int64 {
	if rate == 0 {
		return at
	}
	return q.occupy(at, nanos(bytes/rate))
}

// occupy occupies the queue for a number of nanoseconds, starting at a time or when it is free, and returns the end.
func (q *queue) occupy(at, nanos int64) int64 {
	*q = queue(max(at, int64(*q)) + nanos)
	return int64(*q)
}

// slowest returns the nanoseconds that bytes take at the lower of two rates, where 0 means no limit.
func slowest(bytes, a, b float64) (d int64) {
	for _, r := range []float64{a, b} {
		if r > 0 {
			d = max(d, nanos(bytes/r))
		}
	}
	return d
}

// nanos converts seconds to nanoseconds.
func nanos(seconds float64) int64 { return int64(seconds*1e9 + 0.5) }

// carries occupies the queue for a number of nanoseconds; [unlimited] passes without delay.
func (q *queue) carries(at, takes int64) int64 {
	if takes == unlimited {
		return at
	}
	return q.occupy(at, takes)
}

const unlimited = -1

func takes(bytes, rate float64) int64 {
	if rate == 0 {
		return unlimited
	}
	return nanos(bytes / rate)
}

// frameCost has the times of a frame on its conn over a link, without waiting for other frames.
type frameCost struct {
	link           Link
	bytes          int
	own            int64   // processing at each end
	up, line, down int64   // on the sender's network card, the link and the receiver's card
	alone          int64   // on the slower of the sender's card and the link
	packets, lost  float64 // number of packets, and the probability that some of them are lost
}

// cost returns the frameCost of a frame with this payload in bytes.
func (n *node) cost(l Link, bytes int) frameCost {
	w, wire, rate := n.world, n.wire(bytes), l.rate(float64(bytes))
	packets, lost := l.lost(wire)
	return frameCost{
		link:    l,
		bytes:   bytes,
		own:     nanos(float64(bytes) * w.cfg.PerByte),
		up:      takes(wire, w.cfg.Up),
		line:    takes(wire, rate),
		down:    takes(wire, w.cfg.Down),
		alone:   slowest(wire, w.cfg.Up, rate),
		packets: packets,
		lost:    lost,
	}
}

// frame is a frame in transit. The payload has its real length and no content.
type frame struct {
	epoch uint32
	seq   uint64
	op    string
	p     []byte
	first int64 // arrival of its first byte
	at    int64 // arrival of its last byte
}

// errGone is the error of calls of a worker that has ended.
var errGone = errors.New("the worker is gone")

// Send implements collective.Link.
func (n *node) Send(to int, epoch uint32, seq uint64, op string, p []byte) error {
	n.compute()
	w := n.world
	if to < 0 || to >= len(w.at) {
		return fmt.Errorf("there is no worker %d", to)
	}
	dst, conn := w.at[to], n.to(to)
	t := n.cost(w.cfg.Link(n.machine, w.machine(to)), len(p))
	n.saveStep(conn)
	began := n.now
	left, at, long := n.leaves(&t, &conn.sentTo)
	crosses := w.crosses(n.machine, w.machine(to))
	if !crosses {
		at = max(conn.newest, at)
		conn.newest = at
	}
	if dst == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := frame{epoch, seq, op, p, at - min(left-n.now, long), at}
	if crosses {
		long = min(left-n.now, long)
		w.cross(&parcel{frame: f, from: n, to: dst, conn: conn, left: left, long: long, late: at - left, sent: began})
	} else {
		dst.deliver(n.id, f)
	}
	return nil
}

// leaves sends a frame. It returns when its last byte has left, when that byte arrives, and how long its bytes take.
func (n *node) leaves(t *frameCost, out *sentTo) (left, at, long int64) {
	n.now += t.own
	left = max(n.up.carries(n.now, t.up), out.line.carries(n.now, t.line))
	at = left + nanos(n.world.cfg.Hop) + t.link.delayed(t.packets, t.lost, n.chances)
	n.sends(int64(t.bytes), out)
	return left, at, t.alone
}

// sends counts a sent frame.
func (n *node) sends(bytes int64, out *sentTo) {
	out.bytes += bytes
	n.sent += bytes
	n.frames++
	if !n.sending {
		n.sending = true
		n.hops++
	}
}

// Recv implements collective.Link.
func (n *node) Recv(ctx context.Context, from int, epoch uint32) (uint64, string, []byte, error) {
	n.compute()
	n.saveStep(nil)
	n.sending = false
	w := n.world
	if from < 0 || from >= len(w.at) {
		return 0, "", nil, fmt.Errorf("there is no worker %d", from)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f, err := n.taken(ctx, from, epoch)
	if err != nil {
		return 0, "", nil, err
	}
	t := n.cost(w.cfg.Link(w.machine(from), n.machine), len(f.p))
	n.arrives(&t, f.first, f.at)
	return f.seq, f.op, f.p, nil
}

// arrives receives a frame whose first and last bytes arrive at these times.
func (n *node) arrives(t *frameCost, first, last int64) {
	at := last
	if t.down != unlimited { // may wait for other frames
		at = n.receive(first, last, t.down)
	}
	n.now = max(n.now, at) + t.own
}

// wire returns the bytes on the wire of a frame with this payload.
func (n *node) wire(bytes int) float64 {
	return float64(bytes)*(1+n.world.cfg.Overhead) + frameBytes
}

// ended returns an error if the worker must not wait any longer. The caller holds the lock.
func (n *node) ended(ctx context.Context) error {
	if n.gone {
		return errGone
	}
	return ctx.Err()
}

// taken waits for the next frame of this epoch from a worker. The caller holds the lock.
func (n *node) taken(ctx context.Context, from int, epoch uint32) (frame, error) {
	for {
		if err := n.ended(ctx); err != nil {
			return frame{}, err
		}
		if f, ok := n.take(from, epoch); ok {
			return f, nil
		}
		n.wait(from)
	}
}

// receive returns when the last byte of a frame has passed the worker's network card. Frames are received in the order
// in which the program requests them; one that arrived before the card was last busy does not wait.
func (n *node) receive(first, last, takes int64) int64 {
	if last < n.since {
		return last
	}
	if first >= int64(n.down) {
		n.since = first
	}
	return max(last, n.down.occupy(first, takes))
}

// take returns the next frame of this epoch from a worker. It drops frames of earlier epochs, which were aborted, and
// keeps those of later epochs.
func (n *node) take(from int, epoch uint32) (frame, bool) {
	box := n.boxes[from]
	for len(box) > 0 && box[0].epoch < epoch {
		box = box[1:]
	}
	n.boxes[from] = box
	if len(box) == 0 || box[0].epoch > epoch {
		return frame{}, false
	}
	f := box[0]
	box[0] = frame{}
	n.boxes[from] = box[1:]
	return f, true
}
