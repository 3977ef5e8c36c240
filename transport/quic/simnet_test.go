package quic

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go/testutils/simnet"

	"brood/models/longtest"
	"brood/transport/identity"
	"brood/transport/linktest"
)

// network is a simulated network in the time of a synctest bubble; the test sets its faults.
type network struct {
	mu    sync.Mutex
	rng   *rand.Rand
	nodes map[string]simnet.PacketReceiver
	loss  float64
	delay time.Duration // of each packet
	shake time.Duration // random extra delay, at most this, which reorders
	dead  map[string]bool
	split map[string]int           // address to side of a partition
	drop  func(simnet.Packet) bool // drops a packet; may be nil
	nets  []*simnet.Simnet
}

func newNetwork(seed uint64) *network {
	return &network{
		rng:   rand.New(rand.NewPCG(seed, 1)),
		nodes: map[string]simnet.PacketReceiver{},
		dead:  map[string]bool{},
		split: map[string]int{},
	}
}

func (n *network) AddNode(a net.Addr, r simnet.PacketReceiver) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes[a.String()] = r
}

func (n *network) SendPacket(p simnet.Packet) error {
	from, to := p.From.String(), p.To.String()
	n.mu.Lock()
	r := n.nodes[to]
	if n.dead[from] || n.dead[to] || n.split[from] != n.split[to] || n.rng.Float64() < n.loss ||
		n.drop != nil && n.drop(p) {
		r = nil
	}
	n.mu.Unlock()
	if r != nil {
		r.RecvPacket(p)
	}
	return nil
}

func (n *network) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// endpoint returns a socket at address i.
func (n *network) endpoint(t testing.TB, i int) net.PacketConn {
	t.Helper()
	s := &simnet.Simnet{Router: n}
	c := s.NewEndpoint(address(i), simnet.NodeBiDiLinkSettings{LatencyFunc: func(simnet.Packet) time.Duration {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.delay + 50*time.Microsecond + time.Duration(n.rng.Int64N(int64(n.shake)+1))
	}})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	n.set(func() { n.nets = append(n.nets, s) })
	return c
}

func address(i int) *net.UDPAddr { return &net.UDPAddr{IP: net.IPv4(10, 0, 0, byte(i+1)), Port: 4433} }

func (n *network) close(t testing.TB) {
	for _, s := range n.nets {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func (n *network) open(t testing.TB, keys ...*identity.Key) func(int) *Node {
	return func(i int) *Node {
		cfg := Config{Key: newKey(t), Conn: n.endpoint(t, i), Admit: welcome}
		if i < len(keys) {
			cfg.Key = keys[i]
		}
		node, err := Listen(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
}

// TestLinkOnABadNetwork: the Link contract holds with delay, jitter that reorders, and loss.
func TestLinkOnABadNetwork(t *testing.T) {
	for _, c := range []struct {
		loss  float64
		delay time.Duration
	}{{0, 0}, {0.01, 4 * time.Millisecond}} {
		t.Run(fmt.Sprintf("loss %g, delay %s", c.loss, c.delay), func(t *testing.T) {
			seed := uint64(0)
			linktest.Run(t, func(n int) ([]linktest.Link, func()) {
				seed++
				net := newNetwork(seed)
				net.loss, net.shake = c.loss, c.delay
				f := newFleet(t, net.open(t), ones(n)...)
				return f.links, func() { f.close(t); net.close(t) }
			})
		})
	}
}

// scene is a run on a simulated network with faults: workers exchange messages epoch by epoch.
type scene struct {
	t     *testing.T
	seed  uint64
	net   *network
	keys  []*identity.Key
	fleet *fleet

	mu     sync.Mutex
	cond   sync.Cond
	epoch  uint32
	abort  context.CancelFunc
	ctx    context.Context // ends with the epoch
	done   map[int]bool    // workers that completed the epoch
	clean  int             // epochs that all workers completed
	aborts int
	over   bool
}

// size draws a message size: mostly small, sometimes one shard, seldom several.
func size(r *rand.Rand) int {
	switch r.IntN(100) {
	case 0:
		return shard + r.IntN(2*shard)
	case 1, 2:
		return smallest + r.IntN(100_000)
	case 3:
		return 0
	}
	return r.IntN(300)
}

// content returns a message determined by sender, receiver, epoch and number.
func (s *scene) content(from, to int, epoch uint32, seq uint64) []byte {
	r := rand.New(rand.NewPCG(s.seed, uint64(from)<<60|uint64(to)<<56|uint64(epoch)<<24|seq))
	p := make([]byte, size(r))
	for i := 0; i+8 <= len(p); i += 8 + i/64*8 {
		binary.LittleEndian.PutUint64(p[i:], r.Uint64())
	}
	return p
}

// next begins the epoch after e, unless e is over already. The lock is held.
func (s *scene) next(e uint32) {
	if s.epoch != e {
		return
	}
	s.abort()
	s.epoch++
	s.ctx, s.abort = context.WithCancel(context.Background())
	s.done = map[int]bool{}
	s.cond.Broadcast()
}

// work runs worker i through all epochs.
func (s *scene) work(i int) {
	for last := uint32(0); ; {
		s.mu.Lock()
		for s.epoch == last && !s.over {
			s.cond.Wait()
		}
		if s.over {
			s.mu.Unlock()
			return
		}
		e, ctx, link := s.epoch, s.ctx, s.fleet.links[i]
		s.mu.Unlock()
		last = e
		err := s.program(ctx, i, link, e)
		s.mu.Lock()
		if err != nil {
			if s.epoch == e {
				s.aborts++
			}
			s.next(e)
		} else if s.epoch == e {
			s.done[i] = true
			if len(s.done) == len(s.fleet.links) {
				s.clean++
				s.next(e)
			}
		}
		s.mu.Unlock()
	}
}

// program sends to all and receives from all, repeatedly, and checks every byte and the order.
func (s *scene) program(ctx context.Context, me int, l linktest.Link, epoch uint32) error {
	rounds := 2 + rand.New(rand.NewPCG(s.seed, uint64(epoch))).Uint64N(8)
	for seq := uint64(1); seq <= rounds; seq++ {
		time.Sleep(40 * time.Millisecond) // simulated training
		for to := range s.fleet.links {
			if to != me {
				if err := l.Send(to, epoch, seq, "op", s.content(me, to, epoch, seq)); err != nil {
					return err
				}
			}
		}
		for from := range s.fleet.links {
			if from == me {
				continue
			}
			got, op, p, err := l.Recv(ctx, from, epoch)
			if err != nil {
				return err
			}
			if want := s.content(from, me, epoch, seq); got != seq || op != "op" || !bytes.Equal(p, want) {
				s.t.Errorf("seed %d: %d from %d in epoch %d: got %s #%d of %d bytes, want #%d of %d", s.seed, me, from, epoch, op,
					got, len(p), seq, len(want))
				return errors.New("wrong")
			}
		}
	}
	return nil
}

// restart replaces worker i by another process with the same key, as after kill -9.
func (s *scene) restart(i int) {
	a := address(i).String()
	s.net.set(func() { s.net.dead[a] = true })
	if err := s.fleet.nodes[i].Close(); err != nil {
		s.t.Error(err)
	}
	s.net.set(func() { s.net.dead[a] = false })
	node := s.net.open(s.t, s.keys...)(i)
	mesh, err := node.Mesh(run)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := mesh.SetRoster(s.fleet.roster); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.fleet.nodes[i], s.fleet.links[i] = node, mesh.Link(uint32(i))
	s.next(s.epoch) // as a coordinator would plan again
	s.mu.Unlock()
}

// faults inserts random faults for a while and repairs all of them at the end.
func (s *scene) faults(mild bool) {
	r := rand.New(rand.NewPCG(s.seed, 99))
	n := len(s.fleet.nodes)
	between := func(lo, hi time.Duration) time.Duration { return lo + time.Duration(r.Int64N(int64(hi-lo))) }
	for range 3 + r.IntN(5) {
		time.Sleep(between(10*time.Millisecond, 1500*time.Millisecond))
		victim := address(r.IntN(n)).String()
		kind := r.IntN(6)
		if mild {
			kind = r.IntN(2)
		}
		switch kind {
		case 0:
			s.net.set(func() { s.net.loss = r.Float64() * 0.03 })
		case 1:
			s.net.set(func() { s.net.delay, s.net.shake = between(1, 20*time.Millisecond), between(1, 10*time.Millisecond) })
		case 2: // a cut cable: a short cut is bridged, a long one is not
			s.net.set(func() { s.net.dead[victim] = true })
			time.Sleep(between(50*time.Millisecond, 4*time.Second))
			s.net.set(func() { s.net.dead[victim] = false })
		case 3:
			s.net.set(func() { s.net.split[victim] = 1 })
			time.Sleep(between(100*time.Millisecond, 15*time.Second))
			s.net.set(func() { clear(s.net.split) })
		case 4:
			s.restart(r.IntN(n))
		case 5: // one connection of a pair breaks
			i := r.IntN(n)
			if pairs := s.fleet.nodes[i].meshes[run].all(); len(pairs) > 0 {
				p := pairs[r.IntN(len(pairs))]
				p.mu.Lock()
				if p.association != nil {
					conn := p.association.conn
					if k := len(p.association.lanes); k > 0 && r.IntN(2) == 0 {
						conn = p.association.lanes[r.IntN(k)]
					}
					p.mu.Unlock()
					_ = conn.CloseWithError(codeBroken, "planted")
				} else {
					p.mu.Unlock()
				}
			}
		}
	}
	s.net.set(func() { s.net.loss, s.net.delay, s.net.shake = 0, 0, 0 })
}

// playScene runs one schedule of faults and returns the number of aborted epochs.
func playScene(t *testing.T, seed uint64, keys []*identity.Key, mild bool) (aborts int) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, seed: seed, net: newNetwork(seed), keys: keys, epoch: 1, done: map[int]bool{}}
		s.cond.L = &s.mu
		s.ctx, s.abort = context.WithCancel(context.Background())
		s.fleet = newFleet(t, s.net.open(t, keys...), ones(len(keys))...)
		var wg sync.WaitGroup
		for i := range keys {
			wg.Go(func() { s.work(i) })
		}
		s.faults(mild)
		s.mu.Lock()
		goal := s.clean + 2
		s.mu.Unlock()
		for waited := 0; ; waited++ {
			s.mu.Lock()
			clean := s.clean
			s.mu.Unlock()
			if clean >= goal {
				break
			}
			if waited > 60 {
				t.Errorf("seed %d: a minute after the last fault, epoch %d still hangs", seed, s.epoch)
				break
			}
			time.Sleep(time.Second)
		}
		s.mu.Lock()
		s.over = true
		s.abort()
		s.cond.Broadcast()
		aborts = s.aborts
		s.mu.Unlock()
		wg.Wait()
		s.fleet.close(t)
		s.net.close(t)
	})
	return aborts
}

func number(t *testing.T, name string, standard int) int {
	v := os.Getenv(name)
	if v == "" {
		return standard
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatalf("%s=%s is no number", name, v)
	}
	return n
}

// TestFaults: whatever the network does, no worker receives frames out of order, with gaps or from another epoch; none
// hangs, and the fleet recovers with the network.
func TestFaults(t *testing.T) {
	keys := []*identity.Key{newKey(t), newKey(t), newKey(t)}
	if seed := number(t, "BROOD_NET_SEED", 0); seed > 0 {
		playScene(t, uint64(seed), keys, false)
		return
	}
	standard := 8
	if longtest.On(longtest.Fleets) {
		standard = 500
	}
	runs := number(t, "BROOD_NET_RUNS", standard)
	aborts := 0
	for seed := 1; seed <= runs && !t.Failed(); seed++ {
		aborts += playScene(t, uint64(seed), keys, false)
	}
	t.Logf("%d schedules, %d epochs aborted", runs, aborts)
	if aborts == 0 {
		t.Error("nothing was ever cut: the test shows nothing")
	}
}

// TestLossAndDelayCutNothing: loss and delay alone cut nothing.
func TestLossAndDelayCutNothing(t *testing.T) {
	keys := []*identity.Key{newKey(t), newKey(t), newKey(t)}
	for seed := uint64(1); seed <= 3; seed++ {
		if n := playScene(t, seed, keys, true); n > 0 {
			t.Errorf("seed %d: %d epochs were aborted", seed, n)
		}
	}
}
