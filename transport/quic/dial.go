package quic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"brood/transport/wire"
)

// Dial joins the node that answers at address (HOST:PORT) and has this id. hello.Node is set here. The caller closes the peer, or the node does.
func (n *Node) Dial(ctx context.Context, address string, pin wire.NodeID, hello wire.Hello) (*Peer, wire.Welcome, error) {
	hello.Node = n.ID()
	o, err := n.begin(ctx, address, pin, hello)
	if err != nil {
		return nil, wire.Welcome{}, err
	}
	w, ok := o.body.(wire.Welcome)
	if !ok {
		_ = o.conn.CloseWithError(codeBroken, "expected Welcome")
		return nil, wire.Welcome{}, fmt.Errorf("dial %s: %w", address, broken("it answers Hello with something else"))
	}
	p := newPeer(n, o, wire.Hello{Node: pin, Name: w.Name, Software: w.Software})
	if !n.keep(p) {
		p.Close("the program ends")
		return nil, wire.Welcome{}, ErrClosed
	}
	return p, w, nil
}

// begin opens a connection, says the first words and hears the answer; a Refused is returned as the error.
func (n *Node) begin(ctx context.Context, address string, pin wire.NodeID, first wire.Body) (o opening, err error) {
	frame, err := wire.Marshal(wire.Header{Sender: wire.Nobody}, first)
	if err != nil {
		return o, fmt.Errorf("dial %s: %w", address, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*handshakeTimeout)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	addr, err := resolve(ctx, address)
	if err != nil {
		return o, dialError(address, err)
	}
	o.node = pin
	if o.conn, err = n.transport.Dial(ctx, addr, n.cfg.Key.Client(pin), quicConfig()); err != nil {
		if n.ctx.Err() != nil {
			return o, ErrClosed
		}
		return o, dialError(address, err)
	}
	defer func() {
		if err != nil {
			_ = o.conn.CloseWithError(codeDone, "")
		}
	}()
	if o.stream, err = o.conn.OpenStreamSync(ctx); err != nil {
		return o, dialError(address, err)
	}
	defer context.AfterFunc(ctx, func() { o.stream.SetDeadline(time.Now()) })()
	if _, err = o.stream.Write(frame); err == nil {
		o.frames = wire.NewReader(o.stream)
		var h wire.Header
		var p []byte
		if h, p, err = o.frames.Next(); err == nil {
			o.body, err = wire.Unmarshal(h, p)
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		if timeout, ok := errors.AsType[net.Error](err); ctx.Err() != nil || ok && timeout.Timeout() {
			return o, dialError(address, err)
		}
		return o, fmt.Errorf("dial %s: %w", address, gone(err))
	}
	if r, ok := o.body.(wire.Refused); ok {
		return o, fmt.Errorf("dial %s: %w", address, r)
	}
	return o, nil
}

func resolve(ctx context.Context, address string) (net.Addr, error) {
	if ap, err := netip.ParseAddrPort(address); err == nil {
		return net.UDPAddrFromAddrPort(ap), nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "udp", port)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return nil, err
	}
	best := ips[0]
	for _, ip := range ips {
		if ip.IP.To4() != nil { // brood serve listens on both, but not every container routes IPv6
			best = ip
			break
		}
	}
	return &net.UDPAddr{IP: best.IP, Port: number, Zone: best.Zone}, nil
}
