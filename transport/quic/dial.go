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

// Dial connects to the node with the id pin at address (HOST:PORT). It sets hello.Node. The caller closes the peer;
// Node.Close closes it too.
func (n *Node) Dial(ctx context.Context, address string, pin wire.NodeID, hello wire.Hello) (*Peer, wire.Welcome,
	error) {
	hello.Node = n.ID()
	o, err := n.begin(ctx, address, pin, hello)
	if err != nil {
		return nil, wire.Welcome{}, err
	}
	w, ok := o.body.(wire.Welcome)
	if !ok {
		_ = o.conn.CloseWithError(codeBroken, "expected Welcome")
		return nil, wire.Welcome{}, fmt.Errorf("dial %s: %w", address, broken("expected Welcome in answer to Hello"))
	}
	silence := silentAt
	if hello.Role == wire.Worker {
		silence = coordinatorSilentAt
	}
	p := newPeer(n, o, wire.Hello{Node: pin, Name: w.Name, Software: w.Software},
		func() time.Duration { return silence })
	if !n.register(p) {
		p.Close("the program ends")
		return nil, wire.Welcome{}, ErrClosed
	}
	if hello.Role == wire.Worker {
		if err := n.relayThrough(p); err != nil {
			p.Close(err.Error())
			return nil, wire.Welcome{}, err
		}
	}
	return p, w, nil
}

// begin opens a connection at an address (HOST:PORT, or relayAddress), sends first and returns the answer in
// opening.body. A Refused answer is returned as the error. It retries a busy node and one that does not answer, for up
// to twice handshakeTimeout.
func (n *Node) begin(ctx context.Context, address string, pin wire.NodeID, first wire.Body) (opening, error) {
	frame, err := wire.Marshal(wire.Header{Sender: wire.NoWorker}, first)
	if err != nil {
		return opening{}, fmt.Errorf("dial %s: %w", address, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*handshakeTimeout)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	var addr net.Addr = relayIDOf(pin)
	if address != relayAddress {
		if addr, err = resolve(ctx, address); err != nil {
			return opening{}, dialError(address, err)
		}
	}
	for {
		o, err := n.tryDial(ctx, addr, pin, frame)
		switch {
		case err == nil:
			return o, nil
		case n.ctx.Err() != nil:
			return o, ErrClosed
		case refusedAsBusy(err):
			select {
			case <-time.After(againAfter):
				continue
			case <-ctx.Done():
			}
		case ctx.Err() != nil:
			err = ctx.Err()
		case o.conn != nil && !timedOut(err): // the other side answered
			if r, ok := errors.AsType[wire.Refused](err); ok {
				return o, fmt.Errorf("dial %s: %w", address, r)
			}
			return o, fmt.Errorf("dial %s: %w", address, newGoneError(err))
		}
		return o, dialError(address, err)
	}
}

func timedOut(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

// againAfter is the wait before dialling a busy node again.
const againAfter = 100 * time.Millisecond

// tryDial makes one attempt for begin. It returns the connection's error, or the wire.Refused of the other side.
func (n *Node) tryDial(ctx context.Context, addr net.Addr, pin wire.NodeID, frame []byte) (o opening, err error) {
	o.node = pin
	if o.conn, err = n.dialTransport(ctx, addr, pin); err != nil {
		return o, err
	}
	defer func() {
		if err != nil {
			_ = o.conn.CloseWithError(codeDone, "")
		}
	}()
	if o.stream, err = o.conn.OpenStreamSync(ctx); err != nil {
		return o, err
	}
	defer context.AfterFunc(ctx, func() { o.stream.SetDeadline(time.Now()) })()
	if _, err = o.stream.Write(frame); err != nil {
		return o, err
	}
	o.frames = wire.NewReader(o.stream)
	h, p, err := o.frames.Next()
	if err != nil {
		return o, err
	}
	if o.body, err = wire.Unmarshal(h, p); err != nil {
		return o, err
	}
	if r, ok := o.body.(wire.Refused); ok {
		return o, r
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
