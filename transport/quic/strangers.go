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

// strangers are the connections that have not been answered yet. Each costs memory before its node is known, so there
// are at most maxStrangers, and maxShare from one address. If there is no room, the connection that has been silent
// longest is ended. Unfinished handshakes cannot be ended; they time out sooner when there are many. A connection that
// has sent its first message keeps its place, and a node that was admitted before does not count.
type strangers struct {
	mu  sync.Mutex
	all []*stranger // in order of arrival
}

type stranger struct {
	of      *strangers
	address netip.Prefix
	silent  *quicgo.Conn // the connection between the end of its handshake and its first message, else nil
}

const (
	maxStrangers = 256
	maxShare     = 192 // from one address
	// With this many strangers, new ones must validate their address, and handshakes time out after 1 s.
	suspicious = 8
)

var errBusy = errors.New("too many strangers at once")

// enter adds a new connection to the strangers. If there is no room, it ends a silent one, or returns errBusy.
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
		// It always returns nil.
		_ = s.all[at].silent.CloseWithError(codeBusy, "it sent no first message, and other connections wait")
		s.all = slices.Delete(s.all, at, at+1)
	}
	s.all = append(s.all, n)
	return n, nil
}

// refusedAsBusy reports whether a dial failed because the node had no room for strangers.
func refusedAsBusy(err error) bool {
	if t, ok := errors.AsType[*quicgo.TransportError](err); ok {
		return t.Remote && t.ErrorCode == quicgo.ConnectionRefused
	}
	a, ok := errors.AsType[*quicgo.ApplicationError](err)
	return ok && a.Remote && a.ErrorCode == codeBusy
}

// count returns the number of strangers.
func (s *strangers) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// arrived records that the connection's handshake is over.
func (n *stranger) arrived(conn *quicgo.Conn) { n.set(conn) }

// markActive records that the connection has sent its first message.
func (n *stranger) markActive() { n.set(nil) }

func (n *stranger) set(conn *quicgo.Conn) {
	n.of.mu.Lock()
	defer n.of.mu.Unlock()
	n.silent = conn
}

// leave removes the connection from the strangers: it was answered, or is gone. It may be called more than once.
func (n *stranger) leave() {
	s := n.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.all, n); at >= 0 {
		s.all = slices.Delete(s.all, at, at+1)
	}
}

// origin returns the prefix that counts as one address: an IPv4 address, or an IPv6 /64, which one host has.
func origin(addr net.Addr) netip.Prefix {
	bits, ip := 64, addrPort(addr).Addr()
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

// admitStranger runs for the first packet of a new connection and refuses it if there is no room.
func (n *Node) admitStranger(ctx context.Context, info *quicgo.ClientInfo) (context.Context, error) {
	s, err := n.strangers.enter(info.RemoteAddr)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, s.leave)
	return context.WithValue(ctx, strangerKey{}, s), nil
}

// known reports whether a node was admitted before.
func (n *Node) known(node wire.NodeID) bool { return n.cfg.Known != nil && n.cfg.Known(node) }

// configFor returns the configuration of an incoming connection. With many strangers its handshake must finish within 1
// s, since floods leave theirs unfinished.
func (n *Node) configFor(*quicgo.ClientInfo) (*quicgo.Config, error) {
	c := quicConfig()
	if n.strangers.count() >= suspicious {
		c.HandshakeIdleTimeout = time.Second
	}
	return c, nil
}
