package remote

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/testutil"
	"brood/transport/identity"
	"brood/transport/quic"
	"brood/transport/wire"
)

// TestTwoAtOnce: two runs train at the same time on one socket, one with two workers and one with a third, and each has
// the hash of its run in one process. Neither commits a second time before both have committed once.
func TestTwoAtOnce(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "waits for broken processes and connections")
	t.Parallel()
	s := newSeries(t, t.TempDir(), 3)
	var both sync.WaitGroup
	both.Add(2)
	meet := func() func(event.Record) {
		var once sync.Once
		return func(r event.Record) {
			if r.Commit != nil {
				once.Do(func() { both.Done(); both.Wait() })
			}
		}
	}
	a, b := seeded(24, 3, 2), seeded(24, 4, 1)
	runs := []*served{s.begin("a", a, meet()), s.begin("b", b, meet())}
	var ends []<-chan error
	for range 3 {
		ends = append(ends, s.work(t.Context(), s.config()))
	}
	var all sync.WaitGroup
	for _, r := range runs {
		all.Go(func() {
			if x := r.toEnd(); x.Phase != event.Finished {
				t.Errorf("%s: %+v", r.dir, x)
			}
		})
	}
	testutil.Wait(t, &all, "end of all runs")
	s.close(ends...)
	runs[0].check(a)
	runs[1].check(b)
	if n, m := len(runs[0].plans[0].New.Workers()), len(runs[1].plans[0].New.Workers()); n != 2 || m != 1 ||
		total(runs[0].sum.Sent) == 0 {
		t.Errorf("%d and %d workers, sent %v", n, m, runs[0].sum.Sent)
	}
	if runs[0].hash == runs[1].hash {
		t.Error("both runs have the same hash")
	}
}

// TestInARow: one worker trains three runs in sequence. The wait between them does not count against its patience,
// which is 0. A run that is closed before its end also releases it. It notes each wait once, and finally receives the
// message that the runs are over.
func TestInARow(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "waits for broken processes and connections")
	t.Parallel()
	s := newSeries(t, t.TempDir(), 1)
	cfg := s.config()
	cfg.Patience = 0
	end := s.work(t.Context(), cfg)
	waits := func(n int) {
		t.Helper()
		s.until(slices.Repeat([]string{"waiting for the next"}, n)...)
	}
	for i := range 3 {
		waits(i + 1)
		time.Sleep(2 * firstPause) // at least one retry
		o := seeded(8, uint64(i), 1)
		r := s.begin(string(rune('a'+i)), o, nil)
		if x, err := r.run.Train(testutil.Context(t)); err != nil || x.Phase != event.Finished {
			t.Errorf("%+v, %v", x, err)
		}
		waits(i + 2) // it does not return to a run that is over but not closed yet
		if err := r.run.Close(); err != nil {
			t.Error(err)
		}
		r.check(o)
		if files, _ := filepath.Glob(filepath.Join(r.dir, "fleet*")); len(files) > 0 {
			t.Errorf("the session has the files %v", files)
		}
	}
	waits(4)
	given := s.begin("closed early", seeded(8, 9, 1), nil)
	s.until(" of closed early joined")
	if err := given.run.Close(); err != nil {
		t.Error(err)
	}
	waits(5)
	s.close(end)
	if text := s.notes.text(); strings.Count(text, "waiting for the next") != 5 ||
		strings.Count(text, "the run is over") != 4 || strings.Count(text, "the runs are over") != 1 ||
		strings.Contains(text, "trying again") {
		t.Error(text)
	}
}

// TestReplaced: a worker that dies during a run is replaced by a waiting one, the run returns to its checkpoint, and it
// ends with the hash of an uninterrupted run.
func TestReplaced(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "waits for a worker that dies and one that replaces it")
	t.Parallel()
	s := newSeries(t, t.TempDir(), 3)
	o := seeded(200, 3, 2)
	o.OnLoss = string(coordinator.OnLossRollback)
	dies, die := context.WithCancel(testutil.Context(t))
	r := s.begin("a", o, func(r event.Record) {
		if r.Commit != nil && r.Commit.To >= 10 {
			die()
		}
		if r.Plan != nil && r.Plan.Epoch == 2 { // otherwise a fast machine would finish before the other worker joins
			s.until("worker 2 ", " joined")
		}
	})
	stays, falls := s.work(t.Context(), s.config()), s.work(dies, s.config())
	s.until("joined as", "joined as")
	waits := s.work(t.Context(), s.config())
	s.until("waiting for the next")
	if x := r.toEnd(); x.Phase != event.Finished {
		t.Errorf("%+v", x)
	}
	s.close(stays, waits)
	if err := testutil.Receive(t, falls, "end of a worker"); !errors.Is(err, context.Canceled) {
		t.Errorf("the canceled worker ends with %v", err)
	}
	// On a slow machine the waiting worker may have to join twice, and then has a higher number.
	if last := r.plans[len(r.plans)-1].New.Workers(); len(r.plans) < 3 || r.plans[1].Cause != "rollback" ||
		len(last) != 2 || last[1] < 2 {
		t.Errorf("plans %+v", r.plans)
	}
	r.check(o)
}

// TestSeriesRestarts: a coordinator of two runs is killed and restarts from its saved state. Its workers return by
// themselves, each to any run that needs one, and both runs end with the hashes of uninterrupted runs.
func TestSeriesRestarts(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "waits for broken processes and connections")
	t.Parallel()
	root := t.TempDir()
	s := newSeries(t, root, 2)
	ctx, kill := context.WithCancel(testutil.Context(t))
	var both sync.WaitGroup
	both.Add(2)
	begun := func() func(event.Record) { // and stop the run there
		var once sync.Once
		return func(r event.Record) {
			if r.Commit != nil && r.Commit.To >= 10 {
				once.Do(func() { both.Done(); <-ctx.Done() })
			}
		}
	}
	a, b := seeded(60, 3, 1), seeded(60, 4, 1)
	before := []*served{s.begin("a", a, begun()), s.begin("b", b, begun())}
	ends := []<-chan error{s.work(t.Context(), s.config()), s.work(t.Context(), s.config())}
	var all sync.WaitGroup
	for _, r := range before {
		all.Go(func() {
			if _, err := r.run.Train(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	testutil.Wait(t, &both, "round of both runs")
	// the workers receive no goodbye, as after a kill
	if err := s.srv.node.Shaper().Set("", quic.Shape{Loss: 1}); err != nil {
		t.Fatal(err)
	}
	kill()
	testutil.Wait(t, &all, "end of all runs")
	if err := errors.Join(before[0].run.Close(), before[1].run.Close(), s.srv.Close()); err != nil {
		t.Fatal(err)
	}
	back := &series{served: served{t: t}, root: root}
	var err error
	if back.srv, err = Listen(Config{Dir: filepath.Join(root, "fleet"), Series: true, Note: back.notes.add}); err != nil {
		t.Fatal(err)
	}
	if got, want := back.srv.node.Address().String(), s.srv.node.Address().String(); got != want ||
		!back.srv.node.ID().Equal(s.srv.node.ID()) || back.srv.Join(wire.Worker) != "" {
		t.Errorf("the new process listens at %s, the old one at %s", got, want)
	}
	after := []*served{back.resume("a", 1), back.resume("b", 1)}
	for _, r := range after {
		all.Go(func() {
			if x := r.toEnd(); x.Phase != event.Finished {
				t.Errorf("%+v", x)
			}
		})
	}
	testutil.Wait(t, &all, "end of all runs")
	back.close()
	testutil.Wait(s.t, &s.workers, "end of all workers")
	for _, end := range ends {
		if err := testutil.Receive(t, end, "end of a worker"); err != nil {
			t.Errorf("a worker ends with %v", err)
		}
	}
	for i, r := range after {
		r.check([]host.Options{a, b}[i])
	}
}

// TestHostileSeries: a worker that names a run gets no place in a full run, nor the place of another worker. Refused
// clients are not expected to return.
func TestHostileSeries(t *testing.T) {
	s := newSeries(t, t.TempDir(), 2)
	a, b := s.begin("a", seeded(3, 3, 1), nil), s.begin("b", seeded(3, 4, 1), nil)
	first, second := s.srv.runs[0].id, s.srv.runs[1].id
	sits, err := joinRaw(&s.served, newKey(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(code string, key *identity.Key, change func(*wire.Hello)) {
		t.Helper()
		_, err := joinRaw(&s.served, key, change)
		if got, _ := errors.AsType[wire.Refused](err); got.Code != code {
			t.Errorf("want %s: %v", code, err)
		}
	}
	names := func(id wire.RunID) func(*wire.Hello) { return func(h *wire.Hello) { h.Run = id } }
	key := newKey(t)
	node, err := quic.Listen(quic.Config{Key: key, Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	h, join := hello(&s.served, names(first))
	peer, w, err := node.Dial(t.Context(), join.Address, join.Server, h) // the first run is full
	if err != nil || w.Run != second || !w.Series {
		t.Fatalf("%v, %+v, runs %s and %s", err, w, first, second)
	}
	testutil.Eventually(t, "the worker to be accepted", func() bool { return !s.srv.settling() })
	for _, id := range []wire.RunID{{}, {9}, first, second} {
		refused(wire.CodeTokenUnknown, newKey(t), func(h *wire.Hello) { h.Run, h.Token = id, "x" })
		refused(wire.CodeTokenMissing, newKey(t), func(h *wire.Hello) { h.Run, h.Token = id, "" })
		refused(wire.CodeTokenSpent, newKey(t), names(id))
	}
	refused(wire.CodeRole, newKey(t), func(h *wire.Hello) { h.Role = wire.Viewer })
	refused(wire.CodeRole, key, func(h *wire.Hello) { h.Role, h.Token = wire.Operator, "" })
	s.srv.mu.Lock()
	due := len(s.srv.toInform)
	s.srv.mu.Unlock()
	if due != 0 {
		t.Errorf("%d refused clients are expected to return", due)
	}
	if sits.peer.Err() != nil || peer.Err() != nil {
		t.Errorf("an accepted worker was disconnected: %v, %v", sits.peer.Err(), peer.Err())
	}
	// The same key replaces its own session only, whichever run it names.
	again, err := joinRaw(&s.served, key, func(h *wire.Hello) { h.Run, h.Token = first, "" })
	if err != nil {
		t.Fatal(err)
	}
	testutil.Receive(t, peer.Done(), "end of the first session")
	if sits.peer.Err() != nil || again.peer.Err() != nil {
		t.Errorf("%v, %v", sits.peer.Err(), again.peer.Err())
	}
	if err := errors.Join(a.run.Close(), b.run.Close()); err != nil {
		t.Error(err)
	}
	clear(s.srv.toInform) // the raw workers do not return
	if err := s.srv.Close(); err != nil {
		t.Error(err)
	}
}

// settling reports whether a worker has received Welcome but is not accepted yet.
func (s *Server) settling() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.admitted) > 0
}

// TestPlaces: a worker goes to its own run if that still needs it, otherwise to the run that lacks the fewest workers,
// among equals to the oldest.
func TestPlaces(t *testing.T) {
	s := &Server{cfg: Config{Series: true}, admitted: map[wire.NodeID]admission{}, toInform: map[wire.NodeID]time.Time{}}
	add := func(needed int, there ...byte) *run {
		r := &run{srv: s, id: wire.RunID{byte(len(s.runs) + 1)}, wanted: needed, handles: map[wire.NodeID]*workerHandle{}}
		for _, n := range there {
			r.handles[wire.NodeID{n}] = &workerHandle{acceptedAt: time.Now()}
		}
		s.runs = append(s.runs, r)
		return r
	}
	goes := func(node byte, names byte, want *run) {
		t.Helper()
		got, err := s.findRun(t.Context(),
			quic.Request{Node: wire.NodeID{node}, Hello: wire.Hello{Role: wire.Worker, Run: wire.RunID{names}}})
		if err != nil || got != want {
			t.Errorf("worker %d, of run %d, goes to %+v, %v", node, names, got, err)
		}
	}
	goes(99, 0, nil)
	full := add(2, 1, 2)
	goes(99, 0, nil)
	fresh := add(3)
	lost := add(3, 3, 4)
	add(3, 5, 6)
	goes(99, 0, lost)
	goes(99, 2, fresh)
	goes(99, 1, lost) // its own run is full
	goes(99, 77, lost)
	goes(1, 1, full) // it replaces itself
	goes(1, 0, full)
	s.admitted[wire.NodeID{98}] = admission{run: lost, at: time.Now()}
	goes(99, 0, s.runs[3])
	goes(98, 0, lost)
	s.runs[3].over = true
	goes(99, 0, fresh)
	s.admitted[wire.NodeID{98}] = admission{run: lost, at: time.Now().Add(-arrival)}
	goes(99, 0, lost) // a worker that did not arrive no longer counts
	full.handles[wire.NodeID{1}].acceptedAt = time.Now().Add(-prepareTimeout)
	goes(99, 1, full) // nor does one that has prepared for too long
	full.handles[wire.NodeID{1}].joined = true
	goes(99, 1, lost)
}

// TestLeavesWaiting: a worker that waits for a run ends immediately on request.
func TestLeavesWaiting(t *testing.T) {
	s := newSeries(t, t.TempDir(), 1)
	cfg := s.config()
	leave := make(chan struct{})
	cfg.Leave, cfg.Note = leave, func(text string) {
		if strings.Contains(text, "waiting for the next") {
			close(leave)
		}
	}
	if err := testutil.Receive(t, s.work(t.Context(), cfg), "end of the worker"); !errors.Is(err, ErrLeft) {
		t.Errorf("%v", err)
	}
	s.srv.mu.Lock()
	clear(s.srv.toInform) // Close need not wait for its next retry
	s.srv.mu.Unlock()
	s.close()
	if files, err := os.ReadDir(filepath.Join(s.root, "fleet")); err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
}
