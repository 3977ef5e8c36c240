package quic

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// A machine answers at once that it has no program at a port; some answer once a second only.
const (
	shutTries = 3
	shutWait  = 100 * time.Millisecond
)

// Shut says whether nothing listens at a UDP address, by the word of the machine there: it answers a datagram to a port
// that no program has. The connections of a node share a socket, which never hears of that, so it takes one of its own.
// Where nothing comes back it is false: a program may listen, the network may be cut, a firewall may drop that word, or
// this system may not tell of it, as Windows.
func Shut(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })()
	for range shutTries {
		if ctx.Err() != nil || conn.SetDeadline(time.Now().Add(shutWait)) != nil {
			return false
		}
		// No packet of QUIC begins with a zero: who listens passes it over.
		if _, err = conn.Write([]byte{0}); err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			return true
		}
	}
	return false
}
