package quic

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"brood/transport/wire"
)

// Mesh holds the links between workers. It connects a pair of the roster when one of the two first sends or receives,
// and again when it is needed after the connection broke.
type Mesh struct {
	node *Node
	run  wire.RunID

	ctx    context.Context // cancelled by Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	pairs map[[2]uint32]*pair // by own index and the other's

	count struct {
		sync.Mutex
		ledger map[string]int64 // payload bytes sent, by operation
		remote int64            // payload bytes sent over connections
		sent   int64            // bytes of packets sent on connections that ended
	}
}

// Mesh creates the mesh of a run. A node has at most one mesh for each run.
func (n *Node) Mesh(run wire.RunID) (*Mesh, error) {
	m := &Mesh{node: n, run: run, pairs: map[[2]uint32]*pair{}}
	m.ctx, m.cancel = context.WithCancel(n.ctx)
	m.count.ledger = map[string]int64{}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.meshes[run] != nil {
		m.cancel()
		return nil, fmt.Errorf("this process is part of run %s already: close that mesh first", run)
	}
	n.meshes[run] = m
	m.wg.Go(m.watch)
	return m, nil
}

// meshOf returns the mesh of a run that a worker opens a pair for, or a refusal.
func (n *Node) meshOf(run wire.RunID) (*Mesh, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch m := n.meshes[run]; {
	case m != nil:
		return m, nil
	case len(n.meshes) == 0:
		return nil, refuseRoster("this process has not joined the run yet")
	}
	return nil, wire.Refused{Code: wire.CodeRun,
		Reason: fmt.Sprintf("this process is part of another run, not of %s", run)}
}

// SetRoster sets the node and addresses of each worker index, ascending. It creates pairs of this node with other
// workers and ends those that no longer match.
func (m *Mesh) SetRoster(r wire.Roster) error {
	for i, s := range r {
		if i > 0 && s.Index <= r[i-1].Index {
			return fmt.Errorf("roster: index %d is out of order", s.Index)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return ErrClosed
	}
	wanted := map[[2]uint32]wire.PeerAddress{}
	for _, mine := range r {
		for _, s := range r {
			if mine.Node.Equal(m.node.ID()) && s.Index != mine.Index {
				wanted[[2]uint32{mine.Index, s.Index}] = s
			}
		}
	}
	for key, p := range m.pairs {
		if s, ok := wanted[key]; !ok || !s.Node.Equal(p.node) {
			p.end(fmt.Errorf("worker %d left the roster", p.other))
			delete(m.pairs, key)
		}
	}
	for key, s := range wanted {
		if p := m.pairs[key]; p != nil {
			p.setAddresses(s.Addresses)
			continue
		}
		p := newPair(m, key[0], s)
		m.pairs[key] = p
	}
	return nil
}

func (m *Mesh) find(self, other uint32) *pair {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pairs[[2]uint32{self, other}]
}

// silence returns how long the other side of a pair may be silent.
func (m *Mesh) silence() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return silenceFor(len(m.pairs))
}

func (m *Mesh) all() []*pair {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*pair, 0, len(m.pairs))
	for _, p := range m.pairs {
		out = append(out, p)
	}
	return out
}

// watch fails pairs that are in use and do not connect in time.
func (m *Mesh) watch() {
	tick := time.NewTicker(pairTimeout / 20)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			for _, p := range m.all() {
				p.expire(now)
			}
		case <-m.ctx.Done():
			return
		}
	}
}

// pairTimeout is how long a pair may be in use without a connection before it fails.
const pairTimeout = 10 * time.Second

// opened answers a worker that opens a pair, or a lane of one.
func (m *Mesh) opened(o opening, open wire.Open) error {
	p := m.find(open.To, open.From)
	if p == nil || !p.node.Equal(o.node) || p.local {
		return refuseRoster(fmt.Sprintf("worker %d is not %s on the roster of this process", open.From, o.node.Short()))
	}
	if open.Lane > 0 {
		return p.openedLane(o, open)
	}
	return p.install(newAssociation(p, o, open.Association, false), open.Cut, 0)
}

func refuseRoster(reason string) error {
	return wire.Refused{Code: wire.CodeRoster, Reason: reason + ": it is tried again", Retry: true}
}

// Ledger returns the payload bytes sent so far by operation, counted where frames are written.
func (m *Mesh) Ledger() map[string]int64 {
	m.count.Lock()
	defer m.count.Unlock()
	return maps.Clone(m.count.ledger)
}

func (m *Mesh) charge(op string, n int, local bool) {
	m.count.Lock()
	defer m.count.Unlock()
	m.count.ledger[op] += int64(n)
	if !local {
		m.count.remote += int64(n)
	}
}

// Totals counts bytes of all pairs, including ended ones.
type Totals struct {
	Payload int64 // of messages sent over connections
	Sent    int64 // bytes of packets, without UDP and IP headers
}

// Overhead returns the bytes sent in addition to the payload: headers, acknowledgements, heartbeats and
// retransmissions.
func (t Totals) Overhead() int64 { return t.Sent - t.Payload }

// Totals returns the mesh's totals so far.
func (m *Mesh) Totals() Totals {
	var live int64
	for _, p := range m.all() {
		live += p.stats().Sent
	}
	m.count.Lock()
	defer m.count.Unlock()
	return Totals{m.count.remote, m.count.sent + live}
}

// Pairs returns the statistics of every pair of this node, in no order.
func (m *Mesh) Pairs() []PairStats {
	var out []PairStats
	for _, p := range m.all() {
		out = append(out, p.stats())
	}
	return out
}

// Shape slows down the packets from worker self, of this process, to another. It lasts for the life of the pair and
// affects all packets from this process to the other one.
func (m *Mesh) Shape(self, other uint32, s Shape) error {
	if err := s.Check(); err != nil {
		return err
	}
	p := m.find(self, other)
	if p == nil || p.local {
		return fmt.Errorf("shape: there is no connection between worker %d here and worker %d", self, other)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shape = &s
	p.applyShape()
	return nil
}

// Close ends all pairs and waits for every goroutine of the mesh. Links then return ErrClosed.
func (m *Mesh) Close() {
	m.mu.Lock()
	m.cancel()
	for _, p := range m.pairs {
		p.end(ErrClosed)
	}
	m.mu.Unlock()
	m.wg.Wait()
	m.node.mu.Lock()
	defer m.node.mu.Unlock()
	if m.node.meshes[m.run] == m {
		delete(m.node.meshes, m.run)
	}
}

// Link returns worker self's end of its pairs. One goroutine may use it at a time.
func (m *Mesh) Link(self uint32) *Link { return &Link{m, self} }

// Link sends to and receives from every worker of the roster, by index. It implements optim's collective.Link.
type Link struct {
	mesh *Mesh
	self uint32
}

func (l *Link) pair(other int) (*pair, error) {
	if other >= 0 && other < wire.NoWorker {
		if p := l.mesh.find(l.self, uint32(other)); p != nil {
			return p, nil
		}
	}
	if l.mesh.ctx.Err() != nil {
		return nil, ErrClosed
	}
	return nil, fmt.Errorf("worker %d is not on the roster with worker %d here", other, l.self)
}

// Send queues p for a worker and takes ownership of it. It never waits.
func (l *Link) Send(to int, epoch uint32, seq uint64, op string, p []byte) error {
	q, err := l.pair(to)
	if err != nil {
		return err
	}
	return q.send(message{epoch: epoch, seq: seq, op: op, p: p})
}

// Recv returns the next frame of this epoch from a worker. It drops frames of older epochs; a frame of a newer epoch
// waits for a call with that epoch. It fails with a *CutError if frames of the epoch may be lost, and when ctx is done.
func (l *Link) Recv(ctx context.Context, from int, epoch uint32) (uint64, string, []byte, error) {
	if err := ctx.Err(); err != nil {
		return 0, "", nil, err
	}
	q, err := l.pair(from)
	if err != nil {
		return 0, "", nil, err
	}
	m, err := q.recv(ctx, epoch)
	return m.seq, m.op, m.p, err
}
