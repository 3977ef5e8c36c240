package quic

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/transport/linktest"
	"brood/transport/wire"
)

// fleet is nodes that host some workers each, with a common roster.
type fleet struct {
	nodes  []*Node
	meshes []*Mesh
	roster wire.Roster
	links  []linktest.Link
}

var run = wire.RunID{7}

// newFleet opens a node for each entry of hosts, which is its number of workers.
func newFleet(t testing.TB, open func(i int) *Node, hosts ...int) *fleet {
	t.Helper()
	f := &fleet{}
	for i, n := range hosts {
		node := open(i)
		m, err := node.Mesh(run)
		if err != nil {
			t.Fatal(err)
		}
		f.nodes, f.meshes = append(f.nodes, node), append(f.meshes, m)
		for range n {
			index := uint32(len(f.roster))
			f.roster = append(f.roster, wire.PeerAddress{
				Index:     index,
				Node:      node.ID(),
				Addresses: []string{node.Address().String()},
				Name:      fmt.Sprint("worker ", index),
			})
			f.links = append(f.links, m.Link(index))
		}
	}
	for _, m := range f.meshes {
		if err := m.SetRoster(f.roster); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *fleet) close(t testing.TB) {
	for _, n := range f.nodes {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

func onLoopback(t testing.TB) func(int) *Node {
	return func(int) *Node {
		n, err := Listen(Config{Key: newKey(t), Address: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

func ones(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

func TestLink(t *testing.T) {
	t.Run("a process each", func(t *testing.T) {
		linktest.Run(t, func(n int) ([]linktest.Link, func()) {
			f := newFleet(t, onLoopback(t), ones(n)...)
			return f.links, func() { f.close(t) }
		})
	})
	t.Run("one process", func(t *testing.T) {
		linktest.Run(t, func(n int) ([]linktest.Link, func()) {
			f := newFleet(t, onLoopback(t), n)
			return f.links, func() { f.close(t) }
		})
	})
	t.Run("uneven processes", func(t *testing.T) {
		linktest.Run(t, func(n int) ([]linktest.Link, func()) {
			f := newFleet(t, onLoopback(t), n/2, n-n/2)
			return f.links, func() { f.close(t) }
		})
	})
}

func send(t testing.TB, l linktest.Link, to int, epoch uint32, seq uint64, op string, p []byte) {
	t.Helper()
	if err := l.Send(to, epoch, seq, op, p); err != nil {
		t.Fatal(err)
	}
}

func recv(t testing.TB, l linktest.Link, from int, epoch uint32, seq uint64, want []byte) {
	t.Helper()
	s, _, p, err := l.Recv(bounded(t), from, epoch)
	if err != nil || s != seq || !bytes.Equal(p, want) {
		t.Fatalf("from %d in epoch %d: #%d of %d bytes, %v; want #%d of %d", from, epoch, s, len(p), err, seq, len(want))
	}
}

func pairOf(f *fleet, node int, self, other uint32) *pair { return f.meshes[node].find(self, other) }

// connected connects a pair if it is not connected.
func connected(t testing.TB, p *pair) *association {
	t.Helper()
	var s *association
	p.mu.Lock()
	p.want(0)
	p.mu.Unlock()
	until(t, "a connection", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		s = p.association
		return s != nil
	})
	return s
}

// A cut affects the epochs that were in use, on both sides, after the frames that had arrived, and no other epochs.
func TestCut(t *testing.T) {
	f := newFleet(t, onLoopback(t), 1, 1)
	defer f.close(t)
	a, b := f.links[0], f.links[1]
	for seq := uint64(1); seq <= 10; seq++ {
		send(t, a, 1, 5, seq, "op", payloadOf(int(seq), 100))
		send(t, b, 0, 4, seq, "op", payloadOf(int(seq), 100))
	}
	recv(t, b, 0, 5, 1, payloadOf(1, 100))
	until(t, "all of them", func() bool { return f.meshes[1].Pairs()[0].Parked == 9*(100+perEntry) })
	connected(t, pairOf(f, 0, 0, 1)).fail(broken("a test breaks it"))
	isCut(t, pairOf(f, 0, 0, 1), 6)
	isCut(t, pairOf(f, 1, 1, 0), 6)
	var c *CutError
	if err := a.Send(1, 5, 11, "op", nil); !errors.As(err, &c) || c.Worker != 1 || c.Epoch != 5 ||
		!strings.Contains(err.Error(), "a test breaks it") {
		t.Errorf("sends in the epoch of the cut: %v", err)
	}
	for seq := uint64(2); seq <= 10; seq++ {
		recv(t, b, 0, 5, seq, payloadOf(int(seq), 100))
	}
	if _, _, _, err := b.Recv(bounded(t), 0, 5); !errors.As(err, &c) {
		t.Errorf("receives beyond the cut: %v", err)
	}
	if err := b.Send(0, 5, 1, "op", nil); !errors.As(err, &c) { // 4 was its highest epoch; the other side used 5
		t.Errorf("sends in the epoch of the other's cut: %v", err)
	}
	if _, _, _, err := a.Recv(bounded(t), 1, 5); !errors.As(err, &c) {
		t.Errorf("receives in it: %v", err)
	}
	for epoch := uint32(6); epoch < 8; epoch++ {
		send(t, a, 1, epoch, 1, "op", payloadOf(1, 3<<20))
		send(t, b, 0, epoch, 1, "op", payloadOf(2, 10))
		recv(t, b, 0, epoch, 1, payloadOf(1, 3<<20))
		recv(t, a, 1, epoch, 1, payloadOf(2, 10))
	}
}

// renewed waits until both ends of a pair have the same connection, other than old.
func renewed(t testing.TB, a, b *pair, old *association) {
	t.Helper()
	until(t, "a new connection of both", func() bool {
		s, o := connected(t, a), connected(t, b)
		return s.id == o.id && s.id != old.id
	})
}

func isCut(t testing.TB, p *pair, below uint64) {
	t.Helper()
	until(t, "a cut", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.cut == below
	})
}

// A receiver that waits while the connection breaks gets an error if frames may be lost. If none were sent yet, none
// were lost.
func TestCutWakesReceivers(t *testing.T) {
	f := newFleet(t, onLoopback(t), 1, 1)
	defer f.close(t)
	wait := func(epoch uint32) chan error {
		errs := make(chan error, 1)
		go func() {
			_, _, _, err := f.links[1].Recv(bounded(t), 0, epoch)
			errs <- err
		}()
		until(t, "the call", func() bool {
			p := pairOf(f, 1, 1, 0)
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.asked == uint64(epoch)+1
		})
		return errs
	}
	errs := wait(3)
	old := connected(t, pairOf(f, 1, 1, 0))
	old.fail(broken("a test breaks it"))
	renewed(t, pairOf(f, 0, 0, 1), pairOf(f, 1, 1, 0), old) // a frame sent on the old connection would be lost with it
	send(t, f.links[1], 0, 3, 1, "op", []byte{1})
	send(t, f.links[0], 1, 3, 1, "op", []byte{2})
	if err := <-errs; err != nil {
		t.Error(err)
	}
	send(t, f.links[0], 1, 8, 1, "op", []byte{1})
	recv(t, f.links[1], 0, 8, 1, []byte{1})
	errs = wait(8)
	connected(t, pairOf(f, 1, 1, 0)).fail(broken("a test breaks it"))
	if c, ok := errors.AsType[*CutError](<-errs); !ok || c.Epoch != 8 {
		t.Errorf("%v", c)
	}
}

// The ledger counts payload where frames are written; the remainder is overhead.
func TestLedger(t *testing.T) {
	f := newFleet(t, onLoopback(t), 1, 2)
	defer f.close(t)
	sizes := map[string][]int{"centre": {0, 1, 100, smallest, smallest + 1, shard, shard + 1, 5*shard - 1},
		"phase": {8, 8, 8}}
	want, seq := map[string]int64{}, uint64(0)
	for op, all := range sizes {
		for _, n := range all {
			seq++
			send(t, f.links[0], 1, 1, seq, op, payloadOf(int(seq), n))
			recv(t, f.links[1], 0, 1, seq, payloadOf(int(seq), n))
			want[op] += int64(n)
		}
	}
	// counted just after it is written
	until(t, fmt.Sprint(want), func() bool { return maps.Equal(f.meshes[0].Ledger(), want) })
	send(t, f.links[1], 2, 1, 1, "within", make([]byte, 1000))
	recv(t, f.links[2], 1, 1, 1, make([]byte, 1000))
	total := f.meshes[0].Totals()
	// A busy machine drops packets, and what is sent again is overhead; twice the payload would be a count made twice.
	if sum := want["centre"] + want["phase"]; total.Payload != sum || total.Overhead() < sum/100 ||
		total.Overhead() > sum {
		t.Errorf("%+v for a payload of %d", total, sum)
	}
	if l := f.meshes[1].Ledger(); l["within"] != 1000 || f.meshes[1].Totals().Payload != 0 {
		t.Errorf("frames that stay in memory: %v, %+v", l, f.meshes[1].Totals())
	}
	// The cost of a connection is still counted after its end.
	connected(t, pairOf(f, 0, 0, 1)).fail(broken("a test breaks it"))
	until(t, "the sum", func() bool { return f.meshes[0].Totals().Sent >= total.Sent })
	for _, p := range f.meshes[0].Pairs() {
		if p.Self != 0 || p.Other == 0 {
			t.Errorf("%+v", p)
		}
	}
}

func TestRosterChanges(t *testing.T) {
	f := newFleet(t, onLoopback(t), 1, 1, 1)
	defer f.close(t)
	spread := func(r wire.Roster) {
		t.Helper()
		for _, m := range f.meshes {
			if err := m.SetRoster(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	epoch := uint32(0)
	exchange := func(a, b int) { // in a new epoch: a connection overtaken by a change of roster cuts one
		t.Helper()
		for late := bounded(t); ; {
			epoch++
			err := f.links[a].Send(b, epoch, 1, "op", []byte{1})
			if err == nil {
				_, _, _, err = f.links[b].Recv(bounded(t), a, epoch)
			}
			if _, cut := errors.AsType[*CutError](err); err == nil || !cut || late.Err() != nil {
				if err != nil {
					t.Fatal(a, b, err)
				}
				return
			}
		}
	}
	exchange(0, 1)
	exchange(2, 0)
	kept := connected(t, pairOf(f, 0, 0, 1))
	spread(f.roster[:2])
	if err := f.links[0].Send(2, 99, 2, "op", nil); err == nil || !strings.Contains(err.Error(), "not on the roster") {
		t.Errorf("sends to one who left: %v", err)
	}
	if _, _, _, err := f.links[2].Recv(bounded(t), 0, 99); err == nil {
		t.Error("one who left receives")
	}
	exchange(0, 1)
	if connected(t, pairOf(f, 0, 0, 1)) != kept {
		t.Error("the others' connection was replaced")
	}
	spread(f.roster)
	exchange(0, 2)
	for i := range 10 {
		spread(f.roster[:2+i%2])
	}
	exchange(1, 2)
	if err := f.meshes[0].SetRoster(wire.Roster{f.roster[1], f.roster[0]}); err == nil {
		t.Error("a roster out of order is taken")
	}
	if _, err := f.nodes[0].Mesh(run); err == nil {
		t.Error("a second mesh")
	}
	f.meshes[0].Close()
	if err := f.links[0].Send(1, 99, 1, "op", nil); err == nil {
		t.Error("a closed mesh sends")
	}
	if _, _, _, err := f.links[0].Recv(bounded(t), 1, 99); err == nil {
		t.Error("a closed mesh receives")
	}
	if err := f.meshes[0].SetRoster(f.roster); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	m, err := f.nodes[0].Mesh(run) // a new run in the same process
	if err != nil {
		t.Fatal(err)
	}
	f.meshes[0], f.links[0] = m, m.Link(0)
	spread(f.roster)
	exchange(0, 1)
	for _, to := range []int{-1, 0, 3, 1 << 40} {
		if err := f.links[0].Send(to, 99, 1, "op", nil); err == nil {
			t.Errorf("sends to %d", to)
		}
	}
	if err := f.links[0].Send(1, 99, 2, strings.Repeat("x", 65), nil); err == nil {
		t.Error("sends an operation of any name")
	}
	exchange(1, 0)
}

// Two runs share a node: each has its own workers with the same indices, and receives no frame of the other. A shape
// set in one run does not apply in the next.
func TestTwoRuns(t *testing.T) {
	f := newFleet(t, onLoopback(t), 1, 1)
	defer f.close(t)
	other := wire.RunID{8}
	third := newNode(t, nil)
	roster := wire.Roster{f.roster[0], {Index: 1, Node: third.ID(), Addresses: []string{third.Address().String()}}}
	var links []linktest.Link
	for i, n := range []*Node{f.nodes[0], third} {
		m, err := n.Mesh(other)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.SetRoster(roster); err != nil {
			t.Fatal(err)
		}
		links = append(links, m.Link(uint32(i)))
	}
	for i, l := range []linktest.Link{f.links[0], links[0]} {
		send(t, l, 1, 1, 1, "op", []byte{byte(i)})
	}
	for i, l := range []linktest.Link{f.links[1], links[1]} {
		recv(t, l, 0, 1, 1, []byte{byte(i)})
	}
	if err := f.meshes[0].Shape(0, 1, Shape{Delay: time.Second}); err != nil {
		t.Fatal(err)
	}
	there := connected(t, pairOf(f, 0, 0, 1)).conn.RemoteAddr()
	shaped := func() Shape {
		s := f.nodes[0].Shaper()
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.line(there).shape
	}
	if shaped().Delay != time.Second {
		t.Errorf("%+v", shaped())
	}
	f.meshes[0].Close()
	if shaped() != (Shape{}) {
		t.Errorf("after its run a link still has %+v", shaped())
	}
	send(t, links[1], 0, 2, 1, "op", []byte{3})
	recv(t, links[0], 1, 2, 1, []byte{3})
}

// Frames that no Recv asks for wait in bounded memory; a frame that Recv asks for arrives at any size.
func TestParkedIsBounded(t *testing.T) {
	f := newFleet(t, onLoopback(t), 1, 1)
	defer f.close(t)
	const mib, n = 1 << 20, 60
	for seq := uint64(1); seq <= n; seq++ {
		send(t, f.links[0], 1, 2, seq, "later", make([]byte, mib))
	}
	send(t, f.links[0], 1, 2, n+1, "huge", payloadOf(9, maxParked+4*mib))
	parked := func() int { return f.meshes[1].Pairs()[0].Parked }
	until(t, "the bound", func() bool { return parked() > maxParked-3*mib })
	for range 50 {
		if got := parked(); got > maxParked+2*mib {
			t.Fatalf("%d bytes are parked", got)
		}
		time.Sleep(time.Millisecond)
	}
	for seq := uint64(1); seq <= n; seq++ {
		recv(t, f.links[1], 0, 2, seq, make([]byte, mib))
	}
	recv(t, f.links[1], 0, 2, n+1, payloadOf(9, maxParked+4*mib))
	if got := parked(); got != 0 {
		t.Errorf("%d bytes are left", got)
	}
}

// A worker that does not receive is cut when its backlog is too large.
func TestBacklogIsBounded(t *testing.T) {
	f := newFleet(t, func(int) *Node {
		n, err := Listen(Config{Key: newKey(t), Address: "127.0.0.1:0", MaxBacklog: 20 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}, 1, 1)
	defer f.close(t)
	connected(t, pairOf(f, 0, 0, 1))
	var err error
	sent := 0
	for ; err == nil && sent < 1000; sent++ {
		err = f.links[0].Send(1, 1, uint64(sent), "op", make([]byte, 1<<20))
	}
	if err == nil || !strings.Contains(err.Error(), "it does not read: 20 MiB wait for it") || sent < 20 || sent > 300 {
		t.Errorf("after %d MiB: %v", sent, err)
	}
	send(t, f.links[0], 1, 2, 1, "op", []byte{1})
	recv(t, f.links[1], 0, 2, 1, []byte{1})
	isCut(t, pairOf(f, 1, 1, 0), 2)
}

// TestUnusedConnection: a pair connects when either side needs it, and the end of a connection that carried no frame
// cuts nothing: what waits is sent over the next one.
func TestUnusedConnection(t *testing.T) {
	for from := range 2 {
		f := newFleet(t, onLoopback(t), 1, 1)
		p := pairOf(f, from, uint32(from), uint32(1-from))
		if p.stats().Connected {
			t.Error("a pair connects that no side needs")
		}
		s := connected(t, p)
		p.mu.Lock()
		p.used = 2 // as after a Send of epoch 1 whose message no stream has taken
		p.mu.Unlock()
		s.fail(broken("a test breaks it"))
		until(t, "its end", func() bool { return !p.stats().Connected })
		send(t, f.links[from], 1-from, 1, 1, "op", []byte{1})
		recv(t, f.links[1-from], from, 1, 1, []byte{1})
		f.close(t)
	}
}

func payloadOf(seed, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(seed + i + i>>8*31 + i>>16*7)
	}
	return p
}

func TestLanesFor(t *testing.T) {
	for _, c := range []struct {
		have int
		rtt  time.Duration
		lost float64
		want int
	}{
		{1, 100 * time.Microsecond, 0, 1}, {1, 100 * time.Microsecond, 0.01, 1}, {1, 5 * time.Millisecond, 0.0004, 1},
		{1, 5 * time.Millisecond, 0.001, 4}, {4, 5 * time.Millisecond, 0.001, 8},
		{8, 5 * time.Millisecond, 0.5, 8}, {1, 40 * time.Millisecond, 0, 4}, {4, 40 * time.Millisecond, 0, 8},
		{8, time.Second, 0, 8}, {4, time.Millisecond, 0, 4},
	} {
		if got := lanesFor(c.have, c.rtt, c.lost); got != c.want {
			t.Errorf("%+v: %d lanes", c, got)
		}
	}
}

// Bulk from either side adds lanes, more of them if the network is bad; all of it arrives in order.
func TestLanesGrow(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "sends hundreds of MiB on a bad network")
	for _, from := range []int{0, 1} {
		net := newNetwork(5)
		net.delay = 15 * time.Millisecond
		f := newFleet(t, net.open(t), 1, 1)
		to := 1 - from
		n := 0
		for ctx := bounded(t); f.meshes[from].Pairs()[0].Lanes < 8; n++ {
			if ctx.Err() != nil {
				t.Fatalf("from %d: %+v", from, f.meshes[from].Pairs())
			}
			for k := range uint64(4) {
				send(t, f.links[from], to, 1, uint64(n)*4+k, "op", payloadOf(n, 1<<20))
			}
			for k := range uint64(4) {
				recv(t, f.links[to], from, 1, uint64(n)*4+k, payloadOf(n, 1<<20))
			}
		}
		f.close(t)
		net.close(t)
	}
}
