package quic

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// PortClosed sends probeTries datagrams probeWait apart: some systems answer only once a second.
const (
	probeTries = 3
	probeWait  = 100 * time.Millisecond
)

// PortClosed reports whether the machine at a UDP address answers that no program listens on the port (ICMP port
// unreachable). It opens its own socket, since the node's shared socket does not return such errors. It returns false
// without an answer: a program may listen, the network may be cut, a firewall may drop the answer, or the system may
// not report it, as Windows.
func PortClosed(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })()
	for range probeTries {
		if ctx.Err() != nil || conn.SetDeadline(time.Now().Add(probeWait)) != nil {
			return false
		}
		// No QUIC packet begins with a zero byte: a listening node ignores it.
		if _, err = conn.Write([]byte{0}); err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			return true
		}
	}
	return false
}
