package quic

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"brood/transport/identity"
	"brood/transport/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the time after which a test counts as hung.
const patience = 3 * time.Minute

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func newKey(t testing.TB) *identity.Key {
	t.Helper()
	k, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newNode is a node on the loopback interface, closed with the test.
func newNode(t testing.TB, change func(*Config)) *Node {
	t.Helper()
	cfg := Config{Key: newKey(t), Address: "127.0.0.1:0"}
	if change != nil {
		change(&cfg)
	}
	n, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return n
}

// welcome admits every peer.
func welcome(context.Context, Request) (wire.Welcome, error) { return wire.Welcome{Worker: 7}, nil }

func admitAll(t testing.TB) *Node {
	return newNode(t, func(c *Config) { c.Admit = welcome })
}

func dial(t testing.TB, from, to *Node, hello wire.Hello) *Peer {
	t.Helper()
	p, _, err := from.Dial(bounded(t), to.Address().String(), to.ID(), hello)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func accept(t testing.TB, n *Node) *Peer {
	t.Helper()
	p, err := n.Accept(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pairUp returns both ends of a control connection.
func pairUp(t testing.TB, from, to *Node) (theirs, ours *Peer) {
	t.Helper()
	p := dial(t, from, to, wire.Hello{Role: wire.Worker})
	return p, accept(t, to)
}

// until waits for a condition that must become true.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for ctx := bounded(t); !ok(); {
		if ctx.Err() != nil {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// endOf waits until a peer is gone and returns why.
func endOf(t testing.TB, p *Peer) *GoneError {
	t.Helper()
	select {
	case <-p.Done():
	case <-bounded(t).Done():
		t.Fatal("the peer is still there")
	}
	g, ok := errors.AsType[*GoneError](p.Err())
	if !ok {
		t.Fatalf("%T: %v", p.Err(), p.Err())
	}
	return g
}

func say(t testing.TB, p *Peer, kind uint16, body string) {
	t.Helper()
	if err := p.Send(wire.Message{Kind: kind, Body: []byte(body)}); err != nil {
		t.Fatal(err)
	}
}

func expectMessage(t testing.TB, p *Peer, kind uint16, body string) {
	t.Helper()
	m, err := p.Receive(bounded(t))
	if err != nil || m.Kind != kind || string(m.Body) != body {
		t.Fatalf("received %d %.40q, %v; want %d %.40q", m.Kind, m.Body, err, kind, body)
	}
}
