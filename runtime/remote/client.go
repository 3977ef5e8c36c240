package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"brood/runtime/view"
	"brood/transport/identity"
	"brood/transport/quic"
	"brood/transport/wire"
)

// Client is a client of a run on another machine, connected by the URL of a viewer or an operator. Its methods may be
// called from any goroutine.
type Client struct {
	join  identity.Join
	node  *quic.Node
	hello wire.Hello

	mu   sync.Mutex
	peer *quic.Peer
}

// Connect connects to the run of a URL, as an operator if the URL permits it, otherwise as a viewer. name is shown to
// other clients. The caller must close the Client.
func Connect(ctx context.Context, key *identity.Key, join identity.Join, name, software string) (*Client, error) {
	node, err := quic.Listen(quic.Config{Key: key})
	if err != nil {
		return nil, err
	}
	v := &Client{
		join: join,
		node: node,
		hello: wire.Hello{
			Role:     wire.Operator,
			Name:     name,
			Token:    join.Token,
			Software: software,
		},
	}
	if err = v.dialFirst(ctx); err != nil {
		return nil, errors.Join(err, node.Close())
	}
	return v, nil
}

// dialFirst connects to the run for the first time. It returns [view.ErrNoProcess] as soon as the machine reports that
// no process uses the address; a dial alone would wait until ctx ends.
func (v *Client) dialFirst(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel(nil)
	asking.Go(func() {
		if quic.PortClosed(ctx, v.join.Address) {
			cancel(view.ErrNoProcess)
		}
	})
	_, err := v.connect(ctx)
	if err != nil && context.Cause(ctx) == view.ErrNoProcess {
		return view.ErrNoProcess
	}
	return err
}

// connect returns the connection to the run and dials if there is none.
func (v *Client) connect(ctx context.Context) (*quic.Peer, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.peer != nil && v.peer.Err() == nil {
		return v.peer, nil
	}
	p, _, err := v.node.Dial(ctx, v.join.Address, v.join.Server, v.hello)
	r, ok := errors.AsType[wire.Refused](err)
	if ok && v.hello.Role == wire.Operator && !r.Retry && r.Code != wire.CodeRevoked {
		asViewer := v.hello // a known viewer needs no token
		asViewer.Role = wire.Viewer
		var second error
		p, _, second = v.node.Dial(ctx, v.join.Address, v.join.Server, asViewer)
		// if the role of a viewer is refused too, the first error is the relevant one
		if r, ok := errors.AsType[wire.Refused](second); !ok || r.Code != wire.CodeRole {
			err = second
		}
		if err == nil {
			v.hello = asViewer
		}
	}
	if err != nil {
		return nil, err
	}
	v.peer = p
	return p, nil
}

// Dial opens a stream to the run's control socket. Dial and the stream return [view.ErrNoProcess] if the machine
// reports that the run's process is gone.
func (v *Client) Dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, arrival)
	defer cancel()
	if v.disconnected() && quic.PortClosed(ctx, v.join.Address) { // a dial would wait for its timeout
		return nil, view.ErrNoProcess
	}
	p, err := v.connect(ctx)
	if err != nil {
		return nil, err
	}
	c, err := p.Open(ctx)
	if err != nil {
		return nil, v.explain(err)
	}
	return stream{c, v}, nil
}

// disconnected reports whether the connection to the run broke.
func (v *Client) disconnected() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.peer.Err() != nil
}

// explain returns view.ErrNoProcess if the run's process is gone, otherwise err.
func (v *Client) explain(err error) error {
	g, ok := errors.AsType[*quic.GoneError](err)
	if ok && g.Cause != quic.Closed && quic.PortClosed(context.Background(), v.join.Address) {
		return view.ErrNoProcess
	}
	return err
}

// stream is a connection to the run's control socket.
type stream struct {
	net.Conn
	visitor *Client
}

// Read replaces an error by view.ErrNoProcess if the run's process is gone.
func (c stream) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		err = c.visitor.explain(err)
	}
	return n, err
}

// Role returns the role that the run granted to this client.
func (v *Client) Role() wire.Role {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.hello.Role
}

// Gone returns a channel that is closed when the connection to the run's coordinator ends.
func (v *Client) Gone() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.peer.Done()
}

func (v *Client) String() string { return fmt.Sprintf("%s at %s", v.Role(), v.join.Address) }

// Close ends the connection and frees the socket.
func (v *Client) Close() error { return v.node.Close() }
