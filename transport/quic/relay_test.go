package quic

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go/testutils/simnet"

	"brood/transport/linktest"
	"brood/transport/wire"
)

// walled returns a network on which only packets to or from address 0, the coordinator's, arrive while up reports true.
func walled(seed uint64, up func() bool) *network {
	n := newNetwork(seed)
	n.drop = func(p simnet.Packet) bool {
		hub := address(0).String()
		return up() && p.From.String() != hub && p.To.String() != hub
	}
	return n
}

func always() bool { return true }

// relayedFleet opens n workers, which dial the coordinator hub. Without direct addresses on the roster, they dial
// through the relay only.
func relayedFleet(t testing.TB, hub *Node, open func(int) *Node, n int, direct bool) *fleet {
	t.Helper()
	f := newFleet(t, func(i int) *Node {
		node := open(i + 1)
		dial(t, node, hub, wire.Hello{Role: wire.Worker})
		accept(t, hub)
		return node
	}, ones(n)...)
	if !direct {
		for i := range f.roster {
			f.roster[i].Addresses = nil
		}
		for _, m := range f.meshes {
			if err := m.SetRoster(f.roster); err != nil {
				t.Fatal(err)
			}
		}
	}
	return f
}

func workerAt(hub *Node, id relayID) *Peer {
	hub.mu.Lock()
	defer hub.mu.Unlock()
	return hub.workers[id]
}

// TestRelayedLink: the Link contract holds between workers that reach only the coordinator, with loss too.
func TestRelayedLink(t *testing.T) {
	for _, loss := range []float64{0, 0.01} {
		linktest.Run(t, func(n int) ([]linktest.Link, func()) {
			net := walled(1, always)
			open := net.open(t)
			hub := open(0)
			f := relayedFleet(t, hub, open, n, false)
			net.set(func() { net.loss = loss })
			return f.links, func() {
				f.close(t)
				if err := hub.Close(); err != nil {
					t.Error(err)
				}
				net.close(t)
			}
		})
	}
}

// TestRelayFollowsDirect: workers with addresses connect directly where they can and through the relay where they
// cannot. A pair that was relayed begins its next dial with the relay, until an address changes.
func TestRelayFollowsDirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := false
		net := walled(2, func() bool { return wall })
		open := net.open(t)
		hub := open(0)
		f := relayedFleet(t, hub, open, 2, true)
		exchange := func(epoch uint32, relayed bool) time.Duration {
			t.Helper()
			began := time.Now()
			send(t, f.links[0], 1, epoch, 1, "op", payloadOf(1, 3*shard))
			send(t, f.links[1], 0, epoch, 1, "op", payloadOf(2, 100))
			recv(t, f.links[0], 1, epoch, 1, payloadOf(2, 100))
			recv(t, f.links[1], 0, epoch, 1, payloadOf(1, 3*shard))
			for _, m := range f.meshes {
				if s := m.Pairs()[0]; s.Relayed != relayed || !s.Connected {
					t.Errorf("epoch %d: %+v, want relayed %v", epoch, s, relayed)
				}
			}
			return time.Since(began)
		}
		cut := func() {
			conn := connected(t, pairOf(f, 0, 0, 1)).conn
			_ = conn.CloseWithError(codeBroken, "planted")
			until(t, "both ends notice", func() bool {
				return !f.meshes[0].Pairs()[0].Connected && !f.meshes[1].Pairs()[0].Connected
			})
		}
		if took := exchange(1, false); took > 100*time.Millisecond {
			t.Errorf("the direct connection took %s", took)
		}
		net.set(func() { wall = true })
		cut()
		if took := exchange(2, true); took < time.Second || took > pairTimeout/2 {
			t.Errorf("the first connection through the relay took %s", took)
		}
		cut()
		if took := exchange(3, true); took > time.Second {
			t.Errorf("the second connection through the relay took %s", took)
		}
		net.set(func() { wall = false })
		for i := range f.roster {
			f.roster[i].Addresses = append([]string{"10.0.9.9:1"}, f.roster[i].Addresses...)
		}
		for _, m := range f.meshes {
			if err := m.SetRoster(f.roster); err != nil {
				t.Fatal(err)
			}
		}
		cut()
		exchange(4, false)

		// A worker that the coordinator has removed is not relayed any more.
		net.set(func() { wall = true })
		cut()
		workerAt(hub, relayIDOf(f.nodes[1].ID())).Close("removed")
		send(t, f.links[0], 1, 5, 1, "op", payloadOf(1, 100))
		_, _, _, err := f.links[0].Recv(bounded(t), 1, 5)
		if err == nil || !strings.Contains(err.Error(), "check that its advertised address can be reached") {
			t.Errorf("the link of a removed worker: %v", err)
		}
		f.close(t)
		if err := hub.Close(); err != nil {
			t.Error(err)
		}
		net.close(t)
	})
}

// TestRelayForwardsOnlyWorkers: the coordinator forwards an envelope only between admitted workers and only from the
// address of its source; a worker takes one only from its coordinator.
func TestRelayForwardsOnlyWorkers(t *testing.T) {
	hub := admitAll(t)
	var workers [2]*Node
	var peers [2]*Peer
	for i := range workers {
		workers[i] = newNode(t, nil)
		peers[i], _ = pairUp(t, workers[i], hub)
	}
	viewer := newNode(t, nil)
	dial(t, viewer, hub, wire.Hello{Role: wire.Viewer})
	accept(t, hub)
	a, b, v := relayIDOf(workers[0].ID()), relayIDOf(workers[1].ID()), relayIDOf(viewer.ID())
	for name, c := range map[string]struct {
		to, source relayID
		from       net.Addr
		want       *Node
	}{
		"between workers":          {b, a, workers[0].Address(), workers[1]},
		"from another address":     {b, a, workers[1].Address(), nil},
		"from a stranger":          {b, relayID{1}, workers[0].Address(), nil},
		"to a stranger":            {relayID{1}, a, workers[0].Address(), nil},
		"to itself":                {a, a, workers[0].Address(), nil},
		"from a viewer":            {b, v, viewer.Address(), nil},
		"to a viewer":              {v, a, workers[0].Address(), nil},
		"to the coordinator's key": {relayIDOf(hub.ID()), a, workers[0].Address(), nil},
	} {
		p := hub.receiver(c.to, c.source, c.from)
		if (p == nil) != (c.want == nil) || p != nil && !p.Node().Equal(c.want.ID()) {
			t.Errorf("%s: %v", name, p)
		}
	}

	r := &relay{node: workers[1], in: make(chan relayed, 2)} // no transport reads it
	r.through.Store(workers[1].relay.Load().through.Load())
	r.deliver(a, []byte("false"), viewer.Address())
	r.deliver(a, []byte("true"), hub.Address())
	buf := make([]byte, 100)
	if n, from, err := r.ReadFrom(buf); err != nil || string(buf[:n]) != "true" || from != a {
		t.Errorf("read %q from %v, %v", buf[:n], from, err)
	}
	// Malformed datagrams and false packets change nothing: both workers and the coordinator still answer.
	for _, size := range []int{1, relayHeader - 1, relayHeader, relayHeader + 1, 1500} {
		p := make([]byte, size)
		p[0] = relayMark
		for i, id := range []relayID{b, a} {
			if at := 1 + 8*i; at < size {
				copy(p[at:], id[:])
			}
		}
		for from, to := range map[*Node]*Node{workers[0]: hub, hub: workers[1]} {
			if _, err := from.transport.WriteTo(p, to.Address()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, w := range workers {
		p := workerAt(hub, relayIDOf(w.ID()))
		say(t, p, wire.FirstKind, "hello")
		expectMessage(t, peers[i], wire.FirstKind, "hello")
	}
	for range maxShare {
		if _, err := workers[0].strangers.enter(relayID{9}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := workers[0].strangers.enter(b); err != nil {
		t.Errorf("one relayed stranger takes the places of all: %v", err)
	}
}

// TestRelayOnlyIfNeeded: a pair of which one side reaches the other connects directly, although the other dials in
// vain, and so does one whose other side has the roster late.
func TestRelayOnlyIfNeeded(t *testing.T) {
	for late := time.Duration(0); late <= 600*time.Millisecond; late += 60 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			net := newNetwork(uint64(late) + 1)
			net.delay = late / 6
			open := net.open(t)
			hub := open(0)
			f := relayedFleet(t, hub, open, 2, true)
			f.roster[1].Addresses = []string{"10.0.9.9:1"}
			for i, m := range f.meshes {
				time.Sleep(time.Duration(i) * late)
				if err := m.SetRoster(f.roster); err != nil {
					t.Fatal(err)
				}
				send(t, f.links[i], 1-i, 1, 1, "op", payloadOf(i, 100))
			}
			recv(t, f.links[0], 1, 1, 1, payloadOf(1, 100))
			recv(t, f.links[1], 0, 1, 1, payloadOf(0, 100))
			if s := f.meshes[0].Pairs()[0]; s.Relayed {
				t.Errorf("%s late: %+v", late, s)
			}
			f.close(t)
			if err := hub.Close(); err != nil {
				t.Error(err)
			}
			net.close(t)
		})
	}
}

// TestRelayedPair: a relayed pair outlasts a coordinator that is silent for three seconds, is slowed down by a shape,
// and notices the end of the other side at once, and a restart under its key before it counts as silent.
func TestRelayedPair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := walled(5, always)
		wall := net.drop
		open := net.open(t, newKey(t), newKey(t), newKey(t))
		hub := open(0)
		f := relayedFleet(t, hub, open, 2, false)
		seq := uint64(0)
		exchange := func() time.Duration {
			t.Helper()
			seq++
			began := time.Now()
			send(t, f.links[0], 1, 1, seq, "op", payloadOf(int(seq), 100))
			recv(t, f.links[1], 0, 1, seq, payloadOf(int(seq), 100))
			return time.Since(began)
		}
		exchange()
		time.Sleep(time.Second)
		net.set(func() {
			net.drop = func(p simnet.Packet) bool { return wall(p) || p.From.String() == address(0).String() }
		})
		time.Sleep(3 * time.Second)
		net.set(func() { net.drop = wall })
		exchange()
		if err := f.meshes[0].Shape(0, 1, Shape{Delay: 300 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		if took := exchange(); took < 300*time.Millisecond {
			t.Errorf("shaped by 300 ms, a message takes %s", took)
		}

		s := connected(t, pairOf(f, 0, 0, 1))
		dead := address(2).String()
		net.set(func() { net.dead[dead] = true })
		if err := f.nodes[1].Close(); err != nil {
			t.Error(err)
		}
		net.set(func() { net.dead[dead] = false })
		node := open(2)
		dial(t, node, hub, wire.Hello{Role: wire.Worker})
		accept(t, hub)
		began := time.Now()
		<-s.ctx.Done()
		if took := time.Since(began); took > time.Second {
			t.Errorf("a restart was noticed after %s: %v", took, s.failure())
		}
		for _, n := range []*Node{node, f.nodes[0], hub} {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}
		net.close(t)
	})
	hub := admitAll(t)
	f := relayedFleet(t, hub, onLoopback(t), 2, false)
	s := connected(t, pairOf(f, 1, 1, 0))
	f.meshes[0].Close()
	<-s.ctx.Done()
	if g, _ := errors.AsType[*GoneError](s.failure()); g == nil || g.Cause == Silent {
		t.Errorf("the end of the other side: %v", s.failure())
	}
	f.close(t)
}

// TestRelayAtEachAddress: a coordinator on all addresses relays between workers that dial one which the kernel would
// not choose as the source.
func TestRelayAtEachAddress(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs 127.0.0.2, which only Linux has by itself")
	}
	hub := newNode(t, func(c *Config) { c.Admit, c.Address = welcome, ":0" })
	at := fmt.Sprintf("127.0.0.2:%d", hub.Address().(*net.UDPAddr).Port)
	f := newFleet(t, func(i int) *Node {
		node := onLoopback(t)(i)
		if _, _, err := node.Dial(bounded(t), at, hub.ID(), wire.Hello{Role: wire.Worker}); err != nil {
			t.Fatal(err)
		}
		accept(t, hub)
		return node
	}, 1, 1)
	for i := range f.roster {
		f.roster[i].Addresses = nil
	}
	for _, m := range f.meshes {
		if err := m.SetRoster(f.roster); err != nil {
			t.Fatal(err)
		}
	}
	send(t, f.links[0], 1, 1, 1, "op", payloadOf(1, 100))
	recv(t, f.links[1], 0, 1, 1, payloadOf(1, 100))
	f.close(t)
}
