package sshserver

import (
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"brood/runtime/testutil"
)

// TestIdleConnections: 100 connections that never authenticate do not delay a client with a key, and close no
// connection that has authenticated.
func TestIdleConnections(t *testing.T) {
	r := serve(t)
	before := r.client(t)
	for range 100 {
		c, err := net.Dial("tcp", r.Address().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	type result struct {
		c   *ssh.Client
		err error
	}
	came := make(chan result, 1)
	go func() {
		c, err := r.dial("ada", ssh.PublicKeys(r.key))
		came <- result{c, err}
	}()
	select {
	case x := <-came:
		if x.err != nil {
			t.Fatal(x.err)
		}
		defer x.c.Close()
		s, _ := look(t, x.c, 80, 24)
		s.shows(t, "the run", func(text string) bool { return strings.Contains(text, "the run") })
	case <-time.After(2 * time.Second):
		t.Fatal("behind 100 idle connections, a client with a key is not served within 2 seconds")
	}
	if _, err := before.NewSession(); err != nil {
		t.Errorf("the client that came before them: %v", err)
	}
}

// TestMostClients: at the limit a further client is rejected, and one that leaves makes room.
func TestMostClients(t *testing.T) {
	r := serve(t)
	var all []*ssh.Client
	for range maxClients {
		c := r.client(t)
		all = append(all, c)
	}
	if c, err := r.dial("ada", ssh.PublicKeys(r.key)); err == nil {
		c.Close()
		t.Fatalf("client %d is admitted", maxClients+1)
	}
	r.mu.Lock()
	if len(r.notes) != 1 || !strings.Contains(r.notes[0], "maximum number of clients") {
		t.Errorf("%q", r.notes)
	}
	r.mu.Unlock()
	all[0].Close()
	testutil.Eventually(t, "room for a client", func() bool {
		c, err := r.dial("ada", ssh.PublicKeys(r.key))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// TestCrowded: the connection that is replaced is the oldest one of the host with most connections.
func TestCrowded(t *testing.T) {
	var s connections
	for _, host := range []string{"b", "a", "c", "a", "b", "a"} {
		s.waiting = append(s.waiting, &connection{host: host})
	}
	if got := s.crowded(); got != s.waiting[1] {
		t.Errorf("it is one of %s", got.host)
	}
}
