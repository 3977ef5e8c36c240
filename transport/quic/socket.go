package quic

import (
	"net"
	"time"
)

// wrap puts the shaper below a socket. udpSocket has every method of *net.UDPConn that quic-go uses, so that batches of
// packets still take one call (GSO); a plain net.PacketConn, as in a simulation, has no batches.
func (s *Shaper) wrap(c net.PacketConn) net.PacketConn {
	if u, ok := c.(*net.UDPConn); ok {
		s.write = func(b, oob []byte, to net.Addr) error {
			_, _, err := u.WriteMsgUDP(b, oob, to.(*net.UDPAddr))
			return err
		}
		return &udpSocket{u, s}
	}
	s.write = func(b, _ []byte, to net.Addr) error {
		_, err := c.WriteTo(b, to)
		return err
	}
	return &plainSocket{c, s}
}

type udpSocket struct {
	*net.UDPConn
	shaper *Shaper
}

// WriteMsgUDP is the only call that quic-go sends with.
func (u *udpSocket) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (int, int, error) {
	if u.shaper.sending != nil {
		u.shaper.sending()
	}
	if u.shaper.unshaped(to) {
		if err := u.shaper.write(b, oob, to); err != nil {
			return 0, 0, err
		}
		return len(b), len(oob), nil
	}
	batch, rest := segments(oob)
	size := batch
	if batch == 0 {
		size = max(len(b), 1)
	}
	now := time.Now()
	for at := 0; at < len(b); at += size {
		p := b[at:min(at+size, len(b))]
		if u.shaper.send(p, rest, oob, batch, to, now) {
			continue
		}
		if _, _, err := u.UDPConn.WriteMsgUDP(p, rest, to); err != nil {
			return at, len(oob), err
		}
	}
	return len(b), len(oob), nil
}

type plainSocket struct {
	net.PacketConn
	shaper *Shaper
}

func (c *plainSocket) WriteTo(b []byte, to net.Addr) (int, error) {
	if c.shaper.sending != nil {
		c.shaper.sending()
	}
	if !c.shaper.unshaped(to) && c.shaper.send(b, nil, nil, 0, to, time.Now()) {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}
