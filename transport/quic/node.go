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
	"sync/atomic"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"brood/transport/identity"
	"brood/transport/wire"
)

// Config configures a node.
type Config struct {
	Key     *identity.Key
	Address string         // UDP HOST:PORT to listen on; "" uses any free port
	Conn    net.PacketConn // used instead of Address; the node closes it
	// Admit decides on every Hello; nil refuses all. Many goroutines may call it at once, and it must return soon. Its
	// context is cancelled once the answer was sent, or can no longer be.
	Admit func(context.Context, Request) (wire.Welcome, error)
	// Known reports whether a node was admitted before: it then does not count as a stranger. nil: none was.
	Known func(wire.NodeID) bool
	// Allow reports whether a peer of a role may send a kind of message; nil allows everything.
	Allow func(role wire.Role, kind uint16) bool
	// MaxQueue is the number of bytes that may wait for a peer that does not read before the peer is cut; 0 is 16 MiB.
	MaxQueue int
	// MaxBacklog is the number of bytes that may wait to be sent to one worker of a mesh before the pair is cut; 0 is 4
	// GiB. It must exceed what a worker sends in a round.
	MaxBacklog int
	// Sending is called before each write, by any goroutine; a write may hold many packets, including acknowledgements.
	// It may be nil.
	Sending func()
}

// Request is a Hello to decide on. Node is from the certificate.
type Request struct {
	Hello   wire.Hello
	Node    wire.NodeID
	Address net.Addr
}

// Node is a process's endpoint of all its connections.
type Node struct {
	cfg       Config
	shaper    *Shaper
	conn      net.PacketConn
	transport *quicgo.Transport
	relay     atomic.Pointer[relay] // nil until this node has dialled a coordinator as a worker

	ctx    context.Context // cancelled by Close
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	closed sync.Once

	strangers strangers
	accepted  chan *Peer

	mu      sync.Mutex
	peers   map[*Peer]struct{}
	workers map[relayID]*Peer // peers that were admitted as workers
	meshes  map[wire.RunID]*Mesh
}

const (
	handshakeTimeout = 5 * time.Second
	idleTimeout      = 6 * time.Second
	defaultQueue     = 16 << 20
	defaultBacklog   = min(4<<30, math.MaxInt)
)

// ErrClosed is the error of a closed node or mesh.
var ErrClosed = errors.New("closed on this side")

// Listen opens a node's socket and accepts connections.
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
			return nil, fmt.Errorf("listen on %q: %w: name an address of this machine and a port that no other program uses",
				cfg.Address, err)
		}
	}
	// Without this quic-go logs advice on buffer sizes to stderr, over the workbench.
	if err := os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true"); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", conn.LocalAddr(), err)
	}
	n := &Node{
		cfg:      cfg,
		accepted: make(chan *Peer),
		peers:    map[*Peer]struct{}{},
		workers:  map[relayID]*Peer{},
		meshes:   map[wire.RunID]*Mesh{},
	}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.shaper = newShaper(n.ctx, &n.wg)
	n.shaper.sending, n.shaper.envelope = cfg.Sending, n.handleEnvelope
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
	n.wg.Go(func() { n.acceptAll(listener) })
	return n, nil
}

// quicConfig returns the configuration of a connection, a new one each time, since quic-go writes to it. A stranger can
// fill only the initial windows: they grow as data is read.
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

// ID returns the node's id.
func (n *Node) ID() wire.NodeID { return n.cfg.Key.Node() }

// Address returns the address that the node's socket is bound to.
func (n *Node) Address() net.Addr { return n.conn.LocalAddr() }

// Shaper returns the shaper of the node's outgoing packets.
func (n *Node) Shaper() *Shaper { return n.shaper }

// Accept waits for the next admitted peer. The caller closes it; Node.Close closes it too.
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

// Close ends all connections, frees the socket and waits for every goroutine of the node.
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
		if r := n.relay.Load(); r != nil {
			err = r.transport.Close()
		}
		err = errors.Join(err, n.transport.Close())
		err = errors.Join(err, n.conn.Close())
		n.wg.Wait()
	})
	return err
}

// silence returns how long one of the node's peers may be silent.
func (n *Node) silence() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return silenceFor(len(n.peers))
}

// register adds a peer until it is gone. It returns false if the node is closing: then the caller closes the peer.
func (n *Node) register(p *Peer) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return false
	}
	n.peers[p] = struct{}{}
	id := relayIDOf(p.Node())
	if p.Role() == wire.Worker {
		n.workers[id] = p
	}
	n.wg.Go(func() {
		<-p.Done()
		p.Close("")
		n.mu.Lock()
		delete(n.peers, p)
		if n.workers[id] == p {
			delete(n.workers, id)
		}
		n.mu.Unlock()
	})
	return true
}
