package control

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/testutil"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// TestLeaseOutlivesALostLink: a viewer whose link breaks off and who comes back still writes, and nobody else does
// meanwhile: neither another person, nor another viewer of theirs, nor who takes their name and guesses. Who leaves by
// themselves writes no more.
func TestLeaseOutlivesALostLink(t *testing.T) {
	srv, _, s := serve(t, sourcetest.Run(2, 5), func(context.Context, event.Command) (event.Receipt, error) {
		return event.Receipt{Accepted: true}, nil
	})
	dial := dials(t, s)
	ada := dial("ada@elsewhere")
	writes := func(c *Client) bool {
		t.Helper()
		r, err := c.Command(testutil.Context(t), event.Command{Action: event.Save})
		if err != nil {
			t.Fatal(err)
		}
		return r.Accepted
	}
	if !writes(ada) {
		t.Fatal("the first to command is refused")
	}
	lasts(srv)
	lose := func() { // as a link that breaks off
		for _, l := range []*line{&ada.act, &ada.watch} {
			if l.c != nil {
				l.c.Close()
				l.c = nil
			}
		}
	}
	lose()
	bob, elsewhere, guess := dial("bob"), dial("ada@elsewhere"), dial("ada@elsewhere")
	guess.viewer = strings.Repeat("A", len(ada.viewer))
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for name, c := range map[string]*Client{"another person": bob, "another viewer": elsewhere, "who guesses": guess} {
			if writes(c) {
				t.Fatalf("%s writes while the holder is away", name)
			}
			if l, err := c.Lease(testutil.Context(t), view.LeaseLook); err != nil || l.Mine || strings.Contains(l.Holder, ada.viewer) {
				t.Fatalf("%s is told %+v, %v", name, l, err)
			}
		}
	}
	if l, err := ada.Lease(testutil.Context(t), view.LeaseLook); err != nil || !l.Mine {
		t.Errorf("who comes back is told %+v, %v", l, err)
	}
	if !writes(ada) {
		t.Error("who comes back does not write")
	}
	lasts(srv)
	lose()
	if !writes(ada) {
		t.Error("who comes back again does not write")
	}
	lasts(srv)
	ada.Close()
	testutil.Eventually(t, "another writes after who has left", func() bool { return writes(bob) })
}

// lasts makes a lease last longer than any test: on a slow machine it would end by itself.
func lasts(srv *Server) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.lease.until = time.Now().Add(time.Hour)
}

// TestLeaseOfALostLinkEnds: it lasts as long as it would have, and then is whose turn it is. What is held without a
// drawn name, by which nobody could come back, ends at once.
func TestLeaseOfALostLinkEnds(t *testing.T) {
	one, two, again := net.Conn(&net.TCPConn{}), net.Conn(&net.UDPConn{}), net.Conn(&net.UnixConn{})
	ada, bob := party{"ada@elsewhere", "drawn", one}, party{"bob", "other", two}
	now := time.Unix(1e9, 0)
	var l lease
	if why := l.command(ada, false, now); why != "" {
		t.Fatal(why)
	}
	if err := l.ask(bob, now); err != nil {
		t.Fatal(err)
	}
	l.disconnected(one)
	if why := l.command(bob, false, now.Add(leaseFor-time.Second)); !strings.HasPrefix(why, "ada@elsewhere writes for ") {
		t.Errorf("a second before its end: %q", why)
	}
	if x := l.of(bob, now.Add(leaseFor+time.Second)); !x.Mine {
		t.Errorf("a second after its end: %+v", x)
	}
	l = lease{}
	_ = l.command(ada, false, now)
	l.disconnected(one)
	ada.by = again
	if why := l.command(ada, false, now.Add(time.Second)); why != "" || !l.until.Equal(now.Add(time.Second+leaseFor)) {
		t.Errorf("over another link: %q, until %v", why, l.until)
	}
	l = lease{}
	_ = l.command(party{"ada@elsewhere", "", one}, false, now)
	if l.disconnected(one); !l.holder.isZero() {
		t.Error("what is held by no viewer outlives its connection")
	}
	l = lease{}
	_ = l.command(party{"ada", "drawn", one}, false, now)
	if l.disconnected(one); !l.holder.isZero() {
		t.Error("what a viewer on this machine holds outlives its process")
	}
}
