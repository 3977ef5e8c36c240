package remote

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/testutil"
	"brood/transport/quic"
	"brood/transport/wire"
)

// TestLeaves: when a worker leaves, nothing is lost: the run ends with the hash of an uninterrupted run, and the worker
// is released.
func TestLeaves(t *testing.T) {
	o := small(1 << 40)
	o.Workers = 2
	dir := filepath.Join(t.TempDir(), "run")
	leave := make(chan struct{})
	s := serve(t, prepare(t, o), nil, dir, func(r event.Record) {
		if c := r.Commit; c != nil && c.To >= 10 && !isClosed(leave) {
			close(leave)
		}
	})
	s.endsAfter(2)
	cfg := s.config()
	cfg.Leave = leave
	stays, goes := s.work(t.Context(), s.config()), s.work(t.Context(), cfg)
	if exit := s.train(); exit.Phase != event.Stopped {
		t.Fatalf("%+v", exit)
	}
	if err := testutil.Receive(t, stays, "end of a worker"); err != nil {
		t.Error(err)
	}
	if err := testutil.Receive(t, goes, "end of a worker"); !errors.Is(err, ErrLeft) {
		t.Errorf("the leaving worker ends with %v", err)
	}
	if len(s.plans) != 2 || s.plans[1].Cause != "leave" || len(s.plans[1].Lost) > 0 || len(s.plans[1].New.Workers()) != 1 {
		t.Errorf("plans %+v", s.plans)
	}
	s.checkLocalHash()
	verifies(t, dir, s.hash)
}

// TestLastLeaves: the state of the last worker is saved before it leaves, and the next worker that joins continues from
// it.
func TestLastLeaves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	leave := make(chan struct{})
	var s *served
	s = serve(t, prepare(t, small(1<<40)), nil, dir, func(r event.Record) {
		switch {
		case r.Commit != nil && r.Commit.To >= 10 && !isClosed(leave):
			close(leave)
		case r.Alert != nil && r.Alert.Kind == "leave" && r.Alert.Level == "warning":
			s.work(t.Context(), s.config())
		}
	})
	s.endsAfter(2)
	cfg := s.config()
	cfg.Leave = leave
	goes := s.work(t.Context(), cfg)
	if exit := s.train(); exit.Phase != event.Stopped {
		t.Fatalf("%+v", exit)
	}
	if err := testutil.Receive(t, goes, "end of a worker"); !errors.Is(err, ErrLeft) {
		t.Errorf("the leaving worker ends with %v", err)
	}
	s.checkLocalHash()
	verifies(t, dir, s.hash)
}

// TestRestart: a coordinator that is killed, fails, or is ended by a second Ctrl+C, and then restarts, has the same
// identity: its workers return by themselves, without a token, and the run ends with the hash of an uninterrupted run.
func TestRestart(t *testing.T) {
	t.Parallel()
	hows := []string{"killed"}
	if longtest.On(longtest.Fleets) {
		hows = append(hows, "failed", "left at once")
	}
	for _, how := range hows {
		t.Run(how, func(t *testing.T) { t.Parallel(); restarts(t, how) })
	}
}

func restarts(t *testing.T, how string) {
	o := small(80)
	o.Workers = 2
	dir := filepath.Join(t.TempDir(), "run")
	ctx, kill := context.WithCancel(testutil.Context(t))
	s := serve(t, prepare(t, o), nil, dir, func(r event.Record) {
		if r.Commit != nil && r.Commit.To >= 20 {
			if how == "failed" {
				panic("something is wrong here")
			}
			kill()
		}
	})
	address := s.srv.node.Address().String()
	ends := []<-chan error{s.work(t.Context(), s.config()), s.work(t.Context(), s.config())}
	if _, err := s.run.Train(ctx); how != "failed" && !errors.Is(err, context.Canceled) ||
		how == "failed" && (err == nil || !strings.Contains(err.Error(), "something is wrong here")) {
		t.Fatal(err)
	}
	if how == "killed" { // the workers receive no goodbye
		if err := s.srv.node.Shaper().Set("", quic.Shape{Loss: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
		t.Fatal(err)
	}
	from, err := host.Restore(t.Context(), dir, 0, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Continue(host.Options{Workers: 2, Threads: 1, Limit: from.Limit, By: "test"}); err != nil {
		t.Fatal(err)
	}
	again := &served{t: t}
	if again.srv, err = Listen(Config{Dir: dir, Note: again.notes.add}); err != nil {
		t.Fatal(err)
	}
	if got := again.srv.node.Address().String(); got != address || !again.srv.node.ID().Equal(s.srv.node.ID()) ||
		again.srv.id != s.srv.id {
		t.Errorf("the new process listens at %s as %s, the old one at %s as %s", got, again.srv.node.ID().Short(), address,
			s.srv.node.ID().Short())
	}
	began := time.Now()
	again.begin(from.Job, from, dir, func(r event.Record) {
		if r.Plan != nil && len(again.plans) == 1 {
			t.Logf("the workers are back after %s", time.Since(began).Round(time.Millisecond))
		}
	})
	if again.srv.Join(wire.Worker) != "" {
		t.Error("the restarted server has a join URL for workers")
	}
	if exit := again.train(); exit.Phase != event.Finished {
		t.Errorf("%+v, notes %v", exit, again.notes.all)
	}
	testutil.Wait(s.t, &s.workers, "end of all workers")
	for _, end := range ends {
		if err := testutil.Receive(t, end, "end of a worker"); err != nil {
			t.Error(err)
		}
	}
	if want := localHash(t, small(80)); again.hash != want {
		t.Errorf("ends with %s, uninterrupted with %s", again.hash, want)
	}
	if !slices.ContainsFunc(again.plans, func(p event.Plan) bool { return len(p.New.Workers()) == 2 }) {
		t.Errorf("plans %+v", again.plans)
	}
	verifies(t, dir, again.hash)
}
