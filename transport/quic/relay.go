package quic

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	quicgo "github.com/quic-go/quic-go"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"brood/transport/wire"
)

// Relay. Two workers behind NATs or firewalls may not reach each other, although both reach the coordinator. Their
// connection then goes through the coordinator's socket: each packet travels in an envelope to the coordinator, which
// forwards it. The connection is the same as a direct one, encrypted and authenticated between the two workers, so the
// coordinator can delay and drop packets and nothing else. A pair stays relayed until this connection ends.
//
// An envelope is one UDP datagram: the byte relayMark, the relay ids of its destination and of its source, and a
// packet.

const (
	relayMark    = 1 // the first byte of no QUIC packet
	relayHeader  = 1 + 2*len(relayID{})
	relayQueue   = 256              // packets that wait to be read; more are dropped
	relayAddress = "coordinator"    // the relay in a list of addresses
	relayFirst   = 10 * time.Minute // a pair that was connected through the relay this recently dials it first
)

// relayID is the address of a worker at the relay: the first bytes of its node id.
type relayID [8]byte

func relayIDOf(node wire.NodeID) (id relayID) {
	copy(id[:], node[:])
	return id
}

func (relayID) Network() string   { return "relay" }
func (id relayID) String() string { return fmt.Sprintf("relay:%x", id[:]) }

// addrPort returns an address for tables that are keyed by addresses; its IPv6 /64 belongs to this worker alone.
func (id relayID) addrPort() netip.AddrPort {
	var ip [16]byte
	copy(ip[:], id[:])
	return netip.AddrPortFrom(netip.AddrFrom16(ip), 1)
}

// relay is a worker's socket at its coordinator's relay. It has a QUIC transport of its own.
type relay struct {
	node      *Node
	through   atomic.Pointer[Peer] // the coordinator that this node dialled last
	shaper    *Shaper
	transport *quicgo.Transport
	in        chan relayed
	wake      chan struct{} // holds a token when a read deadline has passed
}

type relayed struct {
	from   relayID
	packet []byte
}

// relayThrough makes a coordinator the relay of this node.
func (n *Node) relayThrough(p *Peer) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return ErrClosed
	}
	if r := n.relay.Load(); r != nil {
		r.through.Store(p)
		return nil
	}
	r := &relay{
		node:   n,
		shaper: newShaper(n.ctx, &n.wg),
		in:     make(chan relayed, relayQueue),
		wake:   make(chan struct{}, 1),
	}
	r.through.Store(p)
	r.transport = &quicgo.Transport{
		Conn:              r.shaper.wrap(r),
		ConnContext:       n.admitStranger,
		StatelessResetKey: n.transport.StatelessResetKey,
	}
	first := inEnvelopes(quicConfig())
	first.GetConfigForClient = func(c *quicgo.ClientInfo) (*quicgo.Config, error) {
		cfg, err := n.configFor(c)
		return inEnvelopes(cfg), err
	}
	listener, err := r.transport.Listen(n.cfg.Key.Server(), first)
	if err != nil {
		return fmt.Errorf("open a socket at the relay: %w", err)
	}
	n.relay.Store(r)
	n.wg.Go(func() { n.acceptAll(listener) })
	return nil
}

// inEnvelopes limits the packets of a configuration: in envelopes they must fit into a packet of the smallest path.
func inEnvelopes(c *quicgo.Config) *quicgo.Config {
	c.InitialPacketSize, c.DisablePathMTUDiscovery = 1200, true
	return c
}

// relays reports whether this node may reach a worker through its coordinator: not one in the coordinator's process.
func (n *Node) relays(to wire.NodeID) bool {
	r := n.relay.Load()
	if r == nil {
		return false
	}
	p := r.through.Load()
	return p.Err() == nil && !p.Node().Equal(to)
}

// handleEnvelope handles a datagram if it is an envelope, and reports whether it is one: a worker receives those
// addressed to it, a coordinator forwards those between two of its workers. The goroutine that reads the socket calls
// it.
func (n *Node) handleEnvelope(b []byte, from net.Addr) bool {
	if len(b) == 0 || b[0] != relayMark {
		return false
	}
	if len(b) <= relayHeader {
		return true
	}
	to, source := relayID(b[1:9]), relayID(b[9:17])
	if r := n.relay.Load(); r != nil && to == relayIDOf(n.ID()) {
		r.deliver(source, b[relayHeader:], from)
	} else if peer := n.receiver(to, source, from); peer != nil {
		_ = n.sendTo(peer, b) // a packet that is not written is lost: QUIC sends it again
	}
	return true
}

// receiver returns the worker that an envelope goes to; nil if the two are no admitted workers, or if the envelope does
// not come from the address of its source.
func (n *Node) receiver(to, source relayID, from net.Addr) *Peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	sender, receiver := n.workers[source], n.workers[to]
	if sender == nil || receiver == nil || sender == receiver || addrPort(sender.Address()) != addrPort(from) {
		return nil
	}
	return receiver
}

// sendTo writes a datagram to a peer, from the address of this machine at which the peer knows it.
func (n *Node) sendTo(p *Peer, b []byte) error {
	u, isUDP := n.conn.(*udpSocket)
	own, known := p.c.conn.LocalAddr().(*net.UDPAddr)
	if !isUDP || !known || own.IP.IsUnspecified() {
		_, err := n.transport.WriteTo(b, p.Address())
		return err
	}
	var source []byte
	if ip := own.IP.To4(); ip != nil {
		source = (&ipv4.ControlMessage{Src: ip}).Marshal()
	} else {
		source = (&ipv6.ControlMessage{Src: own.IP}).Marshal()
	}
	_, _, err := u.WriteMsgUDP(b, source, p.Address().(*net.UDPAddr))
	return err
}

// deliver queues a packet that came from an address, unless that is not the coordinator's.
func (r *relay) deliver(source relayID, packet []byte, from net.Addr) {
	if addrPort(from) != addrPort(r.through.Load().Address()) {
		return
	}
	select {
	case r.in <- relayed{source, append([]byte(nil), packet...)}:
	default: // as a full buffer of a router
	}
}

// ReadFrom implements net.PacketConn for the relay's transport, as do the methods below.
func (r *relay) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case p := <-r.in:
		return copy(b, p.packet), p.from, nil
	case <-r.wake:
		return 0, nil, os.ErrDeadlineExceeded
	}
}

func (r *relay) WriteTo(b []byte, to net.Addr) (int, error) {
	id, ok := to.(relayID)
	if !ok {
		return 0, fmt.Errorf("relay: %v is no worker", to)
	}
	own := relayIDOf(r.node.ID())
	envelope := make([]byte, 0, relayHeader+len(b))
	envelope = append(append(append(envelope, relayMark), id[:]...), own[:]...)
	if err := r.node.sendTo(r.through.Load(), append(envelope, b...)); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (r *relay) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && !t.After(time.Now()) { // the only deadline that quic-go sets, when the transport closes
		signal(r.wake)
	}
	return nil
}

func (r *relay) LocalAddr() net.Addr              { return relayIDOf(r.node.ID()) }
func (r *relay) Close() error                     { return nil }
func (r *relay) SetDeadline(t time.Time) error    { return r.SetReadDeadline(t) }
func (r *relay) SetWriteDeadline(time.Time) error { return nil }

// dialTransport connects to an address: through the relay if it is a relayID.
func (n *Node) dialTransport(ctx context.Context, addr net.Addr, pin wire.NodeID) (*quicgo.Conn, error) {
	if _, ok := addr.(relayID); ok {
		return n.relay.Load().transport.Dial(ctx, addr, n.cfg.Key.Client(pin), inEnvelopes(quicConfig()))
	}
	return n.transport.Dial(ctx, addr, n.cfg.Key.Client(pin), quicConfig())
}

// shaperOf returns the shaper of the packets to an address.
func (n *Node) shaperOf(addr net.Addr) *Shaper {
	if _, ok := addr.(relayID); ok {
		return n.relay.Load().shaper
	}
	return n.shaper
}
