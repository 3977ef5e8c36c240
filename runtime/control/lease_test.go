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

// TestLeaseOutlivesALostLink: a viewer whose connection breaks and who reconnects still holds the lease. No other
// viewer gets it in the meantime: neither of another user, nor of the same user, nor one that guesses the identifier. A
// viewer that closes releases the lease.
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
		t.Fatal("the first command is refused")
	}
	extendLease(srv)
	disconnect := func() { // closes the connections without a release of the lease
		for _, l := range []*line{&ada.act, &ada.watch} {
			if l.c != nil {
				l.c.Close()
				l.c = nil
			}
		}
	}
	disconnect()
	bob, elsewhere, guess := dial("bob"), dial("ada@elsewhere"), dial("ada@elsewhere")
	guess.viewer = strings.Repeat("A", len(ada.viewer))
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for name, c := range map[string]*Client{"another user": bob, "another viewer": elsewhere,
			"a guessed identifier": guess} {
			if writes(c) {
				t.Fatalf("%s writes while the holder is disconnected", name)
			}
			if l, err := c.Lease(testutil.Context(t), view.LeaseLook); err != nil || l.Mine ||
				strings.Contains(l.Holder, ada.viewer) {
				t.Fatalf("%s: the lease is %+v, %v", name, l, err)
			}
		}
	}
	if l, err := ada.Lease(testutil.Context(t), view.LeaseLook); err != nil || !l.Mine {
		t.Errorf("after a reconnect the lease is %+v, %v", l, err)
	}
	if !writes(ada) {
		t.Error("a command after a reconnect is refused")
	}
	extendLease(srv)
	disconnect()
	if !writes(ada) {
		t.Error("a command after another reconnect is refused")
	}
	extendLease(srv)
	ada.Close()
	testutil.Eventually(t, "another viewer writes after the holder has closed", func() bool { return writes(bob) })
}

// extendLease makes the lease outlast the test, since it would expire on a slow machine.
func extendLease(srv *Server) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.lease.until = time.Now().Add(time.Hour)
}

// TestLeaseOfALostLinkEnds: a lease whose connection broke expires at its time and passes to the next viewer. One that
// is held without an identifier, or by a local viewer, ends at once, since its holder cannot reconnect.
func TestLeaseOfALostLinkEnds(t *testing.T) {
	one, two, again := net.Conn(&net.TCPConn{}), net.Conn(&net.UDPConn{}), net.Conn(&net.UnixConn{})
	ada, bob := viewerID{"ada@elsewhere", "drawn", one}, viewerID{"bob", "other", two}
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
		t.Errorf("over another connection: %q, until %v", why, l.until)
	}
	l = lease{}
	_ = l.command(viewerID{"ada@elsewhere", "", one}, false, now)
	if l.disconnected(one); !l.holder.isZero() {
		t.Error("the lease of no viewer outlives its connection")
	}
	l = lease{}
	_ = l.command(viewerID{"ada", "drawn", one}, false, now)
	if l.disconnected(one); !l.holder.isZero() {
		t.Error("the lease of a local viewer outlives its process")
	}
}
