package quic

import (
	"context"
	"net"
	"sync"
	"time"

	"brood/transport/wire"
)

// Peer is a control connection to a process that was admitted, or that admitted this one. Its methods are safe for
// concurrent use.
type Peer struct {
	c     *control
	hello wire.Hello
	allow func(wire.Role, uint16) bool

	mu      sync.Mutex
	inbox   []wire.Message
	size    int           // bytes in inbox
	came    chan struct{} // holds a token when inbox may have grown
	drained chan struct{} // holds a token when inbox may have shrunk
	payload int64         // bytes of message bodies sent
}

// maxInbox is the number of bytes that may wait for Receive; above it the peer's stream is not read.
const maxInbox = 16 << 20

// perMessage is the number of bytes counted for a message in addition to its body.
const perMessage = 64

// newPeer returns the peer of an accepted or dialled connection, which ends after the given silence.
func newPeer(n *Node, o opening, hello wire.Hello, silence func() time.Duration) *Peer {
	p := &Peer{
		c:       newControl(o, n.cfg.MaxQueue),
		hello:   hello,
		allow:   n.cfg.Allow,
		came:    make(chan struct{}, 1),
		drained: make(chan struct{}, 1),
	}
	p.c.frame, p.c.silence = p.take, silence
	p.c.start()
	if n.cfg.Conn == nil {
		p.c.run(p.c.allowProbes)
	}
	if hello.Role != wire.Viewer && hello.Role != wire.Operator {
		p.c.run(p.c.rejectConversation)
	}
	return p
}

// Node returns the peer's id, from its certificate.
func (p *Peer) Node() wire.NodeID { return p.c.node }

// Hello returns the peer's Hello; of a peer that this side dialled, only node, name and software.
func (p *Peer) Hello() wire.Hello { return p.hello }

// Role returns the peer's role; 0 if this side dialled it.
func (p *Peer) Role() wire.Role { return p.hello.Role }

// Address returns the address that the peer's packets come from.
func (p *Peer) Address() net.Addr { return p.c.conn.RemoteAddr() }

// Send queues a message without waiting; body must not change afterwards. If too many bytes wait already, it cuts the
// peer. It fails if the peer is gone or the message is too large.
func (p *Peer) Send(m wire.Message) error {
	frame, err := wire.Marshal(wire.Header{Sender: wire.NoWorker}, m)
	if err != nil {
		return err
	}
	if err := p.c.post(frame); err != nil {
		return err
	}
	p.mu.Lock()
	p.payload += int64(len(m.Body))
	p.mu.Unlock()
	return nil
}

// Receive returns the next message, which the caller owns. Once the peer is gone, it returns the messages that came
// before, then the reason.
func (p *Peer) Receive(ctx context.Context) (wire.Message, error) {
	for {
		if err := ctx.Err(); err != nil {
			return wire.Message{}, err
		}
		over := p.c.ctx.Err() != nil // read before the inbox: no message is added after it is true
		p.mu.Lock()
		if len(p.inbox) > 0 {
			m := p.inbox[0]
			p.inbox[0] = wire.Message{}
			p.inbox = p.inbox[1:]
			p.size -= len(m.Body) + perMessage
			if len(p.inbox) > 0 {
				signal(p.came)
			}
			p.mu.Unlock()
			signal(p.drained)
			return m, nil
		}
		p.mu.Unlock()
		if over {
			return wire.Message{}, p.c.failure()
		}
		select {
		case <-p.came:
		case <-p.c.ctx.Done():
		case <-ctx.Done():
		}
	}
}

func (p *Peer) take(h wire.Header, payload []byte) error {
	if h.Kind != wire.KindMessage {
		return broken("unexpected frame of kind %d among its messages", h.Kind)
	}
	b, err := wire.Unmarshal(h, payload)
	if err != nil {
		return err
	}
	m := b.(wire.Message)
	if p.allow != nil && p.hello.Role != 0 && !p.allow(p.hello.Role, m.Kind) {
		return broken("a %s may not send messages of kind %d", p.hello.Role, m.Kind)
	}
	for {
		p.mu.Lock()
		if p.size < maxInbox {
			p.inbox = append(p.inbox, m)
			p.size += len(m.Body) + perMessage
			p.mu.Unlock()
			signal(p.came)
			return nil
		}
		p.mu.Unlock()
		select {
		case <-p.drained:
		case <-p.c.ctx.Done():
			return nil
		}
	}
}

// Done is closed when the peer is gone.
func (p *Peer) Done() <-chan struct{} { return p.c.ctx.Done() }

// Err returns why the peer is gone, a *GoneError; nil while it is connected.
func (p *Peer) Err() error { return p.c.failure() }

// Suspected reports that no packet came for so long that the peer may be dead.
func (p *Peer) Suspected() bool { return p.Err() == nil && p.c.pulse.quiet(time.Now()) >= suspectedAt }

// Leave sends what is queued and then Leave, and returns when the peer has closed the connection or ctx is done.
func (p *Peer) Leave(ctx context.Context, reason string) error { return p.c.leave(ctx, reason) }

// Close ends the connection at once and drops what is queued. It sends the reason to the peer if it can.
func (p *Peer) Close(reason string) {
	p.c.fail(&GoneError{Closed, reason})
	p.c.wait()
}

// Cut ends the connection at once for something that the peer did.
func (p *Peer) Cut(reason string) {
	p.c.fail(&GoneError{Broken, reason})
	p.c.wait()
}

// Stats describes a peer's connection.
type Stats struct {
	Payload  int64         // bytes of message bodies sent
	Sent     int64         // bytes of packets sent, without UDP and IP headers
	Received int64         // the same, received
	RTT      time.Duration // of the last heartbeat; 0 before the first
	Lost     float64       // share of packets sent that were lost, 0 to 1
	Silent   time.Duration // since the last packet received
}

// Stats returns the connection's statistics so far.
func (p *Peer) Stats() Stats {
	s := p.c.conn.ConnectionStats()
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{p.payload, int64(s.BytesSent), int64(s.BytesReceived), p.c.pulse.roundTrip(),
		share(s.PacketsLost, s.PacketsSent), p.c.pulse.quiet(time.Now())}
}

func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
