package quic

import (
	"context"
	"fmt"
	"io"
	"net"

	quicgo "github.com/quic-go/quic-go"
)

// maxConversations is how many a peer may have open at once.
const maxConversations = 4

// conversation is a two-way stream beside a peer's messages. It ends with the peer.
type conversation struct {
	*quicgo.Stream
	peer *Peer
}

// Read fails with the reason why the peer is gone, where it is.
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

// Close ends both directions; what was written is still delivered.
func (c conversation) Close() error {
	c.CancelRead(0)
	return c.Stream.Close()
}

// Open begins a conversation with the other side, which hears of it once something is written. The caller closes it.
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

// noConversation cuts a side that begins a conversation and may have none.
func (c *control) noConversation() error {
	if _, err := c.conn.AcceptStream(c.ctx); err != nil {
		return nil // it is over
	}
	return broken("it opens a stream that it may not have")
}

// Accept waits for the next conversation that the other side, a viewer or an operator, begins. The caller closes it.
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
