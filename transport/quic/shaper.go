package quic

import (
	"bytes"
	"container/heap"
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Shape is the speed of a link in one direction. The zero Shape changes nothing.
type Shape struct {
	Rate   int64         // bytes a second; 0 is no limit
	Delay  time.Duration // added to every packet
	Jitter time.Duration // random extra delay, at most this; packets keep their order
	Loss   float64       // share of packets dropped, 0 to 1
}

// Check returns an error if a value is out of range.
func (s Shape) Check() error {
	if s.Rate < 0 || s.Delay < 0 || s.Jitter < 0 || !(s.Loss >= 0 && s.Loss <= 1) || s.Delay > time.Minute ||
		s.Jitter > time.Minute {
		return fmt.Errorf("shape: %+v: rate, delay and jitter are positive, delay and jitter at most a minute, "+
			"and loss is between 0 and 1", s)
	}
	return nil
}

// queueTime and queueSize limit what waits for a slow link, the larger of the two; packets above it are dropped, as in
// a router.
const (
	queueTime = 50 * time.Millisecond
	queueSize = 64 << 10
	maxLines  = 4096
	maxSpare  = 1024
)

// Shaper delays and drops the packets that a node sends, below QUIC. Before the first Set it costs one comparison for
// each batch of packets; afterwards a link without a shape costs one map lookup.
type Shaper struct {
	ctx     context.Context
	wg      *sync.WaitGroup
	on      atomic.Bool // a shape was set, and deliver runs
	shaped  atomic.Pointer[shapedLinks]
	sending func() // called before each write; may be nil
	copies  copies // how many times packets are written
	// envelope handles a datagram that may be an envelope, see relay.go, and reports whether it was one; it may be nil.
	envelope func(b []byte, from net.Addr) bool
	began    time.Time // origin of grains

	mu    sync.Mutex
	every Shape // for addresses without an own shape
	lines map[netip.AddrPort]*line
	queue packets
	wake  chan struct{} // holds a token when the queue's head may have changed
	spare [][]byte      // buffers for reuse
	write func(b, oob []byte, to net.Addr) error
	// Used by deliver only.
	due       []packet
	long      []byte // buffer of a batch
	noBatches bool   // the system refused a batch: write packets one by one
}

// grain returns the time resolution of delivery: packets due within one grain are written together at its end. Waking
// up for every packet costs several times what the packet does; network cards batch their interrupts too.
func (s Shape) grain() time.Duration {
	return min(time.Millisecond, max(250*time.Microsecond, s.Delay/4))
}

// line is the state of a link to one address.
// own reports whether shape was set for this address; otherwise it is Shaper.every.
type line struct {
	own   bool
	shape Shape
	free  time.Time // when the last packet has left
	due   time.Time // when the last packet arrives
	count uint64    // packets so far, from which chance derives loss and jitter
}

// shapedLinks holds the links whose packets the shaper must handle: all, or some addresses. It is immutable, so reading
// needs no lock.
type shapedLinks struct {
	all  bool
	some map[netip.AddrPort]bool
}

// updateShaped recomputes shaped. The caller holds the lock.
func (s *Shaper) updateShaped() {
	b, now := &shapedLinks{s.every != Shape{}, map[netip.AddrPort]bool{}}, time.Now()
	for a, l := range s.lines {
		if l.own && l.shape != (Shape{}) || l.due.After(now) {
			b.some[a] = true
		}
	}
	s.shaped.Store(b)
}

func newShaper(ctx context.Context, wg *sync.WaitGroup) *Shaper {
	return &Shaper{ctx: ctx, wg: wg, began: time.Now(), lines: map[netip.AddrPort]*line{}, wake: make(chan struct{}, 1)}
}

// Set shapes what is sent to an address (IP:PORT, or "" for all without an own shape). It may be called at any time.
func (s *Shaper) Set(address string, shape Shape) error {
	if err := shape.Check(); err != nil {
		return err
	}
	if address == "" {
		s.mu.Lock()
		s.every = shape
		s.updateShaped()
		s.mu.Unlock()
		s.start()
		return nil
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("shape: %q is not IP:PORT", address)
	}
	s.set(net.UDPAddrFromAddrPort(ap), shape)
	return nil
}

func (s *Shaper) set(to net.Addr, shape Shape) {
	s.mu.Lock()
	l := s.line(to)
	l.own, l.shape = true, shape
	s.updateShaped()
	s.mu.Unlock()
	s.start()
}

// unset removes an address's own shape.
func (s *Shaper) unset(to net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line(to).own = false
	s.updateShaped()
}

// start starts deliver, once.
func (s *Shaper) start() {
	if s.ctx.Err() == nil && s.on.CompareAndSwap(false, true) {
		s.wg.Go(s.deliver)
	}
}

func (s *Shaper) line(to net.Addr) *line {
	key := addrPort(to)
	l := s.lines[key]
	if l == nil {
		if len(s.lines) >= maxLines { // addresses of strangers
			maps.DeleteFunc(s.lines, func(_ netip.AddrPort, l *line) bool { return !l.own })
		}
		l = &line{}
		s.lines[key] = l
	}
	if !l.own {
		l.shape = s.every
	}
	return l
}

func addrPort(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case *net.UDPAddr:
		ap := a.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	case relayID:
		return a.addrPort()
	}
	return netip.AddrPort{}
}

// unshaped reports whether packets to an address bypass the shaper: its link has no shape, and no shaped packet is
// still on its way.
func (s *Shaper) unshaped(to net.Addr) bool {
	if b := s.shaped.Load(); b == nil || !b.all && !b.some[addrPort(to)] {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.line(to)
	return l.shape == (Shape{}) && !l.due.After(time.Now())
}

// send queues a packet or drops it; it returns false if the link has no shape and the caller must write the packet.
// size and batch are the packet size and the control messages of the batch that the packet came in, for sending it in a
// batch again; size 0 is a single packet.
func (s *Shaper) send(b, oob, batch []byte, size int, to net.Addr, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.line(to)
	shape := l.shape
	if shape == (Shape{}) && !l.due.After(now) {
		return false
	}
	l.count++
	if chance(l.count, 0) < shape.Loss {
		return true
	}
	free := later(l.free, now)
	if shape.Rate > 0 {
		most := later(now.Add(queueTime), now.Add(duration(queueSize, shape.Rate)))
		if free.After(most) {
			return true
		}
		free = free.Add(duration(len(b), shape.Rate))
	}
	l.free = free
	due, grain := free.Add(shape.Delay+time.Duration(chance(l.count, 1)*float64(shape.Jitter))), shape.grain()
	l.due = later(l.due, s.began.Add((due.Sub(s.began) + grain - 1).Truncate(grain)))
	var spare []byte
	if last := len(s.spare) - 1; last >= 0 {
		spare, s.spare = s.spare[last], s.spare[:last]
	}
	heap.Push(&s.queue, packet{l.due, s.queue.count, append(spare, b...), bytes.Clone(oob), bytes.Clone(batch), size, to})
	s.queue.count++
	signal(s.wake)
	return true
}

func duration(bytes int, rate int64) time.Duration {
	return time.Duration(float64(bytes) / float64(rate) * float64(time.Second))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// chance returns a number in [0, 1) that depends only on its arguments (splitmix64).
func chance(count, what uint64) float64 {
	z := 2*count + what + 1
	z *= 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// deliver writes packets when they are due, until the node closes.
func (s *Shaper) deliver() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.mu.Lock()
		now := time.Now()
		wait := time.Hour
		s.due = s.due[:0]
		for len(s.queue.all) > 0 && !s.queue.all[0].due.After(now) {
			s.due = append(s.due, heap.Pop(&s.queue).(packet))
		}
		if len(s.queue.all) > 0 {
			wait = s.queue.all[0].due.Sub(now)
		}
		s.mu.Unlock()
		if len(s.due) > 0 {
			for left := s.due; len(left) > 0; {
				left = s.writeSome(left)
			}
			s.mu.Lock()
			for i := range s.due {
				if len(s.spare) < maxSpare {
					s.spare = append(s.spare, s.due[i].b[:0])
				}
			}
			s.mu.Unlock()
			clear(s.due)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-s.wake:
		case <-s.ctx.Done():
			return
		}
	}
}

// maxBatchPackets and maxBatchBytes limit a batch to what the kernel takes in one call.
const (
	maxBatchPackets = 64
	maxBatchBytes   = 60 << 10
)

// writeSome writes the first packets of due, as many as fit in one call, and returns the rest. If the system refuses a
// batch, as with network cards without checksum offload, it writes packets one by one from then on.
func (s *Shaper) writeSome(due []packet) []packet {
	p, n := &due[0], 1
	b, oob := p.b, p.oob
	most := 1
	if !s.noBatches && p.size > 0 {
		most = min(len(due), maxBatchPackets, maxBatchBytes/p.size)
	}
	for n < most && len(b) == n*p.size { // the last may be shorter
		q := &due[n]
		if q.size != p.size || !bytes.Equal(q.batch, p.batch) || addrPort(q.to) != addrPort(p.to) {
			break
		}
		if n == 1 {
			b, oob = append(s.long[:0], b...), p.batch
		}
		b = append(b, q.b...)
		s.long = b
		n++
	}
	// A packet that cannot be written is lost: QUIC sends it again, or ends the connection.
	if err := s.write(b, oob, p.to); err != nil && n > 1 {
		s.noBatches = true
		for _, q := range due[:n] {
			_ = s.write(q.b, q.oob, q.to)
		}
	}
	return due[n:]
}

// packets is a heap by due time, then by order.
type packets struct {
	all   []packet
	count uint64
}

type packet struct {
	due   time.Time
	order uint64
	b     []byte
	oob   []byte
	batch []byte
	size  int
	to    net.Addr
}

func (q *packets) Len() int { return len(q.all) }
func (q *packets) Less(i, j int) bool {
	a, b := &q.all[i], &q.all[j]
	return a.due.Before(b.due) || a.due.Equal(b.due) && a.order < b.order
}
func (q *packets) Swap(i, j int) { q.all[i], q.all[j] = q.all[j], q.all[i] }
func (q *packets) Push(x any)    { q.all = append(q.all, x.(packet)) }
func (q *packets) Pop() any {
	last := len(q.all) - 1
	p := q.all[last]
	q.all[last] = packet{}
	q.all = q.all[:last]
	return p
}
