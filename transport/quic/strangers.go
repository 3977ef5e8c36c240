package quic

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"brood/transport/wire"
)

// strangers are the connections that have not been answered yet. They cost memory before anybody knows who they are:
// there are at most maxStrangers, and maxShare of one address. Where there is no room, the one that has been silent
// longest gives way; those whose handshake is still going on cannot be ended, and are heard for a shorter time the more
// there are. Who has spoken keeps its place, and a key that came in before needs none.
type strangers struct {
	mu  sync.Mutex
	all []*stranger // as they came
}

type stranger struct {
	of      *strangers
	address netip.Prefix
	silent  *quicgo.Conn // its handshake is over, and it has not spoken
}

const (
	maxStrangers = 256
	maxShare     = 192 // of one address
	suspicious   = 8   // from how many on strangers must show that they own their address, and be quick
)

var errBusy = errors.New("too many strangers at once")

// enter takes a new connection among the strangers, and ends another where there is no room.
func (s *strangers) enter(addr net.Addr) (*stranger, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &stranger{of: s, address: origin(addr)}
	mine := func(o *stranger) bool { return o.address == n.address }
	here := 0
	for _, o := range s.all {
		if mine(o) {
			here++
		}
	}
	if here >= maxShare || len(s.all) >= maxStrangers {
		at := slices.IndexFunc(s.all, func(o *stranger) bool { return o.silent != nil && (here < maxShare || mine(o)) })
		if at < 0 {
			return nil, errBusy
		}
		_ = s.all[at].silent.CloseWithError(codeBusy, "it said nothing, and others wait") // it always returns nil
		s.all = slices.Delete(s.all, at, at+1)
	}
	s.all = append(s.all, n)
	return n, nil
}

// refusedAsBusy says that a dial met a node which had no room for strangers, or none that long.
func refusedAsBusy(err error) bool {
	if t, ok := errors.AsType[*quicgo.TransportError](err); ok {
		return t.Remote && t.ErrorCode == quicgo.ConnectionRefused
	}
	a, ok := errors.AsType[*quicgo.ApplicationError](err)
	return ok && a.Remote && a.ErrorCode == codeBusy
}

// count is how many there are.
func (s *strangers) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// arrived says that a connection's handshake is over.
func (n *stranger) arrived(conn *quicgo.Conn) { n.set(conn) }

// spoke says that the connection is silent no more.
func (n *stranger) spoke() { n.set(nil) }

func (n *stranger) set(conn *quicgo.Conn) {
	n.of.mu.Lock()
	defer n.of.mu.Unlock()
	n.silent = conn
}

// leave ends its being a stranger: it was answered, or is gone. It may be called more than once.
func (n *stranger) leave() {
	s := n.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.all, n); at >= 0 {
		s.all = slices.Delete(s.all, at, at+1)
	}
}

// origin is what counts as one address: an IPv4 address, or the /64 that one host has in IPv6.
func origin(addr net.Addr) netip.Prefix {
	ap, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.Prefix{}
	}
	bits, ip := 64, ap.Addr().Unmap()
	if ip.Is4() {
		bits = 32
	}
	p, err := ip.WithZone("").Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

type strangerKey struct{}

// admitStranger is asked before a connection costs more than a packet.
func (n *Node) admitStranger(ctx context.Context, info *quicgo.ClientInfo) (context.Context, error) {
	s, err := n.strangers.enter(info.RemoteAddr)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, s.leave)
	return context.WithValue(ctx, strangerKey{}, s), nil
}

// known says whether a node came in before.
func (n *Node) known(node wire.NodeID) bool { return n.cfg.Known != nil && n.cfg.Known(node) }

// configFor is the configuration of a connection from outside. A handshake that is silent for long while many wait is a
// flood's.
func (n *Node) configFor(*quicgo.ClientInfo) (*quicgo.Config, error) {
	c := quicConfig()
	if n.strangers.count() >= suspicious {
		c.HandshakeIdleTimeout = time.Second
	}
	return c, nil
}
