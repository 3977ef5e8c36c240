package control

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"brood/runtime/session"
	"brood/runtime/view"
)

// TestAhead: before a run starts its control socket returns the progress of the recomputation, and an error for other
// requests. Afterwards the run can open the control socket, and returns no progress.
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
		a.Report(want)
		got, err := c.Ahead(t.Context())
		if err != nil || got == nil || *got != (Ahead{Round: want, Of: 60}) {
			t.Errorf("progress %v, %v, want round %d of 60", got, err, want)
		}
	}
	_, err = c.Snapshot(t.Context(), 0)
	if err == nil || !strings.Contains(err.Error(), "recomputing round 41 of 60") {
		t.Errorf("a snapshot: %v", err)
	}
	a.Close()
	if got, err := c.Ahead(t.Context()); err == nil {
		t.Errorf("after Close: %v", got)
	}
	var l net.Listener
	if l, err = Listen(dir); err != nil {
		t.Fatal(err)
	}
	run := NewServer(dir, view.New(), nil)
	run.Serve(l)
	defer run.Close()
	if got, err := c.Ahead(t.Context()); err != nil || got != nil {
		t.Errorf("after the start of the run: %v, %v", got, err)
	}
}
