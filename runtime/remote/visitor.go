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

// Visitor is a person's way to a run elsewhere, by a URL of a viewer or an operator. Its methods may be called from any
// goroutine.
type Visitor struct {
	join  identity.Join
	node  *quic.Node
	hello wire.Hello

	mu   sync.Mutex
	peer *quic.Peer
}

// Call joins the run at the other end of a URL, as an operator where the URL lets one in, else as a viewer. name is the
// person's. Close it.
func Call(ctx context.Context, key *identity.Key, join identity.Join, name, software string) (*Visitor, error) {
	node, err := quic.Listen(quic.Config{Key: key})
	if err != nil {
		return nil, err
	}
	v := &Visitor{join: join, node: node, hello: wire.Hello{Role: wire.Operator, Name: name, Token: join.Token, Software: software}}
	if err = v.arrive(ctx); err != nil {
		return nil, errors.Join(err, node.Close())
	}
	return v, nil
}

// arrive reaches the run for the first time. It fails with [view.ErrNoProcess] as soon as the machine there says that
// nobody has the address, for which a dial would wait in vain.
func (v *Visitor) arrive(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel(nil)
	asking.Go(func() {
		if quic.Shut(ctx, v.join.Address) {
			cancel(view.ErrNoProcess)
		}
	})
	_, err := v.reach(ctx)
	if err != nil && context.Cause(ctx) == view.ErrNoProcess {
		return view.ErrNoProcess
	}
	return err
}

// reach dials where that is needed.
func (v *Visitor) reach(ctx context.Context) (*quic.Peer, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.peer != nil && v.peer.Err() == nil {
		return v.peer, nil
	}
	p, _, err := v.node.Dial(ctx, v.join.Address, v.join.Server, v.hello)
	if r, ok := errors.AsType[wire.Refused](err); ok && v.hello.Role == wire.Operator && !r.Retry && r.Code != wire.CodeRevoked {
		asViewer := v.hello // whom the run knows as one needs no token any more
		asViewer.Role = wire.Viewer
		var second error
		p, _, second = v.node.Dial(ctx, v.join.Address, v.join.Server, asViewer)
		if r, ok := errors.AsType[wire.Refused](second); !ok || r.Code != wire.CodeRole { // else the first says what is wrong
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

// Dial begins a conversation with the run's control socket. It and the conversation fail with [view.ErrNoProcess] where the
// machine there says that the run's process is gone.
func (v *Visitor) Dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, arrival)
	defer cancel()
	if v.lost() && quic.Shut(ctx, v.join.Address) { // a dial would wait for an answer
		return nil, view.ErrNoProcess
	}
	p, err := v.reach(ctx)
	if err != nil {
		return nil, err
	}
	c, err := p.Open(ctx)
	if err != nil {
		return nil, v.why(err)
	}
	return conversation{c, v}, nil
}

// lost says whether the connection with the run broke.
func (v *Visitor) lost() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.peer.Err() != nil
}

// why is the reason of a failure: nobody is there, or what it says itself.
func (v *Visitor) why(err error) error {
	g, ok := errors.AsType[*quic.GoneError](err)
	if ok && g.Cause != quic.Closed && quic.Shut(context.Background(), v.join.Address) {
		return view.ErrNoProcess
	}
	return err
}

// conversation is with the run's control socket.
type conversation struct {
	net.Conn
	visitor *Visitor
}

// Read says why the run is gone, where it is.
func (c conversation) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		err = c.visitor.why(err)
	}
	return n, err
}

// Role is what the run lets this visitor do.
func (v *Visitor) Role() wire.Role {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.hello.Role
}

// Gone is closed when the run's coordinator is.
func (v *Visitor) Gone() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.peer.Done()
}

func (v *Visitor) String() string { return fmt.Sprintf("%s at %s", v.Role(), v.join.Address) }

// Close leaves.
func (v *Visitor) Close() error { return v.node.Close() }
