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

// Link is the way from one worker to another, in one direction. The zero Link takes no time.
type Link struct {
	Rate   float64       // bytes a second; 0 is no limit
	Delay  time.Duration // of every packet
	Jitter time.Duration // at most so much more, evenly; frames of a pair keep their order
	Loss   float64       // share of packets that vanish, 0 to below 1
	// Line is what was measured of such a link, in place of its rate and its delay; nil: they are what they say.
	Line *Line
}

// Check says what is wrong with a link.
func (l Link) Check() error {
	switch {
	case !(l.Rate >= 0) || math.IsInf(l.Rate, 0):
		return fmt.Errorf("a rate of %g bytes a second: give a positive number, or 0 for no limit", l.Rate)
	case l.Delay < 0 || l.Delay > time.Minute || l.Jitter < 0 || l.Jitter > time.Minute:
		return fmt.Errorf("a delay of %s and a jitter of %s: each is from 0 to a minute", l.Delay, l.Jitter)
	case !(l.Loss >= 0 && l.Loss < 1):
		return fmt.Errorf("a loss of %g: give a share of packets from 0 to below 1", l.Loss)
	case l.Line != nil && (len(l.Line.Bytes) < 2 || len(l.Line.Seconds) != len(l.Line.Bytes) ||
		len(l.Line.Processor) != len(l.Line.Bytes)):
		return fmt.Errorf("a line of %d, %d and %d figures: measure frames of two sizes at least", len(l.Line.Bytes),
			len(l.Line.Seconds), len(l.Line.Processor))
	case l.Line != nil && l.Line.Playing != nil && len(l.Line.Playing) != len(l.Line.Bytes):
		return fmt.Errorf("a line of %d figures, of which %d say what its shape takes: give one for each, or none",
			len(l.Line.Bytes), len(l.Line.Playing))
	}
	return nil
}

// A packet holds so many bytes of payload; a frame has a header beside it.
const (
	packetBytes = 1200
	frameBytes  = 64
)

// rate is the bytes a second at which a pair gets a frame of so many through, 0 for no limit. Where packets are lost
// that is at most sqrt(3/2)*packet/(rtt*sqrt(loss)) of each connection (Mathis, Semke, Mahdavi, Ott 1997), of which a
// frame takes one for each piece that it is cut into, as far as there are so many.
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

// lost is how many packets a frame of so many bytes has, and the chance that some of them vanish.
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

// queue is something that carries one thing after the other, such as a network card: the nanosecond at which it is
// free.
type queue int64

// pass carries bytes that come at a time, and says when the last has left.
func (q *queue) pass(at int64, bytes, rate float64) int64 {
	if rate == 0 {
		return at
	}
	return q.lasts(at, nanos(bytes/rate))
}

// lasts carries what takes so many nanoseconds and comes at a time, and says when it is through.
func (q *queue) lasts(at, nanos int64) int64 {
	*q = queue(max(at, int64(*q)) + nanos)
	return int64(*q)
}

// costs is how long a frame that begins at a time keeps the processors of this end busy; by so many times as much a
// slower one is behind.
func (n *node) costs(l *Line, bytes float64, begins int64) int64 {
	used := l.uses(bytes)
	n.catchUp(begins)
	n.owed += nanos(used * n.world.cfg.Owed)
	n.counted += nanos(used)
	return nanos(used * max(1, n.world.cfg.Crowded))
}

// slowest is how long bytes take at the lower of two rates, where 0 is no limit.
func slowest(bytes, a, b float64) (d int64) {
	for _, r := range []float64{a, b} {
		if r > 0 {
			d = max(d, nanos(bytes/r))
		}
	}
	return d
}

// nanos are those of so many seconds.
func nanos(seconds float64) int64 { return int64(seconds*1e9 + 0.5) }

// carries is pass of what takes so many nanoseconds, [unlimited] where there is no limit.
func (q *queue) carries(at, takes int64) int64 {
	if takes == unlimited {
		return at
	}
	return q.lasts(at, takes)
}

const unlimited = -1

func takes(bytes, rate float64) int64 {
	if rate == 0 {
		return unlimited
	}
	return nanos(bytes / rate)
}

// toll is what a frame of so many bytes takes on its way over a link, but for what it waits behind others.
type toll struct {
	link           Link
	bytes          int
	own            int64   // of each end
	up, line, down int64   // on the network cards and between them
	alone          int64   // on the slower of sending and the link
	packets, lost  float64 // and the chance that some of them vanish
}

// toll returns it for a frame of the given payload.
func (n *node) toll(l Link, bytes int) toll {
	w, wire, rate := n.world, n.wire(bytes), l.rate(float64(bytes))
	packets, lost := l.lost(wire)
	return toll{
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

// frame is what travels: its payload is as long as it would be, and says nothing.
type frame struct {
	epoch uint32
	seq   uint64
	op    string
	p     []byte
	first int64 // when its first byte arrives
	at    int64 // and its last
}

// errGone answers a worker that was put out.
var errGone = errors.New("the worker is gone")

// Send implements collective.Link.
func (n *node) Send(to int, epoch uint32, seq uint64, op string, p []byte) error {
	n.compute()
	w := n.world
	if to < 0 || to >= len(w.at) {
		return fmt.Errorf("there is no worker %d", to)
	}
	dst, way := w.at[to], n.to(to)
	t := n.toll(w.cfg.Link(n.machine, w.machine(to)), len(p))
	n.keep(way)
	began := n.now
	left, at, long := n.leaves(&t, &way.sentTo)
	crosses := w.crosses(n.machine, w.machine(to))
	if !crosses {
		at = max(way.newest, at)
		way.newest = at
	}
	if dst == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := frame{epoch, seq, op, p, at - min(left-n.now, long), at}
	if crosses {
		long = min(left-n.now, long)
		w.cross(&parcel{frame: f, from: n, to: dst, way: way, left: left, long: long, late: at - left, sent: began})
	} else {
		dst.deliver(n.id, f)
	}
	return nil
}

// leaves takes a frame out: when its last byte has left and when it is there, and how long its bytes take.
func (n *node) leaves(t *toll, out *sentTo) (left, at, long int64) {
	n.now += t.own
	if line := t.link.Line; line != nil {
		bytes := float64(t.bytes)
		cost := n.costs(line, bytes, n.now)
		sent := n.card.lasts(n.now, cost)
		long = nanos(line.takes(bytes))
		left = max(sent, out.line.lasts(n.now, long))
		at = left + nanos(line.Seconds[0])
	} else {
		left = max(n.up.carries(n.now, t.up), out.line.carries(n.now, t.line))
		long = t.alone
		at = left + nanos(n.world.cfg.Hop) + t.link.delayed(t.packets, t.lost, n.chances)
	}
	n.sends(int64(t.bytes), out)
	return left, at, long
}

// sends counts what was sent.
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
	n.keep(nil)
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
	t := n.toll(w.cfg.Link(w.machine(from), n.machine), len(f.p))
	n.arrives(&t, f.first, f.at)
	return f.seq, f.op, f.p, nil
}

// arrives takes a frame in whose first and last byte are there.
func (n *node) arrives(t *toll, first, last int64) {
	at := last
	if t.down != unlimited { // behind others
		at = n.receive(first, last, t.down)
	}
	if l := t.link.Line; l != nil {
		at = max(at, n.card.lasts(first, n.costs(l, float64(t.bytes), first)))
	}
	n.now = max(n.now, at) + t.own
}

// wire is the bytes on the wire of a frame with so many.
func (n *node) wire(bytes int) float64 {
	return float64(bytes)*(1+n.world.cfg.Overhead) + frameBytes
}

// ended is why a worker is not to wait any more. The caller holds the lock.
func (n *node) ended(ctx context.Context) error {
	if n.gone {
		return errGone
	}
	return ctx.Err()
}

// taken is the next frame of this epoch from a worker, once it is there. The caller holds the lock.
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

// receive is when the last byte of a frame has come through the worker's network card. Frames are asked for in the
// programme's order; one that came before the card was last busy found it free.
func (n *node) receive(first, last, takes int64) int64 {
	if last < n.since {
		return last
	}
	if first >= int64(n.down) {
		n.since = first
	}
	return max(last, n.down.lasts(first, takes))
}

// take is the next frame of this epoch from a worker. Older ones were overtaken by an abort; newer ones stay.
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
