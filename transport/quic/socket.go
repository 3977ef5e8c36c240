package quic

import (
	"net"
	"time"

	"golang.org/x/net/ipv4"
)

// wrap puts the shaper below a socket. udpSocket has every method of *net.UDPConn that quic-go uses, so that batches of
// packets still take one call (GSO); a plain net.PacketConn, as in a simulation, has no batches.
func (s *Shaper) wrap(c net.PacketConn) net.PacketConn {
	if u, ok := c.(*net.UDPConn); ok {
		s.write = func(b, oob []byte, to net.Addr) error {
			_, _, err := u.WriteMsgUDP(b, oob, to.(*net.UDPAddr))
			return err
		}
		return &udpSocket{u, ipv4.NewPacketConn(u), s}
	}
	s.write = func(b, _ []byte, to net.Addr) error {
		_, err := c.WriteTo(b, to)
		return err
	}
	return &plainSocket{c, s}
}

type udpSocket struct {
	*net.UDPConn
	batch  *ipv4.PacketConn // of the same socket; reads batches of IPv6 packets too
	shaper *Shaper
}

// ReadBatch is the call that quic-go receives with, except on Windows. It empties envelopes: quic-go ignores empty
// packets.
func (u *udpSocket) ReadBatch(all []ipv4.Message, flags int) (int, error) {
	n, err := u.batch.ReadBatch(all, flags)
	for i := range max(0, n) {
		if m := &all[i]; u.shaper.envelope != nil && u.shaper.envelope(m.Buffers[0][:m.N], m.Addr) {
			m.N = 0
		}
	}
	return n, err
}

// ReadFrom is the call that quic-go receives with on Windows.
func (u *udpSocket) ReadFrom(b []byte) (int, net.Addr, error) { return u.shaper.read(u.UDPConn, b) }

// read reads the next datagram that is no envelope.
func (s *Shaper) read(c net.PacketConn, b []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil || s.envelope == nil || !s.envelope(b[:n], from) {
			return n, from, err
		}
	}
}

// WriteMsgUDP is the only call that quic-go sends with.
func (u *udpSocket) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, m int, err error) {
	n, m, err = u.write(b, oob, to)
	for range u.shaper.copies.more(to, len(b)) {
		_, _, _ = u.write(b, oob, to) // a copy
	}
	return n, m, err
}

func (u *udpSocket) write(b, oob []byte, to *net.UDPAddr) (int, int, error) {
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

func (c *plainSocket) ReadFrom(b []byte) (int, net.Addr, error) {
	return c.shaper.read(c.PacketConn, b)
}

func (c *plainSocket) WriteTo(b []byte, to net.Addr) (n int, err error) {
	n, err = c.write(b, to)
	for range c.shaper.copies.more(to, len(b)) {
		_, _ = c.write(b, to) // a copy
	}
	return n, err
}

func (c *plainSocket) write(b []byte, to net.Addr) (int, error) {
	if c.shaper.sending != nil {
		c.shaper.sending()
	}
	if !c.shaper.unshaped(to) && c.shaper.send(b, nil, nil, 0, to, time.Now()) {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}
