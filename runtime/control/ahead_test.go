package control

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"brood/runtime/session"
	"brood/runtime/view"
)

// TestAhead: before a run begins its control socket says how far it is, and to all else that it has not begun; the run
// that opens the control socket then says nothing of it, and the socket is free for it.
func TestAhead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s, err := session.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, err := Announce(dir, 60)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(dir, "ada", false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, want := range []uint64{0, 41} {
		a.Tell(want)
		got, err := c.Ahead(t.Context())
		if err != nil || got == nil || *got != (Ahead{Round: want, Of: 60}) {
			t.Errorf("it is at %v, %v, want round %d of 60", got, err, want)
		}
	}
	_, err = c.Snapshot(t.Context(), 0)
	if err == nil || !strings.Contains(err.Error(), "recomputing round 41 of 60") {
		t.Errorf("who looks at it is told %v", err)
	}
	a.Close()
	if got, err := c.Ahead(t.Context()); err == nil {
		t.Errorf("when it is closed it answers %v", got)
	}
	var l net.Listener
	if l, err = Listen(dir); err != nil {
		t.Fatal(err)
	}
	run := NewServer(dir, view.New(), nil)
	run.Serve(l)
	defer run.Close()
	if got, err := c.Ahead(t.Context()); err != nil || got != nil {
		t.Errorf("of a run that has begun: %v, %v", got, err)
	}
}
