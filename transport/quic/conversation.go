package quic

import (
	"context"
	"fmt"
	"io"
	"net"

	quicgo "github.com/quic-go/quic-go"
)

// maxConversations is the number of conversations that a peer may have open at once.
const maxConversations = 4

// conversation is a two-way stream of a peer's connection, separate from its messages. It ends with the peer.
type conversation struct {
	*quicgo.Stream
	peer *Peer
}

// Read returns the peer's GoneError once the peer is gone.
func (c conversation) Read(b []byte) (n int, err error) {
	if n, err = c.Stream.Read(b); err != nil && err != io.EOF {
		if gone := c.peer.Err(); gone != nil {
			err = gone
		}
	}
	return n, err
}

func (c conversation) LocalAddr() net.Addr  { return c.peer.c.conn.LocalAddr() }
func (c conversation) RemoteAddr() net.Addr { return c.peer.c.conn.RemoteAddr() }

// Close ends both directions; data already written is still delivered.
func (c conversation) Close() error {
	c.CancelRead(0)
	return c.Stream.Close()
}

// Open begins a conversation. The other side's Accept returns once something is written. The caller closes it.
func (p *Peer) Open(ctx context.Context) (net.Conn, error) {
	s, err := p.c.conn.OpenStreamSync(ctx)
	if err != nil {
		if gone := p.Err(); gone != nil {
			err = gone
		}
		return nil, fmt.Errorf("open a conversation: %w", err)
	}
	return conversation{s, p}, nil
}

// rejectConversation returns an error, which ends the connection, when a peer without the right to a conversation opens
// one.
func (c *control) rejectConversation() error {
	if _, err := c.conn.AcceptStream(c.ctx); err != nil {
		return nil // it is over
	}
	return broken("unexpected two-way stream: its role may not open one")
}

// Accept waits for the next conversation that the peer, a viewer or an operator, opens. The caller closes it.
func (p *Peer) Accept(ctx context.Context) (net.Conn, error) {
	s, err := p.c.conn.AcceptStream(ctx)
	if err != nil {
		if gone := p.Err(); gone != nil {
			err = gone
		}
		return nil, fmt.Errorf("wait for a conversation: %w", err)
	}
	return conversation{s, p}, nil
}
