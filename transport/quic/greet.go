package quic

import (
	"context"
	"errors"
	"fmt"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"brood/transport/identity"
	"brood/transport/wire"
)

func (n *Node) acceptAll(listener *quicgo.Listener) {
	for {
		conn, err := listener.Accept(n.ctx)
		if err != nil {
			return // the node closes
		}
		n.wg.Go(func() { n.handleHello(conn) })
	}
}

// handleHello reads the first message of a new connection and answers it.
func (n *Node) handleHello(conn *quicgo.Conn) {
	s, _ := conn.Context().Value(strangerKey{}).(*stranger)
	defer s.leave()
	ctx, cancel := context.WithTimeout(n.ctx, handshakeTimeout)
	defer cancel()
	node, err := identity.Peer(conn.ConnectionState().TLS)
	if err == nil && n.known(node) {
		s.leave()
	} else {
		s.arrived(conn)
	}
	first := opening{conn: conn, node: node}
	if err != nil {
		err = broken("%v", err)
	} else {
		err = first.receiveFirst(ctx)
	}
	s.markActive()
	if err == nil {
		switch m := first.body.(type) {
		case wire.Hello:
			err = n.welcome(ctx, first, m)
		case wire.Open:
			var mesh *Mesh
			if mesh, err = n.meshOf(m.Run); err == nil {
				err = mesh.opened(first, m)
			}
		default:
			err = &wire.FormatError{Reason: "a connection begins with Hello or Open"}
		}
	}
	if err != nil {
		n.refuse(conn, first, err)
	}
}

// opening is a connection whose dialler has sent its first message, body.
type opening struct {
	conn   *quicgo.Conn
	stream *quicgo.Stream
	frames *wire.Reader
	node   wire.NodeID
	body   wire.Body
}

// receiveFirst reads the first message of a connection.
func (o *opening) receiveFirst(ctx context.Context) (err error) {
	if o.stream, err = o.conn.AcceptStream(ctx); err != nil {
		return fmt.Errorf("wait for its first message: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { o.stream.SetReadDeadline(time.Now()) })
	defer stop()
	o.frames = wire.NewReader(o.stream)
	h, p, err := o.frames.Next()
	if err != nil {
		return err
	}
	o.body, err = wire.Unmarshal(h, p)
	return err
}

// welcome admits a peer, or returns the refusal.
func (n *Node) welcome(ctx context.Context, o opening, h wire.Hello) error {
	if !h.Node.Equal(o.node) {
		return wire.Refused{Code: wire.CodeKey,
			Reason: fmt.Sprintf("Hello names node %s, the certificate is of node %s", h.Node.Short(), o.node.Short())}
	}
	if n.cfg.Admit == nil {
		return wire.Refused{Code: wire.CodeRole,
			Reason: "this is a worker: dial the coordinator, whose address is in the join URL"}
	}
	w, err := n.cfg.Admit(ctx, Request{h, o.node, o.conn.RemoteAddr()})
	if err != nil {
		return err
	}
	frame, err := wire.Marshal(wire.Header{Sender: wire.NoWorker}, w)
	if err != nil {
		return err
	}
	if _, err := o.stream.Write(frame); err != nil {
		return err
	}
	p := newPeer(n, o, h, n.silence)
	if !n.register(p) {
		p.Close("the program ends")
		return nil
	}
	n.wg.Go(func() {
		select {
		case n.accepted <- p:
		case <-p.Done():
		case <-n.ctx.Done():
		}
	})
	return nil
}

// refuse sends the reason, waits up to 1 s for the peer to close, and ends the connection.
func (n *Node) refuse(conn *quicgo.Conn, o opening, err error) {
	r, ok := errors.AsType[wire.Refused](err)
	if v, is := errors.AsType[*wire.VersionError](err); is {
		r = wire.RefuseVersion(v.Theirs)
	} else if _, is := errors.AsType[*wire.FormatError](err); is {
		r = wire.Refused{Code: wire.CodeFormat, Reason: err.Error()}
	} else if !ok {
		r = wire.Refused{Code: wire.CodeRefused, Reason: newGoneError(err).Error()}
	}
	if o.stream != nil {
		if frame, err := wire.Marshal(wire.Header{Sender: wire.NoWorker}, r); err == nil &&
			o.stream.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
			if _, err := o.stream.Write(frame); err == nil && o.stream.Close() == nil {
				select {
				case <-conn.Context().Done():
				case <-time.After(time.Second):
				case <-n.ctx.Done():
				}
			}
		}
	}
	_ = conn.CloseWithError(codeBroken, r.Reason) // it always returns nil
}
