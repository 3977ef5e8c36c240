package quic

import (
	"context"
	"net"
	"testing"

	"brood/transport/wire"
)

// TestStrangers: there is a limit for all and a share for each address; the connection that was silent longest is
// ended, one that sent its first message is not.
func TestStrangers(t *testing.T) {
	udp := func(ip string, port int) net.Addr { return &net.UDPAddr{IP: net.ParseIP(ip), Port: port} }
	var s strangers
	var first []*stranger
	for i := range maxShare {
		n, err := s.enter(udp("192.0.2.1", 1000+i))
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, n)
	}
	if _, err := s.enter(udp("192.0.2.1", 1)); err != errBusy {
		t.Errorf("an address has more than its share, and none of its strangers can be ended: %v", err)
	}
	for i := range maxStrangers - maxShare {
		if _, err := s.enter(udp("192.0.2.2", 1000+i)); err != nil {
			t.Fatalf("another address: %v", err)
		}
	}
	if _, err := s.enter(udp("2001:db8::1", 1)); err != errBusy {
		t.Errorf("more than %d strangers: %v", maxStrangers, err)
	}
	first[7].leave()
	first[7].leave()
	if s.count() != maxStrangers-1 {
		t.Errorf("%d strangers after one has left", s.count())
	}
	if _, err := s.enter(udp("2001:db8::1", 1)); err != nil {
		t.Error(err)
	}
	for a, b := range map[string]string{"2001:db8::1": "2001:db8::ffff", "192.0.2.1": "::ffff:192.0.2.1"} {
		if origin(udp(a, 1)) != origin(udp(b, 2)) {
			t.Errorf("%s and %s are two addresses", a, b)
		}
	}
	if origin(udp("192.0.2.1", 1)) == origin(udp("192.0.2.2", 1)) ||
		origin(udp("2001:db8::1", 1)) == origin(udp("2001:db8:0:1::1", 1)) {
		t.Error("two addresses are one")
	}
}

// TestSilentConnectionsReplaced: without room, the oldest silent connection is ended for a new one; one that has sent
// its first message is not, though it still waits for an answer.
func TestSilentConnectionsReplaced(t *testing.T) {
	s := newScenery(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	defer close(answer)
	server := newNode(t, func(c *Config) {
		c.Admit = func(context.Context, Request) (wire.Welcome, error) {
			close(asked)
			<-answer
			return wire.Welcome{}, wire.Refused{Code: wire.CodeRefused, Reason: "no peer is admitted"}
		}
	})
	var all []*attacker
	for range 3 {
		a, err := s.attack(t, server, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	all[0].say(wire.Hello{Node: s.key.Node(), Role: wire.Worker})
	select {
	case <-asked:
	case <-bounded(t).Done():
		t.Fatal("Admit was not called for the stranger")
	}
	n := &server.strangers
	until(t, "two silent strangers of three", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		silent := 0
		for _, o := range n.all {
			if o.silent != nil {
				silent++
			}
		}
		return silent == 2
	})
	n.mu.Lock()
	for len(n.all) < maxShare {
		n.all = append(n.all, &stranger{of: n, address: n.all[0].address})
	}
	n.mu.Unlock()
	b, err := s.attack(t, server, nil)
	if err != nil {
		t.Fatalf("a newcomer: %v", err)
	}
	ended := func(a *attacker) bool { return a.conn.Context().Err() != nil }
	until(t, "the oldest silent one to be ended", func() bool { return ended(all[1]) || ended(all[2]) })
	if ended(all[0]) || ended(all[1]) == ended(all[2]) || ended(b) {
		t.Errorf("ended: %v %v %v, and the newcomer %v", ended(all[0]), ended(all[1]), ended(all[2]), ended(b))
	}
}

// TestKnownKeysNotStrangers: a node that was admitted before does not count as a stranger.
func TestKnownKeysNotStrangers(t *testing.T) {
	s := newScenery(t)
	server := newNode(t, func(c *Config) { c.Known = func(n wire.NodeID) bool { return n.Equal(s.key.Node()) } })
	a, err := s.attack(t, server, nil)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "a known key to be no stranger", func() bool { return server.strangers.count() == 0 })
	if a.conn.Context().Err() != nil {
		t.Error("a known key was ended")
	}
}
