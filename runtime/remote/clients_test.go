package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/testutil"
	"brood/runtime/view"
	"brood/transport/identity"
	"brood/transport/quic"
	"brood/transport/wire"
)

// connect connects to a run by a URL.
func connect(t *testing.T, url string, key *identity.Key) (*Client, *control.Client, error) {
	t.Helper()
	join, err := identity.ParseJoin(url)
	if err != nil {
		t.Fatal(err)
	}
	v, err := Connect(t.Context(), key, join, "bob", "test")
	if err != nil {
		return nil, nil, err
	}
	c := control.NewClient("somebody else", false, v.Dial)
	t.Cleanup(func() { c.Close(); v.Close() })
	return v, c, nil
}

// TestClients: a viewer reads, an operator sends commands under the name of its key, and a revoked key loses access.
func TestClients(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	o := small(1 << 40)
	o.Workers = 2
	s := serve(t, prepare(t, o), nil, dir, nil)
	ends := []<-chan error{s.work(t.Context(), s.config()), s.work(t.Context(), s.config())}
	over := make(chan struct{})
	go func() { defer close(over); s.train() }()

	viewerKey := newKey(t)
	viewer, looks, err := connect(t, s.srv.Join(wire.Viewer), viewerKey)
	if err != nil {
		t.Fatal(err)
	}
	v, err := looks.Snapshot(testutil.Context(t), math.MaxUint64)
	for err == nil && v.Progress.Rounds < 3 {
		var b view.Batch
		if b, err = looks.Next(testutil.Context(t), v.Position, 100); err == nil {
			for _, r := range b.Records {
				v.Apply(r)
			}
		}
	}
	if err != nil || viewer.Role() != wire.Viewer {
		t.Fatalf("%s: %v", viewer.Role(), err)
	}
	if r, err := looks.Command(testutil.Context(t), event.Command{Action: event.Pause}); err != nil || r.Accepted ||
		!strings.Contains(r.Reason, "operator") {
		t.Errorf("a command of a viewer: %+v, %v", r, err)
	}
	if _, err := looks.Gate(testutil.Context(t), control.Gate{Role: "operator"}); err == nil ||
		!strings.Contains(err.Error(), "operator") {
		t.Errorf("a viewer creates a URL: %v", err)
	}

	key := newKey(t)
	operator, steers, err := connect(t, s.srv.Join(wire.Operator), key)
	if err != nil || operator.Role() != wire.Operator {
		t.Fatalf("%v", err)
	}
	if r, err := steers.Command(testutil.Context(t),
		event.Command{By: "the boss", Set: []event.Setting{{Knob: "eta", Expr: "0.01"}}}); err != nil || !r.Accepted {
		t.Fatalf("an operator's command: %+v, %v", r, err)
	}
	for len(v.Edits) == 0 || v.Edits[len(v.Edits)-1].Expr != "0.01" {
		b, err := looks.Next(testutil.Context(t), v.Position, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range b.Records {
			v.Apply(r)
		}
	}
	if by := v.Edits[len(v.Edits)-1].By; by != "bob@"+key.Node().Short() {
		t.Errorf("the edit is by %q", by)
	}

	var f view.Fleet
	becomes := func(what string, ok func() bool) { // in the fleet's view
		t.Helper()
		testutil.Eventually(t, what, func() bool {
			if f, err = looks.Fleet(testutil.Context(t)); err != nil {
				t.Fatal(err)
			}
			return len(f.Workers) == 2 && len(f.Links) == 2 && ok()
		})
	}
	becomes("the fleet measured", func() bool {
		w := f.Workers[0]
		return w.State == event.Hosting && w.RTT > 0 && w.Sent > 0 && f.Links[0].Sent > 0
	})
	slow := event.Link{From: 0, To: event.Every, Delay: 30 * time.Millisecond}
	if r, err := steers.Command(testutil.Context(t), event.Command{Link: &slow}); err != nil || !r.Accepted {
		t.Errorf("slow down a link: %+v, %v", r, err)
	}
	// a link at capacity is not measured
	if r, err := steers.Command(testutil.Context(t), event.Command{Action: event.Pause}); err != nil || !r.Accepted {
		t.Errorf("pause: %+v, %v", r, err)
	}
	becomes("one link slowed down", func() bool {
		return f.Links[0].Shape != nil && f.Links[1].Shape == nil && f.Links[1].RTT > 25*time.Millisecond
	})
	slow.Delay = 0
	if r, err := steers.Command(testutil.Context(t), event.Command{Link: &slow}); err != nil || !r.Accepted {
		t.Errorf("remove the limit of the link: %+v, %v", r, err)
	}
	if r, err := steers.Command(testutil.Context(t), event.Command{Action: event.Resume}); err != nil || !r.Accepted {
		t.Errorf("resume: %+v, %v", r, err)
	}
	if r, err := steers.Command(testutil.Context(t), event.Command{Link: &event.Link{From: 0, To: 7}}); err != nil ||
		r.Accepted || !strings.Contains(r.Reason, "worker 7") {
		t.Errorf("a link to an unknown worker: %+v, %v", r, err)
	}

	// The URL determines the role, also for a key that is admitted in another role.
	both, _, err := connect(t, s.srv.Join(wire.Viewer), key)
	if err != nil || both.Role() != wire.Viewer {
		t.Errorf("an operator by a viewer's URL is a %s: %v", both.Role(), err)
	}
	// An admitted key can return long after its token is gone.
	bare := strings.Replace(s.srv.Join(wire.Viewer), s.srv.token[wire.Viewer], "", 1)
	if again, _, err := connect(t, bare, viewerKey); err != nil || again.Role() != wire.Viewer {
		t.Errorf("a viewer without its token: %v", err)
	}
	if _, _, err := connect(t, strings.Replace(bare, "/#", "/aaaaaaaaaaaaaaaaaaaaaaaa#", 1), viewerKey); err != nil {
		t.Errorf("a viewer whose token the server no longer has: %v", err)
	}

	if _, err := steers.Gate(testutil.Context(t), control.Gate{Revoke: "nobody"}); err == nil ||
		!strings.Contains(err.Error(), `no admitted key begins with "nobody": give`) {
		t.Errorf("an unknown key was revoked: %v", err)
	}
	url, err := steers.Gate(testutil.Context(t), control.Gate{Role: "operator", Uses: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := connect(t, url, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Gate(testutil.Context(t), control.Gate{Revoke: key.Node().Short()}); err != nil {
		t.Fatal(err)
	}
	testutil.Receive(t, operator.Gone(), "goodbye to the operator")
	if _, _, err := connect(t, s.srv.Join(wire.Viewer), key); err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("a revoked key connects in its other role: %v", err)
	}
	if _, _, err := connect(t, s.srv.Join(wire.Operator), key); err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("a revoked key connects: %v", err)
	}
	if _, _, err := connect(t, url, newKey(t)); err == nil || !strings.Contains(err.Error(), "another key has used it") {
		t.Errorf("a used token admits: %v", err)
	}
	if r, err := second.Command(testutil.Context(t), event.Command{Action: event.Stop}); err != nil || !r.Accepted {
		t.Errorf("stop: %+v, %v", r, err)
	}
	testutil.Receive(t, over, "end of the run")
	testutil.Receive(t, viewer.Gone(), "goodbye to the viewer")
	if err := errors.Join(testutil.Receive(t, ends[0], "end of a worker"),
		testutil.Receive(t, ends[1], "end of a worker")); err != nil {
		t.Error(err)
	}
}

// TestClientsOfTheDead: if the run's process was killed, its machine reports that to a viewer immediately. If the
// network is cut, it does not, although no goodbye arrives in either case. The viewer finds the run when a process
// listens there again.
func TestClientsOfTheDead(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "waits for broken processes and connections")
	t.Parallel()
	for _, killed := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "run")
		s := serve(t, prepare(t, small(3)), nil, dir, nil) // no worker joins, so the log has no records
		v, c, err := connect(t, s.srv.Join(wire.Viewer), newKey(t))
		if err != nil {
			t.Fatal(err)
		}
		shot, err := c.Snapshot(testutil.Context(t), math.MaxUint64)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.srv.node.Shaper().Set("", quic.Shape{Loss: 1}); err != nil {
			t.Fatal(err)
		}
		end := func() {
			if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
				t.Error(err)
			}
		}
		if killed {
			end()
		}
		_, err = c.Next(testutil.Context(t), shot.Position, 10)
		if err == nil || errors.Is(err, view.ErrNoProcess) != killed {
			t.Errorf("killed %v: %v", killed, err)
		}
		if !killed {
			end()
			continue
		}
		if _, err := v.Dial(testutil.Context(t)); !errors.Is(err, view.ErrNoProcess) {
			t.Errorf("dialed again: %v", err)
		}
		again := &served{t: t}
		if again.srv, err = Listen(Config{Dir: dir, Note: again.notes.add}); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Dial(testutil.Context(t)); errors.Is(err, view.ErrNoProcess) {
			t.Errorf("a process that listens again is reported as gone: %v", err)
		}
		if err := again.srv.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestClientsThatVanish: a viewer that disconnects while the run has no new records leaves no goroutine behind.
func TestClientsThatVanish(t *testing.T) {
	// no worker joins, so the log has no records
	s := serve(t, prepare(t, small(3)), nil, filepath.Join(t.TempDir(), "run"), nil)
	defer func() {
		if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
			t.Error(err)
		}
	}()
	key, before := newKey(t), 0
	for i := range 12 {
		v, c, err := connect(t, s.srv.Join(wire.Viewer), key)
		if err != nil {
			t.Fatal(err)
		}
		shot, err := c.Snapshot(testutil.Context(t), math.MaxUint64)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = c.Next(context.Background(), shot.Position, 10) }() // blocks until the viewer disconnects
		time.Sleep(20 * time.Millisecond)
		v.Close()
		if i == 1 {
			before = settled()
		}
	}
	testutil.Eventually(t, fmt.Sprintf("about %d goroutines after 12 visits as after 2", before), func() bool {
		return goruntime.NumGoroutine() <= before+8
	})
}

// settled returns the number of goroutines once it no longer falls.
func settled() int {
	n := goruntime.NumGoroutine()
	for still := 0; still < 20; time.Sleep(20 * time.Millisecond) {
		if m := goruntime.NumGoroutine(); m < n {
			n, still = m, 0
		} else {
			still++
		}
	}
	return n
}

// TestKeepsItsKey: a coordinator that lost its state file keeps its key. If the key is missing too, the error says
// where it was.
func TestKeepsItsKey(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, prepare(t, small(3)), nil, filepath.Join(dir, "run"), nil)
	id := s.srv.node.ID()
	if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.dir, stateFile)); err != nil {
		t.Fatal(err)
	}
	again, err := Listen(Config{Dir: s.dir, Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if !again.node.ID().Equal(id) {
		t.Error("it has another key")
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	for content, want := range map[string]string{"{": "damaged", "{}": "put the key back"} {
		if err := errors.Join(os.WriteFile(filepath.Join(s.dir, stateFile), []byte(content), 0o600),
			os.RemoveAll(filepath.Join(s.dir, keyFile))); err != nil {
			t.Fatal(err)
		}
		if srv, err := Listen(Config{Dir: s.dir, Address: "127.0.0.1:0"}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
			if err == nil {
				srv.Close()
			}
		}
	}
}
