package quic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"brood/transport/identity"
	"brood/transport/wire"
)

// Config is what a node needs.
type Config struct {
	Key     *identity.Key
	Address string         // UDP HOST:PORT to listen on; "" is any port
	Conn    net.PacketConn // in place of Address; the node closes it
	// Admit decides on those who say Hello; nil lets nobody in. It may be called by many goroutines at once, and must
	// return soon. Its context ends once the answer was heard, or cannot be.
	Admit func(context.Context, Request) (wire.Welcome, error)
	// Known says whether a node came in before: it needs no place among the strangers. nil: none did.
	Known func(wire.NodeID) bool
	// Allow says whether a peer of a role may send a kind of message; nil allows everything.
	Allow func(role wire.Role, kind uint16) bool
	// MaxQueue is how many bytes may wait for a peer that does not read, before it is cut; 0 is 16 MiB.
	MaxQueue int
	// MaxBacklog is how many bytes may wait to be sent to one worker of a mesh, before the pair is cut; 0 is 4 GiB. It
	// must have room for what a program sends in a round.
	MaxBacklog int
	// Sending is called before each write, which may be of many packets, those that acknowledge others too, by any
	// goroutine; it may be nil.
	Sending func()
}

// Request is somebody who wants to come in. Node is from the certificate.
type Request struct {
	Hello   wire.Hello
	Node    wire.NodeID
	Address net.Addr
}

// Node is a process's end of all its connections.
type Node struct {
	cfg       Config
	shaper    *Shaper
	conn      net.PacketConn
	transport *quicgo.Transport
	listener  *quicgo.Listener

	ctx    context.Context // ends with the node
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	closed sync.Once

	strangers strangers
	accepted  chan *Peer

	mu     sync.Mutex
	peers  map[*Peer]struct{}
	meshes map[wire.RunID]*Mesh
}

const (
	handshakeTimeout = 5 * time.Second
	idleTimeout      = 6 * time.Second
	defaultQueue     = 16 << 20
	defaultBacklog   = min(4<<30, math.MaxInt)
)

// ErrClosed is what a closed node or mesh returns.
var ErrClosed = errors.New("this end was closed")

// Listen opens a node's socket.
func Listen(cfg Config) (*Node, error) {
	if cfg.Key == nil {
		return nil, errors.New("listen: a node needs a key")
	}
	if cfg.MaxQueue == 0 {
		cfg.MaxQueue = defaultQueue
	}
	if cfg.MaxBacklog == 0 {
		cfg.MaxBacklog = defaultBacklog
	}
	conn := cfg.Conn
	if conn == nil {
		addr, err := net.ResolveUDPAddr("udp", cfg.Address)
		if err != nil {
			return nil, fmt.Errorf("listen on %q: %w: name an address as HOST:PORT", cfg.Address, err)
		}
		conn, err = net.ListenUDP("udp", addr)
		if err != nil {
			return nil, fmt.Errorf("listen on %q: %w: name an address of this machine and a port that no other program has",
				cfg.Address, err)
		}
	}
	// quic-go would print its advice on buffer sizes into the workbench.
	if err := os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true"); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", conn.LocalAddr(), err)
	}
	n := &Node{cfg: cfg, accepted: make(chan *Peer), peers: map[*Peer]struct{}{}, meshes: map[wire.RunID]*Mesh{}}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.shaper = newShaper(n.ctx, &n.wg)
	n.shaper.sending = cfg.Sending
	n.conn = n.shaper.wrap(conn)
	reset := quicgo.StatelessResetKey(cfg.Key.ResetKey())
	n.transport = &quicgo.Transport{Conn: n.conn, StatelessResetKey: &reset, ConnContext: n.admitStranger,
		VerifySourceAddress: func(net.Addr) bool { return n.strangers.count() >= suspicious }}
	first := quicConfig()
	first.GetConfigForClient = n.configFor
	listener, err := n.transport.Listen(cfg.Key.Server(), first)
	if err != nil {
		n.cancel(ErrClosed)
		err = errors.Join(err, conn.Close())
		n.wg.Wait()
		return nil, fmt.Errorf("listen on %s: %w", conn.LocalAddr(), err)
	}
	n.listener = listener
	n.wg.Go(n.greetAll)
	return n, nil
}

// quicConfig is that of every connection. A stranger's data may fill the initial windows only: they grow as they are
// read. A new one each time, since quic-go writes to it.
func quicConfig() *quicgo.Config {
	return &quicgo.Config{
		HandshakeIdleTimeout:           handshakeTimeout,
		MaxIdleTimeout:                 idleTimeout,
		KeepAlivePeriod:                idleTimeout / 3,
		InitialStreamReceiveWindow:     512 << 10,
		MaxStreamReceiveWindow:         16 << 20,
		InitialConnectionReceiveWindow: 768 << 10,
		MaxConnectionReceiveWindow:     24 << 20,
		MaxIncomingStreams:             1 + maxConversations,
		MaxIncomingUniStreams:          2,
	}
}

// ID is the node's own id.
func (n *Node) ID() wire.NodeID { return n.cfg.Key.Node() }

// Address is where the node's socket is bound.
func (n *Node) Address() net.Addr { return n.conn.LocalAddr() }

// Shaper slows down what this node sends.
func (n *Node) Shaper() *Shaper { return n.shaper }

// Accept waits for the next peer that was let in. The caller closes it, or the node does.
func (n *Node) Accept(ctx context.Context) (*Peer, error) {
	select {
	case p := <-n.accepted:
		return p, nil
	case <-n.ctx.Done():
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends all connections and frees the socket. It returns when every goroutine of the node has ended.
func (n *Node) Close() error {
	var err error
	n.closed.Do(func() {
		n.cancel(ErrClosed)
		n.mu.Lock()
		meshes, peers := slices.Collect(maps.Values(n.meshes)), slices.Collect(maps.Keys(n.peers))
		n.mu.Unlock()
		for _, m := range meshes {
			m.Close()
		}
		for _, p := range peers {
			p.Close("the program ends")
		}
		err = n.transport.Close()
		err = errors.Join(err, n.conn.Close())
		n.wg.Wait()
	})
	return err
}

// keep holds a peer until it is gone. It is false where the node closes: then the caller closes the peer.
func (n *Node) keep(p *Peer) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return false
	}
	n.peers[p] = struct{}{}
	n.wg.Go(func() {
		<-p.Done()
		p.Close("")
		n.mu.Lock()
		delete(n.peers, p)
		n.mu.Unlock()
	})
	return true
}
